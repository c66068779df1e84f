/* Documents in the published schemas, and the bound on their size. */
#include "definition/schema.h"
#include "store/render.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A state, its elements and its operations; an owner. */
typedef struct subject {
    spill_definition_t definition;
    bson_t owner_storage;
    spill_value_t owner;
    bson_t fields;
    spill_state_t state;
    spill_run_t run;
    spill_ops_t ops;
} subject_t;

static void open_subject(subject_t *subject, const char *preset)
{
    *subject = (subject_t){0};
    spill_code_t code = spill_definition_preset(&subject->definition, preset, preset, NULL);
    assert_int_equal(code, SPILL_OK);
    bson_init(&subject->owner_storage);
    subject->owner = spill_value_from_utf8(&subject->owner_storage, "ada");
    bson_init(&subject->fields);
    spill_value_append(&subject->owner, &subject->fields, "_id");
    subject->state = (spill_state_t){.present = true, .incarnation = 1000, .rev = 1002};
    subject->state.fields_bytes = subject->fields.len;
}

static void close_subject(subject_t *subject)
{
    bson_destroy(&subject->owner_storage);
    bson_destroy(&subject->fields);
    spill_state_release(&subject->state);
    spill_run_release(&subject->run);
    spill_ops_release(&subject->ops);
}

/*
 * Append elements "user0", "user1", ... with the numbers from state.first on, without deleted
 * numbers.
 */
static void add_users(subject_t *subject, int64_t count)
{
    bson_t storage = BSON_INITIALIZER;
    int64_t seq = subject->state.first;
    for (int64_t i = 0; i < count; i++, seq++) {
        while (spill_seqs_contains(&subject->state.deleted, seq))
            seq++;
        char name[32];
        snprintf(name, sizeof name, "user%02d", (int)seq);
        bson_reinit(&storage);
        spill_value_t value = spill_value_from_utf8(&storage, name);
        spill_run_add(&subject->run, seq, &value);
    }
    subject->state.live = count;
    subject->state.live_bytes = spill_run_bytes(&subject->run);
    bson_destroy(&storage);
}

static void assert_head(const subject_t *subject, bool plain, const char *expected)
{
    bson_t document;
    spill_render_head(&subject->definition, &subject->state, &subject->fields, &subject->run, NULL,
                      &subject->ops, plain, &document);
    char *json = bson_as_relaxed_extended_json(&document, NULL);
    assert_string_equal(json, expected);
    bson_free(json);
    bson_destroy(&document);
}

static void assert_page(const subject_t *subject, bool plain, const char *expected)
{
    bson_t document;
    spill_render_page(&subject->definition, &subject->owner, &subject->state, &subject->run,
                      &subject->ops, plain, &document);
    char *json = bson_as_relaxed_extended_json(&document, NULL);
    assert_string_equal(json, expected);
    bson_free(json);
    bson_destroy(&document);
}

/* ---- published documents --------------------------------------------------------------------- */

static void a_head_of_the_feed(void **state)
{
    (void)state;
    subject_t subject;
    open_subject(&subject, "feed");
    BSON_APPEND_UTF8(&subject.fields, "name", "Ada");
    add_users(&subject, 2);
    assert_head(&subject, true,
                "{ \"_id\" : \"ada\", \"name\" : \"Ada\", \"activities\" : [ \"user00\", "
                "\"user01\" ], \"activityCount\" : 2 }");
    subject.state.sealed = true;
    subject.state.pages = 3;
    subject.state.total = 2400;
    subject.state.removed = 1;
    subject.state.watermark = 9;
    assert_head(&subject, true,
                "{ \"_id\" : \"ada\", \"name\" : \"Ada\", \"activities\" : [ \"user00\", "
                "\"user01\" ], \"activityCount\" : 2390, \"hasOverflow\" : true, "
                "\"overflowPages\" : 3 }");
    close_subject(&subject);
}

/* Order newest-first; deleted numbers and sequence numbers stay the same. */
static void arrays_that_grow_at_the_front(void **state)
{
    (void)state;
    subject_t subject;
    open_subject(&subject, "feed");
    subject.definition.order = SPILL_ARRAY_NEWEST_FIRST;
    spill_seqs_insert(&subject.state.deleted, 1);
    add_users(&subject, 3);
    assert_head(&subject, true,
                "{ \"_id\" : \"ada\", \"activities\" : [ \"user03\", \"user02\", \"user00\" ], "
                "\"activityCount\" : 4 }");
    assert_page(&subject, true,
                "{ \"userId\" : \"ada\", \"page\" : 0, \"activities\" : [ \"user03\", "
                "\"user02\", \"user00\" ], \"count\" : 3 }");
    close_subject(&subject);
}

static void a_page_of_the_feed(void **state)
{
    (void)state;
    subject_t subject;
    open_subject(&subject, "feed");
    subject.state.page = 7;
    subject.state.first = 40;
    add_users(&subject, 1);
    assert_page(&subject, true,
                "{ \"userId\" : \"ada\", \"page\" : 7, \"activities\" : [ \"user40\" ], "
                "\"count\" : 1 }");
    close_subject(&subject);
}

static void a_feed_that_keeps_the_newest_counts_exactly(void **state)
{
    (void)state;
    subject_t subject;
    open_subject(&subject, "feed-recent");
    subject.state.first = 1000;
    subject.state.pages = 1;
    subject.state.removed = 4;
    subject.state.watermark = 10;
    add_users(&subject, 1);
    assert_head(&subject, true,
                "{ \"_id\" : \"ada\", \"activities\" : [ \"user1000\" ], \"activityCount\" : 987, "
                "\"hasOverflow\" : true, \"overflowPages\" : 1 }");
    close_subject(&subject);
}

static void sales_of_the_manual(void **state)
{
    (void)state;
    subject_t subject;
    open_subject(&subject, "sales");
    add_users(&subject, 1);
    assert_head(&subject, true, "{ \"_id\" : \"ada\", \"customers_purchased\" : [ \"user00\" ] }");
    subject.state.sealed = true;
    subject.state.pages = 1;
    assert_head(&subject, true,
                "{ \"_id\" : \"ada\", \"customers_purchased\" : [ \"user00\" ], "
                "\"has_extras\" : true }");
    assert_page(&subject, true,
                "{ \"book_id\" : \"ada\", \"customers_purchased_extra\" : [ \"user00\" ] }");
    close_subject(&subject);
}

/* ---- bookkeeping ----------------------------------------------------------------------------- */

/* Elements of the open page are removed, which the head does not count. */
static void a_count_is_not_negative(void **state)
{
    (void)state;
    subject_t subject;
    open_subject(&subject, "feed");
    subject.state.pages = 1;
    subject.state.sealed = true;
    subject.state.total = 2;
    subject.state.removed = 3;
    assert_head(&subject, true,
                "{ \"_id\" : \"ada\", \"activities\" : [  ], \"activityCount\" : 0, "
                "\"hasOverflow\" : true, \"overflowPages\" : 1 }");
    close_subject(&subject);
}

static void a_head_with_its_bookkeeping(void **state)
{
    (void)state;
    subject_t subject;
    open_subject(&subject, "sales");
    spill_seqs_insert(&subject.state.deleted, 1);
    add_users(&subject, 1);
    subject.state.op_count = 1;
    subject.state.removed = 2;
    subject.state.intent = true;
    subject.state.intent_seq = 4;
    spill_op_entry_t entry = {.ordinal = 0, .seq = 0, .count = 1, .id_bytes = 2, .id = "id"};
    spill_ops_push(&subject.ops, &entry, 10);
    assert_head(&subject, false,
                "{ \"_id\" : \"ada\", \"customers_purchased\" : [ \"user00\" ], \"spill\" : { "
                "\"customers_purchased\" : { \"epoch\" : 1000, \"rev\" : 1002, \"first\" : 0, "
                "\"n\" : 1, \"gone\" : [ 1 ], \"ops\" : [ { \"id\" : { \"$binary\" : { "
                "\"base64\" : \"aWQ=\", \"subType\" : \"00\" } }, \"count\" : 1, "
                "\"after\" : 1 } ], \"pages\" : 0, \"low\" : 0, \"removed\" : 2, \"total\" : 0, "
                "\"intent\" : { "
                "\"seq\" : 4, \"page\" : 0 } } } }");
    close_subject(&subject);
}

static void a_page_with_its_bookkeeping(void **state)
{
    (void)state;
    subject_t subject;
    open_subject(&subject, "feed-recent");
    subject.state.first = 12;
    subject.state.page = 2;
    subject.state.source_rev = 1002;
    add_users(&subject, 1);
    assert_page(&subject, false,
                "{ \"_id\" : { \"owner\" : \"ada\", \"page\" : 2 }, \"userId\" : \"ada\", "
                "\"page\" : 2, \"activities\" : [ \"user12\" ], \"count\" : 1, \"spill\" : { "
                "\"epoch\" : 1000, \"rev\" : 1002, \"first\" : 12, \"n\" : 0, \"src\" : 1002 } }");
    close_subject(&subject);
}

static void an_older_longer_window_is_not_shown(void **state)
{
    (void)state;
    subject_t subject;
    open_subject(&subject, "sales");
    for (int64_t i = 0; i < 5; i++) {
        spill_op_entry_t entry = {.ordinal = i, .id_bytes = 1};
        entry.id[0] = (uint8_t)('a' + i);
        spill_ops_push(&subject.ops, &entry, 10);
    }
    subject.definition.op_window = 2;
    bson_t document;
    spill_render_head(&subject.definition, &subject.state, &subject.fields, &subject.run, NULL,
                      &subject.ops, false, &document);
    bson_iter_t iter, ops;
    bson_iter_init(&iter, &document);
    assert_true(bson_iter_find_descendant(&iter, "spill.customers_purchased.ops.1.id", &ops));
    uint32_t size;
    const uint8_t *id;
    bson_iter_binary(&ops, NULL, &size, &id);
    assert_int_equal(id[0], 'd');
    bson_iter_init(&iter, &document);
    assert_false(bson_iter_find_descendant(&iter, "spill.customers_purchased.ops.2", &ops));
    bson_destroy(&document);
    close_subject(&subject);
}

static void a_large_count_is_a_long(void **state)
{
    (void)state;
    subject_t subject;
    open_subject(&subject, "feed-recent");
    subject.state.first = 5000000000;
    bson_t document;
    spill_render_head(&subject.definition, &subject.state, &subject.fields, &subject.run, NULL,
                      NULL, true, &document);
    bson_iter_t iter;
    assert_true(bson_iter_init_find(&iter, &document, "activityCount"));
    assert_int_equal(bson_iter_type(&iter), BSON_TYPE_INT64);
    assert_int_equal(bson_iter_int64(&iter), 5000000000);
    bson_destroy(&document);
    close_subject(&subject);
}

/* ---- the bound on the size ------------------------------------------------------------------- */

static uint32_t random_number_below(uint64_t *random, uint32_t bound)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33) % bound;
}

static void make_random_state(subject_t *subject, uint64_t *random)
{
    spill_state_t *state = &subject->state;
    state->first = random_number_below(random, 5000);
    state->op_count = random_number_below(random, 4) == 0 ? random_number_below(random, 300) : 0;
    state->sealed = random_number_below(random, 2);
    state->closed = random_number_below(random, 2);
    state->pages = random_number_below(random, 3);
    state->intent = random_number_below(random, 2);
    state->source_rev = random_number_below(random, 2000);
    state->page = random_number_below(random, 2000);
    state->gaps = spill_schema_of(&subject->definition)->keeps_top_n;
    uint32_t deleted = random_number_below(random, 3) == 0 ? random_number_below(random, 250) : 0;
    for (uint32_t i = 0; i < deleted; i++)
        spill_seqs_insert(&state->deleted, state->first + random_number_below(random, 400));
    int64_t count = state->op_count < subject->definition.op_window ? state->op_count
                                                                    : subject->definition.op_window;
    for (int64_t i = 0; i < count; i++) {
        spill_op_entry_t entry = {.ordinal = i, .id_bytes = SPILL_OP_ID_MAX};
        spill_ops_push(&subject->ops, &entry, (size_t)count);
    }
    if (random_number_below(random, 2))
        BSON_APPEND_UTF8(&subject->fields, "name", "of some length");
    state->fields_bytes = subject->fields.len;
    add_users(subject, random_number_below(random, random_number_below(random, 2) ? 1300 : 12));
}

/*
 * Bytes that the bound counts although they may be absent: flags, `intent`, and numbers at full
 * width.
 */
enum { SLACK = 270 };

static void the_bound_is_over_the_size_and_close(void **state)
{
    (void)state;
    static const char *const presets[] = {"feed", "feed-recent", "sales"};
    uint64_t random = 7;
    for (int i = 0; i < 600; i++) {
        subject_t subject;
        open_subject(&subject, presets[i % 3]);
        make_random_state(&subject, &random);
        for (int head = 1; head >= 0; head--) {
            bson_t document;
            if (!head && spill_schema_of(&subject.definition)->appends_to_head)
                subject.state.op_count = 0; /* such a page knows no operations */
            if (head)
                spill_render_head(&subject.definition, &subject.state, &subject.fields,
                                  &subject.run, NULL, &subject.ops, false, &document);
            else
                spill_render_page(&subject.definition, &subject.owner, &subject.state, &subject.run,
                                  &subject.ops, false, &document);
            int64_t bound = spill_state_document_bytes(&subject.definition, &subject.owner, head,
                                                       &subject.state, subject.state.live,
                                                       subject.state.live_bytes);
            assert_in_range(bound, document.len, document.len + SLACK);
            bson_destroy(&document);
        }
        close_subject(&subject);
    }
}

/* Capped with a top-N: any number of deleted numbers lies between live elements. */
static void the_bound_covers_gaps(void **state)
{
    (void)state;
    subject_t subject;
    open_subject(&subject, "feed-recent");
    spill_definition_set_layout(&subject.definition, SPILL_LAYOUT_CAPPED);
    strcpy(subject.definition.sort_field, "score");
    subject.state.gaps = true;
    add_users(&subject, 100);
    for (int64_t i = 0; i < 100; i++) {
        int64_t first = subject.state.first + i * 1000000 + 1;
        subject.run.entries[i].seq = first - 1;
        spill_seqs_insert_run(&subject.state.deleted, first, first + 999999);
    }
    bson_t document;
    spill_render_head(&subject.definition, &subject.state, &subject.fields, &subject.run, NULL,
                      &subject.ops, false, &document);
    int64_t bound =
        spill_state_document_bytes(&subject.definition, &subject.owner, true, &subject.state,
                                   subject.state.live, subject.state.live_bytes);
    assert_in_range(bound, document.len, document.len + SLACK);
    bson_destroy(&document);
    close_subject(&subject);
}

static void the_fullest_head_reaches_the_bound(void **state)
{
    (void)state;
    subject_t subject;
    open_subject(&subject, "feed");
    subject.state.sealed = true;
    subject.state.closed = true;
    subject.state.pages = 5000000000;
    subject.state.total = 5000000000;
    subject.state.intent = true;
    subject.state.op_count = 1;
    spill_op_entry_t entry = {.id_bytes = SPILL_OP_ID_MAX};
    spill_ops_push(&subject.ops, &entry, 1);
    spill_seqs_insert(&subject.state.deleted, 3);
    add_users(&subject, 11);
    bson_t document;
    spill_render_head(&subject.definition, &subject.state, &subject.fields, &subject.run, NULL,
                      &subject.ops, false, &document);
    assert_int_equal(document.len, spill_state_document_bytes(
                                       &subject.definition, &subject.owner, true, &subject.state,
                                       subject.state.live, subject.state.live_bytes));
    bson_destroy(&document);

    /* An absent head counts as if it had its _id. */
    spill_state_t absent = {0}, made = {.fields_bytes = subject.fields.len};
    assert_int_equal(
        spill_state_document_bytes(&subject.definition, &subject.owner, true, &absent, 0, 0),
        spill_state_document_bytes(&subject.definition, &subject.owner, true, &made, 0, 0));
    close_subject(&subject);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_of_the_feed),
        cmocka_unit_test(arrays_that_grow_at_the_front),
        cmocka_unit_test(a_page_of_the_feed),
        cmocka_unit_test(a_feed_that_keeps_the_newest_counts_exactly),
        cmocka_unit_test(sales_of_the_manual),
        cmocka_unit_test(a_count_is_not_negative),
        cmocka_unit_test(a_head_with_its_bookkeeping),
        cmocka_unit_test(a_page_with_its_bookkeeping),
        cmocka_unit_test(an_older_longer_window_is_not_shown),
        cmocka_unit_test(a_large_count_is_a_long),
        cmocka_unit_test(the_bound_is_over_the_size_and_close),
        cmocka_unit_test(the_bound_covers_gaps),
        cmocka_unit_test(the_fullest_head_reaches_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
