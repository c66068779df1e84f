/* Layout subset: the highest-ranked elements, in the head's summary. */
#include "suite.h"

#include "bson/value.h"
#include "store/render.h"

#include <stdlib.h>

enum { BATCH_MAX = 16 };

static void open_top(fixture_t *fixture, const contract_kind_t *kind, int64_t count,
                     const char *sort_field)
{
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "reviews-subset", "top", NULL), SPILL_OK);
    definition.op_window = 3;
    definition.top_count = count;
    strcpy(definition.sort_field, sort_field);
    fixture_open_with(fixture, kind, &definition);
}

static spill_value_t value_of(const bson_t *document)
{
    return (spill_value_t){
        .data = bson_get_data(document), .size_bytes = document->len, .type = BSON_TYPE_DOCUMENT};
}

/* Make a rating: "5", "4.5", "date 7", "text"; NULL: none. */
static bson_t *make_review(const char *rating)
{
    bson_t *review = bson_new();
    if (rating && strncmp(rating, "date ", 5) == 0)
        BSON_APPEND_DATE_TIME(review, "rating", strtoll(rating + 5, NULL, 10));
    else if (rating && strpbrk(rating, ".n"))
        BSON_APPEND_DOUBLE(review, "rating", strtod(rating, NULL));
    else if (rating && rating[0] == '[')
        BCON_APPEND(review, "rating", "[", BCON_INT32(9), "]");
    else if (rating && strpbrk(rating, "abcdefghijklm"))
        BSON_APPEND_UTF8(review, "rating", rating);
    else if (rating)
        BSON_APPEND_INT64(review, "rating", strtoll(rating, NULL, 10));
    return review;
}

/* Append reviews with these ratings (the list ends with "") in one step. */
static void append(fixture_t *fixture, const char *const *ratings)
{
    bson_t *reviews[BATCH_MAX];
    spill_value_t values[BATCH_MAX];
    size_t count = 0;
    for (; !ratings[count] || ratings[count][0] != '\0'; count++) {
        assert_true(count < BATCH_MAX);
        reviews[count] = make_review(ratings[count]);
        values[count] = value_of(reviews[count]);
    }
    spill_request_t append = make_append(fixture, SPILL_HEAD, values, count);
    append.create = true;
    assert_done(fixture, &append);
    while (count > 0)
        bson_destroy(reviews[--count]);
}

#define APPEND(fixture, ...) append(fixture, (const char *const[]){__VA_ARGS__, ""})

static const spill_state_t *read_head(fixture_t *fixture)
{
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    read.read.want_top = true;
    assert_done(fixture, &read);
    return &fixture->response.state;
}

/*
 * Compare "3 1 0 | 2": the numbers in the top, and how many of them the summary shows. The shown
 * elements must match.
 */
static void assert_top(fixture_t *fixture, const char *expected)
{
    char text[256] = "";
    const spill_state_t *head = read_head(fixture);
    const spill_run_t *run = &fixture->response.top_run;
    for (size_t i = 0; i < head->top.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%lld ",
                 (long long)head->top.at[i].seq);
    snprintf(text + strlen(text), sizeof text - strlen(text), "| %zu", head->top.shown);
    assert_string_equal(text, expected);
    assert_int_equal(run->count, head->top.shown);
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        spill_top_entry_t entry =
            spill_top_entry_of(&fixture->definition, element.seq, &element.value);
        spill_top_t one = {.at = &entry, .count = 1}, kept = {.at = &head->top.at[i], .count = 1};
        assert_true(spill_top_equal(&one, &kept));
    }
}

/* Write the head's whole journal to documents. */
static void write_out(fixture_t *fixture)
{
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    assert_int_equal(spill_store_call(fixture->store, &read, &head, NULL), SPILL_OK);
    for (int64_t seq = head.state.first; seq < spill_state_end(&head.state); seq++) {
        spill_run_t one = {0};
        spill_element_t element = spill_run_element(&head.run, (size_t)(seq - head.state.first));
        spill_run_add(&one, seq, &element.value);
        spill_request_t put = make_request(fixture, SPILL_REQUEST_PUT_PAGE, seq);
        put.put_page.source_rev = head.state.rev;
        put.put_page.first = seq;
        put.put_page.slots = 1;
        put.put_page.run = &one;
        assert_done(fixture, &put);
        spill_run_release(&one);
    }
    spill_request_t cut = make_request(fixture, SPILL_REQUEST_CUT, SPILL_HEAD);
    cut.rev = head.state.rev;
    cut.cut.pages = head.state.pages;
    cut.cut.first = head.state.first;
    cut.cut.slots = spill_state_slots(&head.state);
    cut.cut.bytes = spill_run_bytes(&head.run);
    assert_done(fixture, &cut);
    spill_response_release(&head);
}

/* Find the highest-ranked documents from the trim watermark on, without number `without`. */
static void read_below(fixture_t *fixture, int64_t low, int64_t without, int64_t limit,
                       const spill_top_entry_t *below, spill_response_t *top_n)
{
    int64_t pages = read_head(fixture)->pages;
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, SPILL_ELEMENTS);
    read.read.watermark = low;
    read.read.pages = pages;
    read.read.seq = without;
    read.read.want = SPILL_WANT_TOP_N;
    read.read.limit = limit;
    read.read.below = below;
    assert_int_equal(spill_store_call(fixture->store, &read, top_n, NULL), SPILL_OK);
}

static void read_top_n(fixture_t *fixture, int64_t low, int64_t without, int64_t limit,
                       spill_response_t *top_n)
{
    read_below(fixture, low, without, limit, NULL, top_n);
}

/* After each of the highest-ranked elements, a search below it must return the rest. */
static void assert_each_below(fixture_t *fixture, int64_t limit)
{
    spill_response_t all = SPILL_RESPONSE_INIT, below = SPILL_RESPONSE_INIT;
    read_top_n(fixture, 0, -1, 1000, &all);
    for (size_t i = 0; i < all.top_n.count; i++) {
        size_t left = all.top_n.count - i - 1;
        read_below(fixture, 0, -1, limit, &all.top_n.at[i], &below);
        assert_int_equal(below.top_n.count, left < (size_t)limit ? left : (size_t)limit);
        for (size_t k = 0; k < below.top_n.count; k++)
            assert_int_equal(below.top_n.at[k].seq, all.top_n.at[i + 1 + k].seq);
    }
    spill_response_release(&all);
    spill_response_release(&below);
}

static void assert_top_n(fixture_t *fixture, int64_t low, int64_t without, int64_t limit,
                         const char *expected)
{
    char text[256] = "";
    spill_response_t top_n = SPILL_RESPONSE_INIT;
    read_top_n(fixture, low, without, limit, &top_n);
    for (size_t i = 0; i < top_n.top_n.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i > 0 ? " " : "",
                 (long long)top_n.top_n.at[i].seq);
    assert_string_equal(text, expected);
    assert_int_equal(top_n.run.count, top_n.top_n.shown);
    for (size_t i = 0; i < top_n.run.count; i++)
        assert_int_equal(top_n.run.entries[i].seq, top_n.top_n.at[i].seq);
    spill_response_release(&top_n);
}

/* Send a step on the head. With a refill, first expect a refusal without it. */
static spill_outcome_t send_step(fixture_t *fixture, spill_request_t *request, bool refilled)
{
    spill_response_t top_n = SPILL_RESPONSE_INIT;
    bool trim = request->kind == SPILL_REQUEST_TRIM;
    request->rev = read_head(fixture)->rev;
    if (refilled) { /* more than needed: also without the leaving element */
        read_top_n(fixture, trim ? request->change.watermark : 0, trim ? -1 : request->change.seq,
                   fixture->definition.top_count, &top_n);
        request->change.refill = &top_n.top_n;
        request->change.refill_run = &top_n.run;
    }
    spill_outcome_t outcome = call(fixture, request);
    request->change.refill = NULL;
    request->change.refill_run = NULL;
    spill_response_release(&top_n);
    return outcome;
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void summary_keeps_highest(void **state)
{
    fixture_t fixture;
    open_top(&fixture, *state, 3, "rating");
    APPEND(&fixture, "2");
    assert_top(&fixture, "0 | 1");
    APPEND(&fixture, "5", "1", "5", "3");
    assert_top(&fixture, "3 1 4 | 3"); /* of two equal ratings the newer ranks higher */
    write_out(&fixture);
    assert_top(&fixture, "3 1 4 | 3");
    APPEND(&fixture, "4");
    assert_top(&fixture, "3 1 5 | 3");
    APPEND(&fixture, "1");
    assert_top(&fixture, "3 1 5 | 3");
    APPEND(&fixture, "7", "4.5", "6");
    assert_top(&fixture, "7 9 3 | 3");
    APPEND(&fixture, "5.5", "7", "6"); /* two of these, with another one between them */
    assert_top(&fixture, "11 7 12 | 3");
    fixture_reopen(&fixture);
    assert_top(&fixture, "11 7 12 | 3");
    fixture_close(&fixture);
}

static void values_rank_by_type_class(void **state)
{
    fixture_t fixture;
    open_top(&fixture, *state, 7, "rating");
    APPEND(&fixture, NULL, "text", "9007199254740993", "9007199254740992.0", "date 1", "nan");
    APPEND(&fixture, "[]", "-inf", "date 2", "-0.0", "0");
    assert_top(&fixture, "8 4 2 3 10 9 7 | 7");
    write_out(&fixture);
    assert_top_n(&fixture, 0, -1, 20, "8 4 2 3 10 9 7 6 5 1 0");
    assert_top_n(&fixture, 0, -1, 8, "8 4 2 3 10 9 7 6");
    assert_top_n(&fixture, 0, 4, 2, "8 2");
    assert_top_n(&fixture, 7, -1, 20, "8 10 9 7");
    assert_top_n(&fixture, 0, 6, 9, "8 4 2 3 10 9 7 5 1");
    assert_each_below(&fixture, 1);
    assert_each_below(&fixture, 3);
    fixture_close(&fixture);
}

static void summary_keeps_newest(void **state)
{
    fixture_t fixture;
    open_top(&fixture, *state, 2, "");
    APPEND(&fixture, "5", "4", "3");
    assert_top(&fixture, "2 1 | 2");
    write_out(&fixture);
    APPEND(&fixture, "1");
    assert_top(&fixture, "3 2 | 2");
    assert_top_n(&fixture, 0, -1, 2, "2 1");
    assert_top_n(&fixture, 0, 2, 9, "1 0");
    assert_each_below(&fixture, 2);
    spill_request_t remove = make_request(&fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    remove.change.seq = 3;
    assert_int_equal(send_step(&fixture, &remove, true), SPILL_DONE);
    assert_top(&fixture, "2 1 | 2");
    fixture_close(&fixture);
}

static void documents_match_published_schema(void **state)
{
    fixture_t fixture;
    open_top(&fixture, *state, 3, "rating");
    APPEND(&fixture, "2", "5", "4", "1");
    bson_t document;
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = 10;
    read.read.want_top = true;
    read.read.want_fields = true;
    assert_done(&fixture, &read);
    spill_response_t *response = &fixture.response;
    spill_render_head(&fixture.definition, &response->state, response->fields, &response->run,
                      &response->top_run, NULL, true, &document);
    char *json = bson_as_relaxed_extended_json(&document, NULL);
    assert_string_equal(json, "{ \"_id\" : \"ada\", \"reviewSummary\" : { \"topReviews\" : [ "
                              "{ \"rating\" : 5 }, { \"rating\" : 4 }, { \"rating\" : 2 } ], "
                              "\"totalCount\" : 4, \"averageRating\" : 3.0 } }");
    bson_free(json);
    bson_destroy(&document);
    fixture_close(&fixture);
}

/* An append between the search and the step is in the journal, not in the search result. */
static void leaving_element_is_replaced(void **state)
{
    fixture_t fixture;
    open_top(&fixture, *state, 2, "rating");
    APPEND(&fixture, "3", "5", "4", "1");
    write_out(&fixture);
    APPEND(&fixture, "2");
    assert_top(&fixture, "1 2 | 2");
    spill_request_t prepare = make_request(&fixture, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.change.seq = 1;
    prepare.change.intent_page = 1;
    assert_int_equal(send_step(&fixture, &prepare, false), SPILL_REFUSED_GUARD);
    spill_response_t top_n = SPILL_RESPONSE_INIT;
    read_top_n(&fixture, 0, 1, 2, &top_n);
    prepare.rev = read_head(&fixture)->rev;
    prepare.change.refill = &top_n.top_n;
    prepare.change.refill_run = &top_n.run;
    APPEND(&fixture, "3"); /* not in the top yet */
    assert_done(&fixture, &prepare);
    assert_top(&fixture, "2 5 | 2");
    spill_request_t pull = make_request(&fixture, SPILL_REQUEST_DELETE, 1);
    pull.change.seq = 1;
    assert_done(&fixture, &pull);
    spill_request_t complete = make_request(&fixture, SPILL_REQUEST_COMPLETE, SPILL_HEAD);
    complete.change.seq = 1;
    complete.change.intent_page = 1;
    assert_int_equal(send_step(&fixture, &complete, false), SPILL_DONE);
    assert_top(&fixture, "2 5 | 2");
    assert_top_n(&fixture, 0, -1, 9, "2 0 3");
    /* Removing an element outside the top needs no refill. */
    prepare.change.seq = 3;
    prepare.change.intent_page = 3;
    prepare.change.refill = NULL;
    prepare.change.refill_run = NULL;
    assert_int_equal(send_step(&fixture, &prepare, false), SPILL_DONE);
    assert_top(&fixture, "2 5 | 2");
    spill_response_release(&top_n);
    fixture_close(&fixture);
}

/* Many equal ratings and many different ones, through every form of query that a server gets. */
static void search_below_rank_is_complete(void **state)
{
    enum { EACH = 14, BATCHES = 14 };
    fixture_t fixture;
    open_top(&fixture, *state, 7, "rating");
    for (int batch = 0; batch < BATCHES; batch++) {
        char texts[EACH][32];
        const char *ratings[EACH + 1] = {0};
        for (int i = 0; i < EACH; i++) {
            int number = batch * EACH + i;
            if (number % 3 != 0)
                strcpy(texts[i], number % 2 ? "5" : "5.0");
            else
                snprintf(texts[i], sizeof texts[i], "%s%d", number % 7 == 0 ? "date " : "",
                         number * 7919 % 10007 - 5000);
            ratings[i] = texts[i];
        }
        ratings[EACH] = "";
        append(&fixture, ratings);
        write_out(&fixture);
    }
    spill_response_t all = SPILL_RESPONSE_INIT, below = SPILL_RESPONSE_INIT;
    read_top_n(&fixture, 0, -1, 1000, &all);
    assert_int_equal(all.top_n.count, EACH * BATCHES);
    for (size_t i = 1; i < all.top_n.count; i++)
        assert_true(spill_top_compare(&all.top_n.at[i - 1], &all.top_n.at[i]) > 0);
    for (size_t i = 0; i < all.top_n.count; i += 13) {
        read_below(&fixture, 0, -1, 1, &all.top_n.at[i], &below);
        if (i + 1 < all.top_n.count)
            assert_int_equal(below.top_n.at[0].seq, all.top_n.at[i + 1].seq);
        assert_int_equal(below.top_n.count, i + 1 < all.top_n.count);
    }
    spill_response_release(&all);
    spill_response_release(&below);
    fixture_close(&fixture);
}

/* Set the rating of a written element, as an edit does. */
static void edit_written(fixture_t *fixture, int64_t seq, const char *rating, bool refilled)
{
    bson_t *review = make_review(rating);
    spill_value_t value = value_of(review);
    spill_run_t run = {0};
    spill_run_add(&run, seq, &value);
    spill_request_t prepare = make_request(fixture, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.change.seq = seq;
    prepare.change.intent_page = seq;
    prepare.change.edit = true;
    assert_int_equal(send_step(fixture, &prepare, false), SPILL_DONE);
    spill_request_t put = make_request(fixture, SPILL_REQUEST_PUT_PAGE, seq);
    put.put_page.source_rev = read_head(fixture)->rev;
    put.put_page.first = seq;
    put.put_page.slots = 1;
    put.put_page.run = &run;
    put.put_page.replaces = true;
    assert_done(fixture, &put);
    spill_request_t complete = make_request(fixture, SPILL_REQUEST_COMPLETE, SPILL_HEAD);
    complete.change.seq = seq;
    complete.change.intent_page = seq;
    complete.change.element = &value;
    if (refilled)
        assert_int_equal(send_step(fixture, &complete, false), SPILL_REFUSED_GUARD);
    assert_int_equal(send_step(fixture, &complete, refilled), SPILL_DONE);
    spill_run_release(&run);
    bson_destroy(review);
}

static void edits_move_elements(void **state)
{
    fixture_t fixture;
    open_top(&fixture, *state, 2, "rating");
    APPEND(&fixture, "3", "5", "4", "1");
    write_out(&fixture);
    edit_written(&fixture, 3, "6", false); /* into the top */
    assert_top(&fixture, "3 1 | 2");
    edit_written(&fixture, 1, "2", true); /* out of the top */
    assert_top(&fixture, "3 2 | 2");
    edit_written(&fixture, 3, "3.5", true); /* within the top */
    assert_top(&fixture, "2 3 | 2");
    edit_written(&fixture, 0, "1", false); /* outside the top */
    assert_top(&fixture, "2 3 | 2");
    assert_top_n(&fixture, 0, -1, 9, "2 3 1 0");
    APPEND(&fixture, "1");
    bson_t *review = make_review("9");
    spill_value_t value = value_of(review);
    spill_request_t edit = make_request(&fixture, SPILL_REQUEST_EDIT, SPILL_HEAD);
    edit.change.seq = 4;
    edit.change.element = &value;
    assert_int_equal(send_step(&fixture, &edit, false), SPILL_DONE);
    assert_top(&fixture, "4 2 | 2");
    bson_destroy(review);
    review = make_review(NULL);
    value = value_of(review);
    assert_int_equal(send_step(&fixture, &edit, false), SPILL_REFUSED_GUARD);
    assert_int_equal(send_step(&fixture, &edit, true), SPILL_DONE);
    assert_top(&fixture, "2 3 | 2");
    bson_destroy(review);
    fixture_close(&fixture);
}

/* Rank and size stay the same; only the shown element changes. */
static void edit_with_same_rank_is_shown(void **state)
{
    fixture_t fixture;
    bson_t *review = make_review("ccc");
    spill_value_t value = value_of(review);
    open_top(&fixture, *state, 2, "");
    APPEND(&fixture, "aaa", "bbb", "aaa");
    write_out(&fixture);
    edit_written(&fixture, 1, "ccc", true);
    assert_top(&fixture, "2 1 | 2");
    spill_element_t shown = spill_run_element(&fixture.response.top_run, 1);
    assert_true(spill_value_equal(&shown.value, &value));
    bson_destroy(review);
    fixture_close(&fixture);
}

static void trim_refills_summary(void **state)
{
    fixture_t fixture;
    open_top(&fixture, *state, 2, "rating");
    APPEND(&fixture, "9", "8", "1", "2", "3");
    write_out(&fixture);
    APPEND(&fixture, "7", "2");
    assert_top(&fixture, "0 1 | 2");
    spill_request_t trim = make_request(&fixture, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.change.watermark = 1;
    assert_int_equal(send_step(&fixture, &trim, false), SPILL_REFUSED_GUARD);
    assert_int_equal(send_step(&fixture, &trim, true), SPILL_DONE);
    assert_top(&fixture, "1 5 | 2");
    trim.change.watermark = 3;
    assert_int_equal(send_step(&fixture, &trim, true), SPILL_DONE);
    assert_top(&fixture, "5 4 | 2");
    trim.change.watermark = 6;
    assert_int_equal(send_step(&fixture, &trim, true), SPILL_DONE);
    assert_top(&fixture, "6 | 1");
    fixture_close(&fixture);
}

/* A recount applies only to the head as it was counted: at its rev, without an append since. */
static void recount_rebuilds_summary(void **state)
{
    fixture_t fixture;
    open_top(&fixture, *state, 2, "rating");
    APPEND(&fixture, "9", "8", "1");
    write_out(&fixture);
    APPEND(&fixture, "7");
    spill_response_t top_n = SPILL_RESPONSE_INIT;
    read_top_n(&fixture, 0, 0, 1, &top_n); /* without the highest */
    spill_top_entry_t highest = {.seq = 3, .size_bytes = 1, .rank = top_n.top_n.at[0].rank};
    spill_top_add(&top_n.top_n, 2, &highest);
    spill_request_t recount = make_request(&fixture, SPILL_REQUEST_RECOUNT, SPILL_HEAD);
    recount.rev = read_head(&fixture)->rev;
    recount.recount.end = 4;
    recount.recount.sum = (spill_sum_t){.values = 4, .whole = 20, .high = 0.5};
    recount.recount.refill = &top_n.top_n;
    recount.recount.refill_run = &top_n.run;
    APPEND(&fixture, "2");
    assert_refused(&fixture, &recount);
    recount.recount.end = 5;
    recount.rev--;
    assert_refused(&fixture, &recount);
    recount.rev++;
    assert_top(&fixture, "0 1 | 2");
    assert_done(&fixture, &recount);
    assert_refused(&fixture, &recount);
    fixture_reopen(&fixture);
    assert_top(&fixture, "3 1 | 0"); /* the refill did not contain the highest */
    assert_true(spill_sum_equal(&read_head(&fixture)->sum, &recount.recount.sum));
    assert_int_equal(read_head(&fixture)->rev, recount.rev + 1);
    recount.rev++;
    spill_top_remove(&top_n.top_n, 3);
    assert_done(&fixture, &recount);
    assert_top(&fixture, "1 | 1");
    spill_request_t prepare = make_request(&fixture, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.rev = recount.rev + 1;
    prepare.change.seq = 2;
    prepare.change.intent_page = 2;
    assert_done(&fixture, &prepare);
    recount.rev += 2;
    assert_refused(&fixture, &recount);
    spill_response_release(&top_n);
    fixture_close(&fixture);
}

/* The summary shows elements up to half of the head's bytes; of the others it keeps the rank. */
static void summary_shows_elements_that_fit(void **state)
{
    fixture_t fixture;
    open_top(&fixture, *state, 3, "rating");
    fixture.definition.bounds.head_bytes_max = 20000;
    static const struct {
        int rating;
        uint32_t size;
        const char *expected;
    } steps[] = {{2, 3000, "0 | 1"},    {3, 9000, "1 0 | 1"},   {1, 50, "1 0 2 | 1"},
                 {4, 100, "3 1 0 | 2"}, {5, 4000, "4 3 1 | 2"}, {0, 50, "4 3 1 | 2"}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        spill_value_t text = text_value(steps[i].size, 'x');
        bson_t *review = BCON_NEW("rating", BCON_INT32(steps[i].rating));
        spill_value_append(&text, review, "text");
        spill_value_t value = value_of(review);
        spill_request_t append = make_append(&fixture, SPILL_HEAD, &value, 1);
        append.create = true;
        assert_done(&fixture, &append);
        assert_top(&fixture, steps[i].expected);
        bson_free((void *)text.data);
        bson_destroy(review);
    }
    write_out(&fixture);
    spill_request_t prepare = make_request(&fixture, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.change.seq = 4;
    prepare.change.intent_page = 4;
    assert_int_equal(send_step(&fixture, &prepare, true), SPILL_DONE);
    assert_top(&fixture, "3 1 0 | 2");
    fixture_close(&fixture);
}

void add_top_tests(suite_t *suite)
{
    SUITE_ADD(suite, summary_keeps_highest);
    SUITE_ADD(suite, values_rank_by_type_class);
    SUITE_ADD(suite, summary_keeps_newest);
    suite_add(suite, "the summary matches the published schema", documents_match_published_schema);
    SUITE_ADD(suite, leaving_element_is_replaced);
    SUITE_ADD(suite, search_below_rank_is_complete);
    SUITE_ADD(suite, edits_move_elements);
    SUITE_ADD(suite, edit_with_same_rank_is_shown);
    SUITE_ADD(suite, trim_refills_summary);
    SUITE_ADD(suite, recount_rebuilds_summary);
    SUITE_ADD(suite, summary_shows_elements_that_fit);
}
