#include "bson/value.h"
#include "suite.h"

#include <inttypes.h>

/* Compare the numbers that a READ returned, as "3 5 6". */
static void assert_run(fixture_t *fixture, int64_t page, spill_want_t want, int64_t seq,
                       int64_t limit, const char *expected)
{
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, page);
    read.read.want = want;
    read.read.seq = seq;
    read.read.limit = limit;
    assert_done(fixture, &read);
    bson_string_t *text = bson_string_new(NULL);
    for (size_t i = 0; i < fixture->response.run.count; i++) {
        spill_element_t element = spill_run_element(&fixture->response.run, i);
        int64_t number = element.seq + 100;
        spill_value_t value = number_value(&number);
        assert_true(spill_value_equal(&element.value, &value));
        bson_string_append_printf(text, "%s%" PRId64, i > 0 ? " " : "", element.seq);
    }
    assert_string_equal(text->str, expected);
    bson_string_free(text, true);
}

static void remove_in_head(fixture_t *fixture, int64_t rev, int64_t seq)
{
    spill_request_t remove = make_request(fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    remove.rev = INCARNATION + rev;
    remove.change.seq = seq;
    assert_done(fixture, &remove);
}

/* An element as deeply nested as allowed is appended, read and spilled like any other. */
static void deepest_element_is_read(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    bson_t deep = BSON_INITIALIZER;
    for (int i = 1; i < SPILL_NESTING_MAX; i++) {
        bson_t outer = BSON_INITIALIZER;
        BSON_APPEND_DOCUMENT(&outer, "a", &deep);
        bson_destroy(&deep);
        bson_steal(&deep, &outer);
    }
    spill_value_t element = spill_value_from_document(&deep);
    assert_true(spill_value_valid(&element));
    for (int i = 0; i < 3; i++) {
        spill_request_t append = make_append(&fixture, SPILL_HEAD, &element, 1);
        append.create = true;
        append.incarnation = INCARNATION;
        assert_done(&fixture, &append);
    }
    spill_page(&fixture, 0, 2);
    for (int64_t page = SPILL_HEAD; page <= 0; page++) {
        spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, page);
        read.read.want = SPILL_WANT_FORWARD;
        read.read.limit = 10;
        assert_done(&fixture, &read);
        assert_int_equal(fixture.response.run.count, page == SPILL_HEAD ? 1 : 2);
        spill_value_t found = spill_run_element(&fixture.response.run, 0).value;
        assert_true(spill_value_equal(&found, &element));
    }
    bson_destroy(&deep);
    fixture_close(&fixture);
}

static void reads_of_head_without_gaps(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_FORWARD, 0, 10, "");
    append_numbers(&fixture, SPILL_HEAD, 100, 6);
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_NONE, 0, 10, "");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_FORWARD, 0, 10, "0 1 2 3 4 5");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_FORWARD, -5, 2, "0 1");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_FORWARD, 4, 10, "4 5");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_FORWARD, 6, 10, "");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_FORWARD, 2, 0, "");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_FORWARD, INT64_MAX, 10, "");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_BACKWARD, INT64_MAX, 10, "5 4 3 2 1 0");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_BACKWARD, 5, 2, "5 4");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_BACKWARD, 1, 10, "1 0");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_BACKWARD, -1, 10, "");
    fixture_close(&fixture);
}

static void reads_skip_deleted_elements(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_OLDEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 8);
    remove_in_head(&fixture, 0, 3);
    remove_in_head(&fixture, 1, 4);
    remove_in_head(&fixture, 2, 0);
    remove_in_head(&fixture, 3, 7);
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_FORWARD, 0, 10, "1 2 5 6");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_FORWARD, 2, 2, "2 5");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_FORWARD, 3, 1, "5");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_FORWARD, 7, 1, "");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_BACKWARD, INT64_MAX, 10, "6 5 2 1");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_BACKWARD, 7, 1, "6");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_BACKWARD, 4, 1, "2");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_BACKWARD, 0, 1, "");
    append_numbers(&fixture, SPILL_HEAD, 108, 1);
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_BACKWARD, INT64_MAX, 2, "8 6");
    fixture_close(&fixture);
}

static void read_ends_with_document(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 10);
    spill_page(&fixture, 0, 3);
    spill_page(&fixture, 1, 4);
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_BACKWARD, INT64_MAX, 10, "9 8 7");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_FORWARD, 0, 10, "7 8 9");
    assert_run(&fixture, SPILL_HEAD, SPILL_WANT_BACKWARD, 6, 10, "");
    assert_run(&fixture, 1, SPILL_WANT_BACKWARD, INT64_MAX, 10, "6 5 4 3");
    assert_run(&fixture, 1, SPILL_WANT_FORWARD, 0, 10, "3 4 5 6");
    assert_run(&fixture, 0, SPILL_WANT_FORWARD, 2, 10, "2");
    assert_run(&fixture, 0, SPILL_WANT_FORWARD, 3, 10, "");
    assert_run(&fixture, 2, SPILL_WANT_FORWARD, 0, 10, "");
    fixture_close(&fixture);
}

static void elements_of_all_types_are_returned(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    bson_t *sample = BCON_NEW("0", "text", "1", BCON_DOUBLE(0.5), "2", "{", "a", "[", BCON_INT32(1),
                              "]", "}", "3", BCON_NULL, "4", BCON_BOOL(true), "5", "");
    spill_value_t values[6];
    bson_iter_t iter;
    bson_iter_init(&iter, sample);
    for (size_t i = 0; i < 6; i++) {
        assert_true(bson_iter_next(&iter));
        values[i] = spill_value_from_iter(&iter);
    }
    assert_int_equal(values[3].size_bytes, 0);
    spill_request_t append = make_append(&fixture, SPILL_HEAD, values, 6);
    append.create = true;
    assert_done(&fixture, &append);
    fixture_reopen(&fixture);
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = 10;
    assert_done(&fixture, &read);
    assert_int_equal(fixture.response.run.count, 6);
    for (size_t i = 0; i < 6; i++) {
        spill_element_t element = spill_run_element(&fixture.response.run, i);
        assert_true(spill_value_equal(&element.value, &values[i]));
    }
    bson_destroy(sample);
    fixture_close(&fixture);
}

/* ---- the page that holds a number ------------------------------------------------------------ */

static int64_t page_holding(fixture_t *fixture, int64_t incarnation, int64_t pages, int64_t seq)
{
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, SPILL_PAGE_HOLDING);
    read.incarnation = incarnation;
    read.read.pages = pages;
    read.read.seq = seq;
    read.read.want = SPILL_WANT_BACKWARD;
    read.read.limit = 1;
    assert_done(fixture, &read);
    return fixture->response.state.present ? fixture->response.state.page : -1;
}

static void page_of_number_is_found(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 12);
    assert_int_equal(page_holding(&fixture, INCARNATION, 3, 0), -1);
    spill_page(&fixture, 0, 3);
    spill_page(&fixture, 1, 5);
    spill_page(&fixture, 2, 1);
    assert_int_equal(put_from_head(&fixture, 3, 2), SPILL_DONE);
    fixture_reopen(&fixture);
    const int64_t expected[] = {0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2};
    for (int64_t seq = 0; seq <= 10; seq++) {
        assert_int_equal(page_holding(&fixture, INCARNATION, 3, seq), expected[seq]);
        if (seq <= 8) {
            assert_int_equal(fixture.response.run.count, 1);
            assert_int_equal(fixture.response.run.entries[0].seq, seq);
        }
    }
    /* if the put page were committed */
    assert_int_equal(page_holding(&fixture, INCARNATION, 4, 10), 3);
    assert_int_equal(page_holding(&fixture, INCARNATION, 2, 10), 1);
    assert_int_equal(page_holding(&fixture, INCARNATION, 0, 10), -1);
    assert_int_equal(page_holding(&fixture, INCARNATION, 3, -1), -1);
    assert_int_equal(page_holding(&fixture, INCARNATION, 3, INT64_MAX), 2);
    assert_int_equal(page_holding(&fixture, INCARNATION + 1, 3, 5), -1);
    assert_int_equal(page_holding(&fixture, INCARNATION - 1, 3, 5), -1);
    fixture_owner(&fixture, "bob");
    assert_int_equal(page_holding(&fixture, INCARNATION, 3, 5), -1);
    fixture_close(&fixture);
}

static void search_skips_emptied_pages(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_OLDEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 1);
    spill_request_t seal = make_request(&fixture, SPILL_REQUEST_SEAL, SPILL_HEAD);
    assert_done(&fixture, &seal);
    for (int64_t page = 0; page < 3; page++) {
        spill_request_t create = make_request(&fixture, SPILL_REQUEST_CREATE_PAGE, page);
        create.create_page.first = 1 + 2 * page;
        assert_done(&fixture, &create);
        append_numbers(&fixture, page, 101 + 2 * page, 2);
        seal.page = page;
        assert_done(&fixture, &seal);
    }
    assert_int_equal(page_holding(&fixture, INCARNATION, 3, 3), 1);
    spill_request_t empty = make_request(&fixture, SPILL_REQUEST_EMPTY_PAGE, 0);
    assert_done(&fixture, &empty);
    /* Pages 0 and 1 now have the same first number: the later page holds it. */
    assert_int_equal(page_holding(&fixture, INCARNATION, 3, 3), 1);
    assert_int_equal(page_holding(&fixture, INCARNATION, 3, 2), -1);
    empty.page = 1;
    assert_done(&fixture, &empty);
    fixture_reopen(&fixture);
    assert_int_equal(page_holding(&fixture, INCARNATION, 3, 5), 2);
    assert_int_equal(page_holding(&fixture, INCARNATION, 2, 5), 1);
    /* empty, but its first number is 3 */
    assert_int_equal(page_holding(&fixture, INCARNATION, 3, 4), 0);
    fixture_close(&fixture);
}

static void search_skips_other_incarnations(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_OLDEST);
    const int64_t epochs[] = {INCARNATION, INCARNATION + 9, INCARNATION, INCARNATION + 9};
    for (int64_t page = 0; page < 4; page++) {
        spill_request_t create = make_request(&fixture, SPILL_REQUEST_CREATE_PAGE, page);
        create.incarnation = epochs[page];
        create.create_page.first = 10 + 10 * page;
        assert_done(&fixture, &create);
    }
    assert_int_equal(page_holding(&fixture, INCARNATION, 4, 100), 2);
    assert_int_equal(page_holding(&fixture, INCARNATION, 4, 25), 0);
    assert_int_equal(page_holding(&fixture, INCARNATION + 9, 4, 35), 1);
    assert_int_equal(page_holding(&fixture, INCARNATION + 9, 4, 100), 3);
    assert_int_equal(page_holding(&fixture, INCARNATION + 9, 3, 100), 1);
    fixture_close(&fixture);
}

void add_read_tests(suite_t *suite)
{
    SUITE_ADD(suite, reads_of_head_without_gaps);
    SUITE_ADD(suite, reads_skip_deleted_elements);
    SUITE_ADD(suite, read_ends_with_document);
    SUITE_ADD(suite, elements_of_all_types_are_returned);
    SUITE_ADD(suite, deepest_element_is_read);
    SUITE_ADD(suite, page_of_number_is_found);
    SUITE_ADD(suite, search_skips_emptied_pages);
    SUITE_ADD(suite, search_skips_other_incarnations);
}
