/* Layout reference: each element in a document of its own, and the sum in the head. */
#include "suite.h"

#include "store/render.h"

#include <string.h>

enum { RATINGS_MAX = 64 };

static void open_referenced_with(fixture_t *fixture, const contract_kind_t *kind,
                                 const char *id_field)
{
    fixture_open(fixture, kind, SPILL_KEEP_NEWEST);
    spill_definition_t *definition = &fixture->definition;
    assert_int_equal(spill_definition_preset(definition, "reviews-separate", "apart", NULL),
                     SPILL_OK);
    definition->op_window = 3;
    strcpy(definition->id_field, id_field);
    save_definition(fixture->store, definition);
    assert_int_equal(fixture->store->ops->bind(fixture->store, definition, &fixture->binding, NULL),
                     SPILL_OK);
}

static void open_referenced(fixture_t *fixture, const contract_kind_t *kind)
{
    open_referenced_with(fixture, kind, "");
}

static spill_value_t value_of(const bson_t *document)
{
    return (spill_value_t){
        .data = bson_get_data(document), .size_bytes = document->len, .type = BSON_TYPE_DOCUMENT};
}

/* Append {rating: first}, {rating: first + 1}, ... */
static void append_ratings(fixture_t *fixture, int first, int count)
{
    bson_t *documents[RATINGS_MAX];
    spill_value_t values[RATINGS_MAX];
    assert_true(count <= RATINGS_MAX);
    for (int i = 0; i < count; i++) {
        documents[i] = BCON_NEW("rating", BCON_INT32(first + i));
        values[i] = value_of(documents[i]);
    }
    spill_request_t append = make_append(fixture, SPILL_HEAD, values, (size_t)count);
    append.create = true;
    assert_done(fixture, &append);
    for (int i = 0; i < count; i++)
        bson_destroy(documents[i]);
}

static const spill_state_t *read_head(fixture_t *fixture)
{
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = RATINGS_MAX;
    assert_done(fixture, &read);
    return &fixture->response.state;
}

/* Put one document, with {rating: rating}, or without an element if rating is -1. */
static spill_outcome_t put(fixture_t *fixture, int64_t seq, int rating, int64_t source_rev,
                           bool edit)
{
    spill_run_t run = {0};
    spill_seqs_t deleted = {0};
    bson_t *document = BCON_NEW("rating", BCON_INT32(rating));
    spill_value_t value = value_of(document);
    if (rating >= 0)
        spill_run_add(&run, seq, &value);
    else
        spill_seqs_insert(&deleted, seq);
    spill_request_t put = make_request(fixture, SPILL_REQUEST_PUT_PAGE, seq);
    put.put_page.source_rev = source_rev;
    put.put_page.first = seq;
    put.put_page.slots = 1;
    put.put_page.run = &run;
    put.put_page.deleted = &deleted;
    put.put_page.replaces = edit;
    spill_outcome_t outcome = call(fixture, &put);
    spill_run_release(&run);
    spill_seqs_release(&deleted);
    bson_destroy(document);
    return outcome;
}

/* Write the first elements of the journal to documents; their ratings are their numbers. */
static void write_out(fixture_t *fixture, int64_t slots)
{
    spill_request_t cut = make_request(fixture, SPILL_REQUEST_CUT, SPILL_HEAD);
    const spill_state_t *head = read_head(fixture);
    cut.rev = head->rev;
    cut.cut.pages = head->pages;
    cut.cut.first = head->first;
    cut.cut.slots = slots;
    cut.cut.bytes = 17 * slots;
    for (int64_t seq = cut.cut.first; seq < cut.cut.first + slots; seq++)
        assert_int_equal(put(fixture, seq, (int)seq, cut.rev, false), SPILL_DONE);
    assert_done(fixture, &cut);
}

static void assert_sum(fixture_t *fixture, int64_t values, int64_t whole, int64_t count)
{
    const spill_state_t *head = read_head(fixture);
    assert_int_equal(head->sum.values, values);
    assert_int_equal(head->sum.whole, whole);
    assert_int_equal(spill_state_count(&fixture->definition, head), count);
    assert_int_equal(head->pages, head->first);
}

/* Compare a run of SPILL_ELEMENTS, as "3=3 4=4". */
static void assert_elements(fixture_t *fixture, spill_want_t want, int64_t seq, int64_t limit,
                            const char *expected)
{
    char text[512] = "";
    const spill_state_t *head = read_head(fixture);
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, SPILL_ELEMENTS);
    read.read.watermark = head->watermark;
    read.read.pages = head->pages;
    read.read.seq = seq;
    read.read.want = want;
    read.read.limit = limit;
    assert_done(fixture, &read);
    const spill_run_t *run = &fixture->response.run;
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        spill_sum_t value = spill_sum_of(&fixture->definition, &element.value);
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%lld=%lld", i > 0 ? " " : "",
                 (long long)element.seq, (long long)value.whole);
    }
    assert_string_equal(text, expected);
}

static spill_sum_t read_document_whole(int64_t value)
{
    return (spill_sum_t){.values = 1, .whole = value};
}

static spill_request_t make_intent(const fixture_t *fixture, int64_t rev, int64_t seq)
{
    spill_request_t prepare = make_request(fixture, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.rev = rev;
    prepare.change.seq = seq;
    prepare.change.intent_page = seq;
    prepare.change.sum_removed = read_document_whole(seq);
    return prepare;
}

static spill_request_t make_complete(const fixture_t *fixture, int64_t rev, int64_t seq)
{
    spill_request_t complete = make_request(fixture, SPILL_REQUEST_COMPLETE, SPILL_HEAD);
    complete.rev = rev;
    complete.change.seq = seq;
    complete.change.intent_page = seq;
    return complete;
}

static void remove_written(fixture_t *fixture, int64_t seq)
{
    int64_t rev = read_head(fixture)->rev;
    spill_request_t prepare = make_intent(fixture, rev, seq);
    spill_request_t pull = make_request(fixture, SPILL_REQUEST_DELETE, seq);
    spill_request_t complete = make_complete(fixture, rev + 1, seq);
    pull.change.seq = seq;
    assert_done(fixture, &prepare);
    assert_done(fixture, &pull);
    assert_done(fixture, &complete);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void cut_moves_several_elements(void **state)
{
    fixture_t fixture;
    open_referenced(&fixture, *state);
    append_ratings(&fixture, 0, 5);
    assert_sum(&fixture, 5, 10, 5);
    write_out(&fixture, 3);
    assert_sum(&fixture, 5, 10, 5);
    assert_int_equal(read_head(&fixture)->first, 3);
    append_ratings(&fixture, 5, 1);
    write_out(&fixture, 3);
    fixture_reopen(&fixture);
    assert_sum(&fixture, 6, 15, 6);
    assert_elements(&fixture, SPILL_WANT_FORWARD, 0, 10, "0=0 1=1 2=2 3=3 4=4 5=5");
    assert_elements(&fixture, SPILL_WANT_FORWARD, 2, 2, "2=2 3=3");
    assert_elements(&fixture, SPILL_WANT_BACKWARD, INT64_MAX, 2, "5=5 4=4");
    assert_elements(&fixture, SPILL_WANT_BACKWARD, 1, 9, "1=1 0=0");
    fixture_close(&fixture);
}

static void documents_match_published_schema(void **state)
{
    fixture_t fixture;
    open_referenced(&fixture, *state);
    append_ratings(&fixture, 0, 2);
    write_out(&fixture, 2);
    bson_t document;
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = 10;
    read.read.want_ops = true;
    read.read.want_fields = true;
    assert_done(&fixture, &read);
    spill_response_t *response = &fixture.response;
    spill_render_head(&fixture.definition, &response->state, response->fields, &response->run, NULL,
                      &response->ops, true, &document);
    char *json = bson_as_relaxed_extended_json(&document, NULL);
    assert_string_equal(json, "{ \"_id\" : \"ada\", \"reviewSummary\" : { \"totalCount\" : 2, "
                              "\"averageRating\" : 0.5 } }");
    bson_free(json);
    bson_destroy(&document);
    read.page = 1;
    read.read.want_fields = false;
    assert_done(&fixture, &read);
    assert_int_equal(response->state.live, 1);
    assert_int_equal(response->state.live_bytes, 17);
    spill_render_page(&fixture.definition, &fixture.owner, &response->state, &response->run, NULL,
                      true, &document);
    json = bson_as_relaxed_extended_json(&document, NULL);
    assert_string_equal(json, "{ \"productId\" : \"ada\", \"rating\" : 1 }");
    bson_free(json);
    bson_destroy(&document);
    fixture_close(&fixture);
}

static void removed_element_leaves_document(void **state)
{
    fixture_t fixture;
    open_referenced(&fixture, *state);
    append_ratings(&fixture, 0, 3);
    write_out(&fixture, 3);
    remove_written(&fixture, 1);
    assert_sum(&fixture, 2, 2, 2);
    assert_elements(&fixture, SPILL_WANT_FORWARD, 0, 10, "0=0 2=2");
    assert_int_equal(put(&fixture, 1, 1, INCARNATION, false),
                     SPILL_REFUSED_GUARD); /* it arrives late */
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, 1);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = 1;
    assert_done(&fixture, &read);
    assert_true(fixture.response.state.present);
    assert_int_equal(fixture.response.state.live, 0);
    assert_int_equal(fixture.response.run.count, 0);
    spill_request_t pull = make_request(&fixture, SPILL_REQUEST_DELETE, 1);
    pull.change.seq = 1;
    assert_refused(&fixture, &pull);
    fixture_close(&fixture);
}

/* A number with its element removed in the journal still gets a document. */
static void removed_in_the_journal(void **state)
{
    fixture_t fixture;
    open_referenced(&fixture, *state);
    append_ratings(&fixture, 0, 3);
    spill_request_t remove = make_request(&fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    remove.rev = INCARNATION;
    remove.change.sum_removed = read_document_whole(0);
    assert_done(&fixture, &remove);
    assert_int_equal(read_head(&fixture)->first, 0); /* still remembered as deleted */
    assert_int_equal(put(&fixture, 0, -1, INCARNATION + 1, false), SPILL_DONE);
    assert_int_equal(put(&fixture, 1, 1, INCARNATION + 1, false), SPILL_DONE);
    spill_request_t cut = make_request(&fixture, SPILL_REQUEST_CUT, SPILL_HEAD);
    cut.rev = INCARNATION + 1;
    cut.cut.slots = 2;
    cut.cut.bytes = 17;
    assert_done(&fixture, &cut);
    assert_int_equal(put(&fixture, 0, 0, INCARNATION, false), SPILL_REFUSED_GUARD);
    assert_sum(&fixture, 2, 3, 2);
    assert_elements(&fixture, SPILL_WANT_FORWARD, 0, 10, "1=1");
    fixture_close(&fixture);
}

static void edit_is_put_once(void **state)
{
    fixture_t fixture;
    open_referenced(&fixture, *state);
    append_ratings(&fixture, 0, 3);
    write_out(&fixture, 3);
    int64_t rev = read_head(&fixture)->rev;
    spill_request_t prepare = make_intent(&fixture, rev, 1);
    prepare.change.edit = true;
    prepare.change.sum_added = read_document_whole(9);
    assert_done(&fixture, &prepare);
    assert_refused(&fixture, &prepare);
    assert_sum(&fixture, 3, 11, 3);
    const spill_state_t *head = read_head(&fixture);
    assert_true(head->intent && head->intent_edit);
    assert_int_equal(head->intent_source_rev, rev + 1);
    assert_int_equal(head->intent_value.whole, 9);
    /*
     * Another client, which does not know the new element, completes the edit first: as not made.
     */
    assert_int_equal(put(&fixture, 1, 1, rev + 1, true), SPILL_DONE);
    assert_int_equal(put(&fixture, 1, 9, rev + 1, true), SPILL_REFUSED_GUARD);
    spill_request_t complete = make_complete(&fixture, rev + 1, 1);
    complete.change.sum_added = read_document_whole(1);
    assert_done(&fixture, &complete);
    assert_sum(&fixture, 3, 3, 3);
    /* The same edit again, without interference. */
    prepare.rev = rev + 2;
    assert_done(&fixture, &prepare);
    assert_int_equal(put(&fixture, 1, 9, rev + 3, true), SPILL_DONE);
    complete = make_complete(&fixture, rev + 3, 1);
    complete.change.sum_added = read_document_whole(9);
    assert_done(&fixture, &complete);
    fixture_reopen(&fixture);
    assert_sum(&fixture, 3, 11, 3);
    assert_elements(&fixture, SPILL_WANT_FORWARD, 0, 10, "0=0 1=9 2=2");
    fixture_close(&fixture);
}

static void trim_reduces_sum(void **state)
{
    fixture_t fixture;
    open_referenced(&fixture, *state);
    append_ratings(&fixture, 0, 5);
    write_out(&fixture, 3);
    spill_request_t trim = make_request(&fixture, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.rev = read_head(&fixture)->rev;
    trim.change.watermark = 4;
    trim.change.sum_removed = (spill_sum_t){.values = 4, .whole = 6};
    assert_done(&fixture, &trim);
    assert_sum(&fixture, 1, 4, 1);
    spill_request_t empty = make_request(&fixture, SPILL_REQUEST_EMPTY_PAGE, 0);
    assert_done(&fixture, &empty);
    assert_refused(&fixture, &empty);
    assert_elements(&fixture, SPILL_WANT_FORWARD, 0, 10, "");
    fixture_close(&fixture);
}

static void trim_begins_an_empty_array(void **state)
{
    fixture_t fixture;
    open_referenced(&fixture, *state);
    make_empty_head(&fixture);
    spill_request_t trim = make_request(&fixture, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.rev = read_head(&fixture)->rev;
    trim.change.begins = true;
    trim.change.watermark = 1000;
    assert_done(&fixture, &trim);
    assert_int_equal(read_head(&fixture)->pages, 1000);
    append_ratings(&fixture, 1000, 3);
    write_out(&fixture, 2);
    assert_elements(&fixture, SPILL_WANT_FORWARD, 0, 10, "1000=1000 1001=1001");
    trim.rev = read_head(&fixture)->rev;
    trim.change.end = 1003;
    trim.change.watermark = 2000;
    assert_refused(&fixture, &trim);
    fixture_close(&fixture);
}

/* A run ends with the element that reaches its byte limit, if more elements may follow. */
static void assert_run(fixture_t *fixture, spill_request_t *read, int64_t bytes_most,
                       const char *expected)
{
    char text[256] = "";
    read->read.bytes_most = bytes_most;
    assert_done(fixture, read);
    const spill_run_t *run = &fixture->response.run;
    for (size_t i = 0; i < run->count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%lld ",
                 (long long)run->entries[i].seq);
    if (fixture->response.stopped)
        strcat(text, "...");
    assert_string_equal(text, expected);
}

static void runs_are_bounded_in_bytes(void **state)
{
    enum { SIZE = 17, COUNT = 9 };
    fixture_t fixture;
    open_referenced(&fixture, *state);
    append_ratings(&fixture, 0, COUNT);
    write_out(&fixture, COUNT);
    const spill_state_t *head = read_head(&fixture);
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, SPILL_ELEMENTS);
    read.read.watermark = head->watermark;
    read.read.pages = head->pages;
    read.read.limit = 1000;
    read.read.want = SPILL_WANT_FORWARD;
    assert_run(&fixture, &read, 0, "0 1 2 3 4 5 6 7 8 ");
    assert_run(&fixture, &read, 1, "0 ...");
    read.read.limit = 4;
    assert_run(&fixture, &read, COUNT * 2 * SIZE, "0 1 2 3 ");
    read.read.limit = 1000;
    read.read.seq = 7;
    assert_run(&fixture, &read, COUNT * 2 * SIZE, "7 8 ");
    read.read.want = SPILL_WANT_BACKWARD;
    read.read.seq = 5;
    assert_run(&fixture, &read, 0, "5 4 3 2 1 0 ");
    assert_run(&fixture, &read, 2 * SIZE, "5 4 ...");
    read.read.want = SPILL_WANT_FORWARD;
    /*
     * Any store may stop where it likes, within bounds, but must reach the end without omissions.
     */
    int64_t next = 0;
    for (int runs = 0; next < COUNT && runs < COUNT; runs++) {
        read.read.seq = next;
        read.read.bytes_most = 3 * SIZE;
        assert_done(&fixture, &read);
        const spill_run_t *run = &fixture.response.run;
        assert_in_range(run->count, 1, 6); /* a store may read up to twice the limit */
        for (size_t i = 0; i < run->count; i++)
            assert_int_equal(run->entries[i].seq, next++);
    }
    assert_int_equal(next, COUNT);
    fixture_close(&fixture);
}

/* Return the number of the element with this rating, which is its id here, or -1. */
static int64_t find_rating(fixture_t *fixture, int64_t page, double rating, int64_t from)
{
    const spill_state_t *head = read_head(fixture);
    int64_t pages = head->pages;
    spill_value_t id = {
        .data = (const uint8_t *)&rating, .size_bytes = sizeof rating, .type = BSON_TYPE_DOUBLE};
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, page);
    read.read.want = SPILL_WANT_ID;
    read.read.id = &id;
    read.read.seq = from;
    read.read.limit = 1;
    read.read.pages = pages;
    assert_done(fixture, &read);
    const spill_response_t *response = &fixture->response;
    if (page == SPILL_PAGE_WITH_ID) {
        assert_int_equal(response->state.present, response->run.count == 1);
        if (response->run.count == 1)
            assert_int_equal(response->state.page, response->run.entries[0].seq);
    }
    return response->run.count == 0 ? -1 : response->run.entries[0].seq;
}

static void elements_are_found_by_id(void **state)
{
    fixture_t fixture;
    open_referenced_with(&fixture, *state, "rating");
    append_ratings(&fixture, 0, 5);
    assert_int_equal(find_rating(&fixture, SPILL_HEAD, 3, 0), 3);
    assert_int_equal(put(&fixture, 0, 0, INCARNATION, false), SPILL_DONE);
    assert_int_equal(find_rating(&fixture, SPILL_PAGE_WITH_ID, 0, 0), -1); /* not committed */
    assert_int_equal(find_rating(&fixture, SPILL_HEAD, 0, 0), 0);
    spill_request_t cut = make_request(&fixture, SPILL_REQUEST_CUT, SPILL_HEAD);
    cut.rev = INCARNATION;
    cut.cut.slots = 1;
    cut.cut.bytes = 17;
    assert_done(&fixture, &cut);
    write_out(&fixture, 2);
    append_ratings(&fixture, 1, 1);
    assert_int_equal(find_rating(&fixture, SPILL_HEAD, 0, 0), -1);
    assert_int_equal(find_rating(&fixture, SPILL_PAGE_WITH_ID, 0, 0), 0);
    assert_int_equal(find_rating(&fixture, SPILL_PAGE_WITH_ID, 3, 0), -1);
    assert_int_equal(find_rating(&fixture, SPILL_PAGE_WITH_ID, 1, 0), 1);
    assert_int_equal(find_rating(&fixture, SPILL_PAGE_WITH_ID, 1, 2), -1);
    assert_int_equal(find_rating(&fixture, SPILL_HEAD, 1, 0), 5);
    remove_written(&fixture, 1);
    assert_int_equal(find_rating(&fixture, SPILL_PAGE_WITH_ID, 1, 0), -1);
    assert_int_equal(put(&fixture, 2, 7, INCARNATION + 9, true), SPILL_DONE);
    fixture_reopen(&fixture);
    assert_int_equal(find_rating(&fixture, SPILL_PAGE_WITH_ID, 2, 0), -1);
    assert_int_equal(find_rating(&fixture, SPILL_PAGE_WITH_ID, 7, 0), 2);
    fixture_close(&fixture);
}

/* An array of ids is not an id, although an index has entries for its values. */
static void array_is_not_an_id(void **state)
{
    fixture_t fixture;
    open_referenced_with(&fixture, *state, "rating");
    bson_t *document = BCON_NEW("rating", "[", BCON_INT32(8), BCON_INT32(9), "]");
    spill_value_t value = value_of(document);
    spill_request_t append = make_append(&fixture, SPILL_HEAD, &value, 1);
    append.create = true;
    assert_done(&fixture, &append);
    append_ratings(&fixture, 8, 1);
    spill_run_t run = {0};
    spill_run_add(&run, 0, &value);
    spill_request_t put = make_request(&fixture, SPILL_REQUEST_PUT_PAGE, 0);
    put.put_page.source_rev = INCARNATION;
    put.put_page.slots = 1;
    put.put_page.run = &run;
    assert_done(&fixture, &put);
    spill_request_t cut = make_request(&fixture, SPILL_REQUEST_CUT, SPILL_HEAD);
    cut.rev = INCARNATION;
    cut.cut.slots = 1;
    cut.cut.bytes = value.size_bytes;
    assert_done(&fixture, &cut);
    assert_int_equal(find_rating(&fixture, SPILL_PAGE_WITH_ID, 8, 0), -1);
    assert_int_equal(find_rating(&fixture, SPILL_HEAD, 8, 0), 1);
    spill_run_release(&run);
    bson_destroy(document);
    fixture_close(&fixture);
}

/* Compare a document of one element as other programs see it, and the element. */
static void assert_stored(fixture_t *fixture, int64_t seq, const char *expected,
                          const spill_value_t *element)
{
    bson_t document;
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, seq);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.seq = seq;
    read.read.limit = 1;
    assert_done(fixture, &read);
    const spill_response_t *response = &fixture->response;
    assert_int_equal(response->run.count, 1);
    spill_element_t there = spill_run_element(&response->run, 0);
    assert_true(spill_value_equal(&there.value, element));
    assert_int_equal(response->state.live_bytes, element->size_bytes);
    spill_render_page(&fixture->definition, &fixture->owner, &response->state, &response->run, NULL,
                      true, &document);
    char *json = bson_as_relaxed_extended_json(&document, NULL);
    assert_string_equal(json, expected);
    bson_free(json);
    bson_destroy(&document);
}

/* The element's own _id is stored under another name in its document, and is the element's id. */
static void own_id_of_element_is_kept(void **state)
{
    fixture_t fixture;
    open_referenced_with(&fixture, *state, "_id");
    bson_t *documents[] = {
        BCON_NEW("a", BCON_INT32(1), "_id", BCON_DOUBLE(7), "rating", BCON_INT32(2)),
        BCON_NEW("$b", BCON_INT32(2), "_id", BCON_DOUBLE(8), "", BCON_INT32(3))};
    const char *const expected[] = {
        "{ \"productId\" : \"ada\", \"a\" : 1, \"elementId\" : 7.0, \"rating\" : 2 }",
        "{ \"productId\" : \"ada\", \"$b\" : 2, \"elementId\" : 8.0, \"\" : 3 }"};
    spill_value_t values[2];
    for (int i = 0; i < 2; i++)
        values[i] = value_of(documents[i]);
    spill_request_t append = make_append(&fixture, SPILL_HEAD, values, 2);
    append.create = true;
    assert_done(&fixture, &append);
    assert_int_equal(find_rating(&fixture, SPILL_HEAD, 8, 0), 1); /* in the journal */
    int64_t bytes = 0;
    for (int64_t seq = 0; seq < 2; seq++) {
        spill_run_t run = {0};
        spill_run_add(&run, seq, &values[seq]);
        spill_request_t put = make_request(&fixture, SPILL_REQUEST_PUT_PAGE, seq);
        put.put_page.source_rev = INCARNATION;
        put.put_page.first = seq;
        put.put_page.slots = 1;
        put.put_page.run = &run;
        assert_done(&fixture, &put);
        spill_run_release(&run);
        bytes += values[seq].size_bytes;
    }
    spill_request_t cut = make_request(&fixture, SPILL_REQUEST_CUT, SPILL_HEAD);
    cut.rev = INCARNATION;
    cut.cut.slots = 2;
    cut.cut.bytes = bytes;
    assert_done(&fixture, &cut);
    fixture_reopen(&fixture);
    for (int64_t seq = 0; seq < 2; seq++)
        assert_stored(&fixture, seq, expected[seq], &values[seq]);
    assert_int_equal(find_rating(&fixture, SPILL_PAGE_WITH_ID, 7, 0), 0);
    assert_int_equal(find_rating(&fixture, SPILL_PAGE_WITH_ID, 8, 0), 1);
    assert_int_equal(find_rating(&fixture, SPILL_PAGE_WITH_ID, 9, 0), -1);
    /* A document that replaces another may also have names that begin with `$`. */
    spill_run_t run = {0};
    spill_run_add(&run, 0, &values[1]);
    spill_request_t put = make_request(&fixture, SPILL_REQUEST_PUT_PAGE, 0);
    put.put_page.source_rev = INCARNATION + 9;
    put.put_page.first = 0;
    put.put_page.slots = 1;
    put.put_page.run = &run;
    put.put_page.replaces = true;
    assert_done(&fixture, &put);
    assert_stored(&fixture, 0, expected[1], &values[1]);
    spill_run_release(&run);
    for (int i = 0; i < 2; i++)
        bson_destroy(documents[i]);
    fixture_close(&fixture);
}

static void runs_skip_removed_elements(void **state)
{
    fixture_t fixture;
    open_referenced(&fixture, *state);
    append_ratings(&fixture, 0, 40);
    write_out(&fixture, 40);
    for (int64_t seq = 2; seq < 38; seq++)
        remove_written(&fixture, seq);
    assert_elements(&fixture, SPILL_WANT_FORWARD, 0, 3, "0=0 1=1 38=38");
    assert_elements(&fixture, SPILL_WANT_FORWARD, 2, 1, "38=38");
    assert_elements(&fixture, SPILL_WANT_BACKWARD, 37, 1, "1=1");
    assert_elements(&fixture, SPILL_WANT_BACKWARD, 100, 4, "39=39 38=38 1=1 0=0");
    fixture_close(&fixture);
}

void add_referenced_tests(suite_t *suite)
{
    SUITE_ADD(suite, cut_moves_several_elements);
    SUITE_ADD(suite, documents_match_published_schema);
    SUITE_ADD(suite, removed_element_leaves_document);
    SUITE_ADD(suite, removed_in_the_journal);
    SUITE_ADD(suite, edit_is_put_once);
    SUITE_ADD(suite, trim_reduces_sum);
    SUITE_ADD(suite, trim_begins_an_empty_array);
    SUITE_ADD(suite, runs_are_bounded_in_bytes);
    SUITE_ADD(suite, elements_are_found_by_id);
    SUITE_ADD(suite, array_is_not_an_id);
    SUITE_ADD(suite, own_id_of_element_is_kept);
    SUITE_ADD(suite, runs_skip_removed_elements);
}
