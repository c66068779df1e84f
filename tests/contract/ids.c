/* SPILL_WANT_ID and SPILL_PAGE_WITH_ID: finding elements by id, and the index behind that. */
#include "suite.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- helpers --------------------------------------------------------------------------------- */

/*
 * Append elements given as Extended JSON, separated by '|'. A capped head holds at most `cap`; 0:
 * not capped.
 */
static void append_within(fixture_t *fixture, int64_t page, int64_t cap, const char *elements)
{
    char text[1024];
    char *rest = NULL;
    snprintf(text, sizeof text, "%s", elements);
    for (char *json = strtok_r(text, "|", &rest); json; json = strtok_r(NULL, "|", &rest)) {
        bson_t storage = BSON_INITIALIZER;
        spill_value_t element;
        assert_int_equal(spill_value_from_json(json, strlen(json), &storage, &element, NULL),
                         SPILL_OK);
        spill_request_t append = make_append(fixture, page, &element, 1);
        append.create = page == SPILL_HEAD;
        if (cap > 0)
            append.limits.slots_max = cap;
        assert_done(fixture, &append);
        bson_destroy(&storage);
    }
}

static void append_json(fixture_t *fixture, int64_t page, const char *elements)
{
    append_within(fixture, page, 0, elements);
}

static void append_capped_json(fixture_t *fixture, int64_t cap, const char *elements)
{
    append_within(fixture, SPILL_HEAD, cap, elements);
}

/* Return the number of the element that a READ by id finds in that document, or -1. */
static int64_t find_id_from(fixture_t *fixture, int64_t page, int64_t pages, const char *json,
                            int64_t seq)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t id;
    assert_int_equal(spill_value_from_json(json, strlen(json), &storage, &id, NULL), SPILL_OK);
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, page);
    read.read.want = SPILL_WANT_ID;
    read.read.id = &id;
    read.read.seq = seq;
    read.read.limit = 1;
    read.read.pages = pages;
    assert_done(fixture, &read);
    bson_destroy(&storage);
    const spill_response_t *response = &fixture->response;
    if (page == SPILL_PAGE_WITH_ID)
        assert_int_equal(response->state.present, response->run.count == 1);
    if (response->run.count == 0)
        return -1;
    assert_int_equal(response->run.count, 1);
    assert_false(response->id_absent);
    spill_element_t element = spill_run_element(&response->run, 0);
    assert_true(element.seq >= response->state.first &&
                element.seq < spill_state_end(&response->state));
    return element.seq;
}

static int64_t in_head(fixture_t *fixture, const char *id)
{
    return find_id_from(fixture, SPILL_HEAD, 0, id, 0);
}

static int64_t in_pages(fixture_t *fixture, int64_t pages, const char *id)
{
    return find_id_from(fixture, SPILL_PAGE_WITH_ID, pages, id, 0);
}

/* Does a READ of the head report that no document of the array has the id? */
static bool is_known_absent(fixture_t *fixture, const char *id)
{
    assert_int_equal(in_head(fixture, id), -1);
    return fixture->response.id_absent;
}

static void edit_or_remove(fixture_t *fixture, spill_request_kind_t kind, int64_t page, int64_t rev,
                           int64_t seq, const char *json)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t element;
    spill_request_t request = make_request(fixture, kind, page);
    request.rev = INCARNATION + rev;
    request.change.seq = seq;
    if (json) {
        assert_int_equal(spill_value_from_json(json, strlen(json), &storage, &element, NULL),
                         SPILL_OK);
        request.change.element = &element;
    }
    assert_done(fixture, &request);
    bson_destroy(&storage);
}

/* ---- ids ------------------------------------------------------------------------------------- */

static void ids_compare_like_values(void **state)
{
    fixture_t fixture;
    fixture_open_with_ids(&fixture, *state, SPILL_KEEP_NEWEST, "id");
    append_json(&fixture, SPILL_HEAD,
                "{\"id\": 1}|{\"id\": \"one\"}|{\"id\": {\"a\": 1, \"b\": 2}}|"
                "{\"id\": {\"$numberDouble\": \"2.0\"}}|"
                "{\"id\": {\"$oid\": \"0123456789abcdef01234567\"}}|{\"id\": true}|"
                "{\"id\": {\"$date\": {\"$numberLong\": \"5\"}}}|{\"id\": \"\"}|{\"id\": 1}");
    assert_int_equal(in_head(&fixture, "1"), 0);
    assert_int_equal(in_head(&fixture, "{\"$numberLong\": \"1\"}"), 0);
    assert_int_equal(in_head(&fixture, "{\"$numberDouble\": \"1.0\"}"), 0);
    assert_int_equal(in_head(&fixture, "2"), 3);
    assert_int_equal(in_head(&fixture, "\"one\""), 1);
    assert_int_equal(in_head(&fixture, "\"on\""), -1);
    assert_int_equal(in_head(&fixture, "{\"a\": 1, \"b\": 2}"), 2);
    assert_int_equal(in_head(&fixture, "{\"b\": 2, \"a\": 1}"), -1);
    assert_int_equal(in_head(&fixture, "{\"$oid\": \"0123456789abcdef01234567\"}"), 4);
    assert_int_equal(in_head(&fixture, "true"), 5);
    assert_int_equal(in_head(&fixture, "false"), -1);
    assert_int_equal(in_head(&fixture, "{\"$date\": {\"$numberLong\": \"5\"}}"), 6);
    assert_int_equal(in_head(&fixture, "\"\""), 7);
    assert_int_equal(find_id_from(&fixture, SPILL_HEAD, 0, "1", 1), 8);
    assert_int_equal(find_id_from(&fixture, SPILL_HEAD, 0, "1", 9), -1);
    fixture_reopen(&fixture);
    assert_int_equal(in_head(&fixture, "\"one\""), 1);
    assert_sound(&fixture);
    fixture_close(&fixture);
}

static void element_without_id_is_not_found(void **state)
{
    fixture_t fixture;
    fixture_open_with_ids(&fixture, *state, SPILL_KEEP_OLDEST, "by.id");
    append_json(&fixture, SPILL_HEAD,
                "7|\"text\"|{}|{\"id\": 7}|{\"by\": 7}|{\"by\": {\"id\": [7]}}|"
                "{\"by\": [{\"id\": 7}]}|{\"by\": {\"id\": null}}|{\"by.id\": 7}|"
                "{\"by\": {\"id\": {\"id\": 7}}}|{\"by\": {\"x\": 1, \"id\": 8}}");
    assert_int_equal(in_head(&fixture, "7"), -1);
    assert_int_equal(in_head(&fixture, "8"), 10);
    assert_sound(&fixture);
    fixture_close(&fixture);
}

/* With the path "." an element of any type is its own id. */
static void element_itself_is_an_id(void **state)
{
    fixture_t fixture;
    fixture_open_with_ids(&fixture, *state, SPILL_KEEP_NEWEST, ".");
    append_json(&fixture, SPILL_HEAD,
                "1|\"one\"|{\"a\": 1, \"b\": 2}|{\"$oid\": \"0123456789abcdef01234567\"}|"
                "[1, 2]|null|true|\"one\"|{\"$date\": {\"$numberLong\": \"5\"}}");
    assert_int_equal(in_head(&fixture, "{\"$numberDouble\": \"1.0\"}"), 0);
    assert_int_equal(in_head(&fixture, "2"), -1);
    assert_int_equal(in_head(&fixture, "{\"a\": 1, \"b\": 2}"), 2);
    assert_int_equal(in_head(&fixture, "{\"b\": 2, \"a\": 1}"), -1);
    assert_int_equal(in_head(&fixture, "{\"a\": 1}"), -1);
    spill_page(&fixture, 0, 5);
    assert_int_equal(in_pages(&fixture, 1, "1"), 0);
    assert_int_equal(in_pages(&fixture, 1, "2"), -1);
    assert_int_equal(in_pages(&fixture, 1, "\"one\""), 1);
    assert_int_equal(in_pages(&fixture, 1, "{\"a\": 1, \"b\": 2}"), 2);
    assert_int_equal(in_pages(&fixture, 1, "{\"$oid\": \"0123456789abcdef01234567\"}"), 3);
    assert_int_equal(in_pages(&fixture, 1, "true"), -1);
    assert_int_equal(in_head(&fixture, "\"one\""), 7);
    edit_or_remove(&fixture, SPILL_REQUEST_DELETE, 0, 0, 1, NULL);
    edit_or_remove(&fixture, SPILL_REQUEST_EDIT, SPILL_HEAD, 1, 7, "9");
    assert_int_equal(in_pages(&fixture, 1, "\"one\""), -1);
    assert_int_equal(in_head(&fixture, "\"one\""), -1);
    fixture_reopen(&fixture);
    assert_int_equal(in_head(&fixture, "9"), 7);
    assert_int_equal(in_pages(&fixture, 1, "1"), 0);
    assert_sound(&fixture);
    fixture_close(&fixture);
}

/* ---- the index follows the elements ---------------------------------------------------------- */

static void ids_follow_edits_and_removals(void **state)
{
    fixture_t fixture;
    fixture_open_with_ids(&fixture, *state, SPILL_KEEP_NEWEST, "id");
    append_json(&fixture, SPILL_HEAD, "{\"id\": 1}|{\"id\": 2}|{\"id\": 2}|{\"id\": 3}");
    edit_or_remove(&fixture, SPILL_REQUEST_EDIT, SPILL_HEAD, 0, 0, "{\"id\": 4}");
    assert_int_equal(in_head(&fixture, "1"), -1);
    assert_int_equal(in_head(&fixture, "4"), 0);
    edit_or_remove(&fixture, SPILL_REQUEST_EDIT, SPILL_HEAD, 1, 0, "{\"id\": 4, \"more\": true}");
    assert_int_equal(in_head(&fixture, "4"), 0);
    edit_or_remove(&fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD, 2, 1, NULL);
    assert_int_equal(in_head(&fixture, "2"), 2);
    assert_int_equal(in_head(&fixture, "3"), 3);
    edit_or_remove(&fixture, SPILL_REQUEST_EDIT, SPILL_HEAD, 3, 3, "3");
    assert_int_equal(in_head(&fixture, "3"), -1);
    spill_request_t trim = make_request(&fixture, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.rev = INCARNATION + 4;
    trim.change.watermark = 1;
    assert_done(&fixture, &trim);
    assert_int_equal(in_head(&fixture, "4"), -1);
    assert_sound(&fixture);
    fixture_close(&fixture);
}

static void ids_move_to_pages(void **state)
{
    fixture_t fixture;
    fixture_open_with_ids(&fixture, *state, SPILL_KEEP_NEWEST, "id");
    append_json(&fixture, SPILL_HEAD,
                "{\"id\": 1}|{\"id\": 2}|{\"id\": 3}|{\"id\": 2}|{\"id\": 5}|{\"id\": 6}");
    assert_int_equal(put_from_head(&fixture, 0, 3), SPILL_DONE);
    assert_int_equal(in_head(&fixture, "3"), 2);
    assert_int_equal(in_pages(&fixture, 0, "3"), -1); /* not committed */
    assert_sound(&fixture);
    assert_int_equal(cut_from_head(&fixture, 0), SPILL_DONE);
    spill_page(&fixture, 1, 2);
    assert_int_equal(in_head(&fixture, "3"), -1);
    assert_int_equal(in_head(&fixture, "6"), 5);
    assert_int_equal(in_pages(&fixture, 2, "6"), -1);
    assert_int_equal(in_pages(&fixture, 2, "3"), 2);
    assert_int_equal(in_pages(&fixture, 2, "2"), 1);
    assert_int_equal(fixture.response.state.page, 0);
    assert_int_equal(find_id_from(&fixture, SPILL_PAGE_WITH_ID, 2, "2", 2), 3);
    assert_int_equal(fixture.response.state.page, 1);
    assert_int_equal(find_id_from(&fixture, SPILL_PAGE_WITH_ID, 1, "2", 2), -1);
    assert_int_equal(in_pages(&fixture, 2, "5"), 4);
    edit_or_remove(&fixture, SPILL_REQUEST_DELETE, 0, 0, 1, NULL);
    assert_int_equal(in_pages(&fixture, 2, "2"), 3);
    edit_or_remove(&fixture, SPILL_REQUEST_EDIT, 0, 1, 2, "{\"id\": 9}");
    assert_int_equal(in_pages(&fixture, 2, "9"), 2);
    assert_int_equal(in_pages(&fixture, 2, "3"), -1);
    assert_false(is_known_absent(&fixture, "9"));
    assert_false(is_known_absent(&fixture, "5"));
    fixture_reopen(&fixture);
    assert_int_equal(in_pages(&fixture, 2, "9"), 2);
    assert_sound(&fixture);
    fixture_close(&fixture);
}

static void ids_of_pages_that_keep_oldest(void **state)
{
    fixture_t fixture;
    fixture_open_with_ids(&fixture, *state, SPILL_KEEP_OLDEST, "id");
    append_json(&fixture, SPILL_HEAD, "{\"id\": 1}|{\"id\": 2}");
    spill_request_t seal = make_request(&fixture, SPILL_REQUEST_SEAL, SPILL_HEAD);
    seal.rev = INCARNATION;
    assert_done(&fixture, &seal);
    spill_request_t create = make_request(&fixture, SPILL_REQUEST_CREATE_PAGE, 0);
    create.create_page.first = 2;
    assert_done(&fixture, &create);
    append_json(&fixture, 0, "{\"id\": 2}|{\"id\": 3}");
    assert_int_equal(in_head(&fixture, "2"), 1);
    assert_int_equal(find_id_from(&fixture, SPILL_PAGE_WITH_ID, 1, "2", 2), 2);
    assert_int_equal(find_id_from(&fixture, SPILL_PAGE_WITH_ID, 1, "3", 2), 3);
    assert_int_equal(find_id_from(&fixture, SPILL_PAGE_WITH_ID, 1, "4", 2), -1);
    assert_false(is_known_absent(&fixture, "3"));
    seal = make_request(&fixture, SPILL_REQUEST_SEAL, 0);
    seal.rev = INCARNATION;
    assert_done(&fixture, &seal);
    spill_request_t empty = make_request(&fixture, SPILL_REQUEST_EMPTY_PAGE, 0);
    assert_done(&fixture, &empty);
    assert_int_equal(find_id_from(&fixture, SPILL_PAGE_WITH_ID, 1, "3", 2), -1);
    assert_sound(&fixture);
    fixture_close(&fixture);
}

/* One page replaces another; one incarnation follows another. */
static void ids_of_replaced_pages_are_deleted(void **state)
{
    fixture_t fixture;
    fixture_open_with_ids(&fixture, *state, SPILL_KEEP_NEWEST, "id");
    append_json(&fixture, SPILL_HEAD, "{\"id\": 1}|{\"id\": 2}|{\"id\": 3}");
    assert_int_equal(put_from_head(&fixture, 0, 2), SPILL_DONE);
    edit_or_remove(&fixture, SPILL_REQUEST_EDIT, SPILL_HEAD, 0, 1, "{\"id\": 7}");
    assert_sound(&fixture);
    spill_page(&fixture, 0, 2);
    assert_int_equal(in_pages(&fixture, 1, "2"), -1);
    assert_int_equal(in_pages(&fixture, 1, "7"), 1);
    drop_head(&fixture, INCARNATION, 1);
    assert_sound(&fixture);
    begin_again(&fixture, 100, 1);
    assert_int_equal(in_head(&fixture, "7"), -1);
    assert_sound(&fixture);
    spill_request_t drop = make_request(&fixture, SPILL_REQUEST_DROP_PAGE, 0);
    assert_done(&fixture, &drop);
    assert_int_equal(in_pages(&fixture, 1, "7"), -1);
    assert_sound(&fixture);
    fixture_close(&fixture);
}

/* Capped: a dropped element is not found, even if its own batch dropped it. */
static void ids_of_a_capped_head(void **state)
{
    fixture_t fixture;
    spill_definition_t definition;
    make_definition(&definition, "feed", SPILL_KEEP_NEWEST);
    spill_definition_set_layout(&definition, SPILL_LAYOUT_CAPPED);
    snprintf(definition.id_field, SPILL_NAME_SIZE, "id");
    fixture_open_with(&fixture, *state, &definition);
    append_json(&fixture, SPILL_HEAD, "{\"id\": 1}|{\"id\": 2}|{\"id\": 1}|{\"id\": 3}");
    assert_int_equal(in_head(&fixture, "1"), 0);
    append_capped_json(&fixture, 3, "{\"id\": 4}");
    assert_int_equal(in_head(&fixture, "1"), 2);
    assert_int_equal(in_head(&fixture, "2"), -1);
    edit_or_remove(&fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD, 0, 3, NULL);
    assert_int_equal(in_head(&fixture, "3"), -1);
    assert_int_equal(in_head(&fixture, "4"), 4);
    edit_or_remove(&fixture, SPILL_REQUEST_EDIT, SPILL_HEAD, 1, 2, "{\"id\": 9}");
    assert_int_equal(in_head(&fixture, "9"), 2);
    assert_int_equal(in_head(&fixture, "1"), -1);
    append_capped_json(&fixture, 1, "{\"id\": 5}|{\"id\": 6}");
    assert_int_equal(in_head(&fixture, "4"), -1);
    assert_int_equal(in_head(&fixture, "5"), -1);
    assert_int_equal(in_head(&fixture, "6"), 6);
    fixture_reopen(&fixture);
    assert_int_equal(in_head(&fixture, "6"), 6);
    assert_sound(&fixture);
    fixture_close(&fixture);
}

void add_id_tests(suite_t *suite)
{
    SUITE_ADD(suite, ids_compare_like_values);
    SUITE_ADD(suite, element_without_id_is_not_found);
    SUITE_ADD(suite, element_itself_is_an_id);
    SUITE_ADD(suite, ids_follow_edits_and_removals);
    SUITE_ADD(suite, ids_move_to_pages);
    SUITE_ADD(suite, ids_of_pages_that_keep_oldest);
    SUITE_ADD(suite, ids_of_replaced_pages_are_deleted);
    SUITE_ADD(suite, ids_of_a_capped_head);
}
