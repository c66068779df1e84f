/*
 * Heads that end, by a delete or by an update that leaves no array: their pages go too, and a note
 * lets others finish.
 */
#include "mongo/gateway_client.h"

#include "core/array.h"
#include "store/store.h"
#include "support/server.h"

#include <mongoc/mongoc.h>
#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char notes[] = "{\"count\": \"spillway.marks\", \"query\": {\"_id.drop\": \"c.f\"}}";
static const char pages[] = "{\"count\": \"c.pages\", \"query\": {\"spill.epoch\": {\"$gt\": 0}}}";
static const char delete_one[] =
    "{\"delete\": \"c\", \"deletes\": [{\"q\": {\"_id\": 1}, \"limit\": 1}]}";
static const char delete_all[] = "{\"delete\": \"c\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}";
static const char find_all[] = "{\"find\": \"c\"}";

/* The bookkeeping of the only head. */
static spill_drop_note_t read_head(gateway_fixture_t *fixture)
{
    bson_iter_t iter, epoch, rev;
    bson_t *head = gateway_direct_json(fixture->client, find_all);
    assert_true(bson_iter_init(&iter, head));
    assert_true(bson_iter_find_descendant(&iter, "cursor.firstBatch.0.spill.f.epoch", &epoch));
    assert_true(bson_iter_init(&iter, head));
    assert_true(bson_iter_find_descendant(&iter, "cursor.firstBatch.0.spill.f.rev", &rev));
    const spill_drop_note_t note = {.incarnation = bson_iter_as_int64(&epoch),
                                    .rev = bson_iter_as_int64(&rev)};
    bson_destroy(head);
    return note;
}

static void write_note(gateway_fixture_t *fixture, const spill_drop_note_t *note)
{
    int32_t one = 1;
    spill_error_t error;
    const spill_value_t owner = {
        .data = (const uint8_t *)&one, .size_bytes = sizeof one, .type = BSON_TYPE_INT32};
    spill_definition_t definition = gateway_small_definition();
    spill_store_t *store = server_open(fixture->uri);
    assert_int_equal(store->ops->note_drop(store, &definition, &owner, note, &error), SPILL_OK);
    server_close(store);
}

/* The notes have stayed for their time. */
static void age_notes(gateway_fixture_t *fixture)
{
    gateway_try_direct(fixture,
                       "{\"update\": \"spillway.marks\", \"updates\": [{\"q\": {\"_id.drop\": "
                       "\"c.f\"}, \"u\": {\"$set\": {\"at\": {\"$date\": 0}}}, \"multi\": true}]}",
                       "n", "1");
}

static void finish_drops(gateway_fixture_t *fixture)
{
    spill_array_t *array;
    bool more;
    spill_store_t *store = server_open(fixture->uri);
    assert_int_equal(spill_array_open(store, "c.f", &array, NULL), SPILL_OK);
    assert_int_equal(spill_array_finish_drops(array, &more, NULL), SPILL_OK);
    assert_false(more);
    spill_array_close(array);
    server_close(store);
}

static void repair(gateway_fixture_t *fixture, int64_t findings, int64_t left)
{
    spill_array_t *array;
    spill_repair_summary_t summary;
    spill_store_t *store = server_open(fixture->uri);
    assert_int_equal(spill_array_open(store, "c.f", &array, NULL), SPILL_OK);
    assert_int_equal(spill_array_repair(array, NULL, false, NULL, NULL, &summary, NULL), SPILL_OK);
    assert_int_equal(summary.findings, findings);
    assert_int_equal(summary.left, left);
    spill_array_close(array);
    server_close(store);
}

static void a_deleted_array_ends_its_incarnation(void **state)
{
    gateway_fixture_t *fixture = *state;
    gateway_push(fixture, 1, 0, 9);
    gateway_settle(fixture);
    char *ended = bson_strdup_printf("{\"count\": \"spillway.marks\", \"query\": {\"_id\": "
                                     "\"dropped\", \"rev\": {\"$gte\": {\"$numberLong\": "
                                     "\"%lld\"}}}}",
                                     (long long)read_head(fixture).rev);
    gateway_try_direct(fixture, ended, "n", "0");
    gateway_try(fixture, delete_one, "n", "1");
    gateway_try_direct(fixture, ended, "n", "1");
    gateway_try_direct(fixture, pages, "n", "0");
    gateway_push(fixture, 1, 0, 9);
    gateway_settle(fixture);
    gateway_try(fixture, find_all, "cursor.firstBatch.0.f", "[ 0, 1, 2, 3, 4, 5, 6, 7, 8 ]");
    bson_free(ended);
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* Make pages whose head is deleted, as by a gateway that is killed then, and perhaps the note. */
static void leave_pages(gateway_fixture_t *fixture, bool note)
{
    gateway_push(fixture, 1, 100, 109);
    gateway_settle(fixture);
    const spill_drop_note_t certain = {.incarnation = read_head(fixture).incarnation,
                                       .rev = SPILL_DROP_IS_CERTAIN};
    gateway_try_direct(fixture, delete_all, "n", "1");
    if (note)
        write_note(fixture, &certain);
}

static void a_note_lets_the_next_array_begin(void **state)
{
    gateway_fixture_t *fixture = *state;
    leave_pages(fixture, true);
    gateway_try_direct(fixture, notes, "n", "1");
    gateway_push(fixture, 1, 0, 9);
    gateway_settle(fixture);
    gateway_try_direct(fixture, pages, "n", "3");
    gateway_try(fixture, find_all, "cursor.firstBatch.0.f", "[ 0, 1, 2, 3, 4, 5, 6, 7, 8 ]");
    gateway_try(fixture, delete_one, "n", "1");
    gateway_try_direct(fixture, pages, "n", "0");
    gateway_try_direct(fixture, notes, "n", "1");
}

static void a_note_lets_repair_finish_a_delete(void **state)
{
    gateway_fixture_t *fixture = *state;
    leave_pages(fixture, true);
    repair(fixture, 1, 0);
    gateway_try_direct(fixture, pages, "n", "0");
    gateway_try_direct(fixture, notes, "n", "1");
    age_notes(fixture);
    repair(fixture, 0, 0);
    gateway_try_direct(fixture, notes, "n", "0");
}

/* A later head is about to be deleted. It lives on, and the earlier one has surely ended. */
static void a_later_note_leaves_what_is_certain(void **state)
{
    gateway_fixture_t *fixture = *state;
    gateway_push(fixture, 1, 0, 9);
    gateway_settle(fixture);
    const spill_drop_note_t certain = {.incarnation = read_head(fixture).incarnation,
                                       .rev = SPILL_DROP_IS_CERTAIN};
    const spill_drop_note_t later = {.incarnation = certain.incarnation + 100,
                                     .rev = certain.incarnation + 100};
    char *begin_anew = bson_strdup_printf(
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": [{\"$set\": "
        "{\"spill.f.epoch\": {\"$numberLong\": \"%lld\"}, \"spill.f.rev\": {\"$numberLong\": "
        "\"%lld\"}, \"spill.f.pages\": {\"$numberLong\": \"0\"}, \"spill.f.low\": "
        "\"$spill.f.first\"}}]}]}",
        (long long)later.incarnation, (long long)later.rev);
    gateway_try_direct(fixture, begin_anew, "n", "1");
    write_note(fixture, &certain);
    write_note(fixture, &later);
    repair(fixture, 1, 0);
    gateway_try_direct(fixture, pages, "n", "0");
    bson_free(begin_anew);
}

/* Another program may have deleted the document. */
static void without_a_note_pages_stay(void **state)
{
    gateway_fixture_t *fixture = *state;
    leave_pages(fixture, false);
    repair(fixture, 0, 1);
    gateway_try_direct(fixture, pages, "n", "3");
}

/* A gateway has died between its note and the delete, and then another program deletes the head. */
static void a_note_of_a_head_that_lived_on_is_not_believed(void **state)
{
    gateway_fixture_t *fixture = *state;
    gateway_push(fixture, 1, 0, 9);
    gateway_settle(fixture);
    const spill_drop_note_t note = read_head(fixture);
    write_note(fixture, &note);
    gateway_push(fixture, 1, 9, 13);
    gateway_settle(fixture);
    assert_true(read_head(fixture).rev > note.rev);
    gateway_try_direct(fixture, delete_all, "n", "1");
    repair(fixture, 0, 1);
    gateway_try_direct(fixture, pages, "n", "5");
    gateway_try_direct(fixture, notes, "n", "1");
    age_notes(fixture);
    finish_drops(fixture);
    gateway_try_direct(fixture, pages, "n", "5");
    gateway_try_direct(fixture, notes, "n", "0");
}

/* A gateway has died between its note and the delete, and the head lives. */
static void an_old_note_of_a_living_head_is_forgotten(void **state)
{
    gateway_fixture_t *fixture = *state;
    gateway_push(fixture, 1, 0, 9);
    gateway_settle(fixture);
    const spill_drop_note_t note = read_head(fixture);
    write_note(fixture, &note);
    finish_drops(fixture);
    gateway_try_direct(fixture, notes, "n", "1");
    age_notes(fixture);
    finish_drops(fixture);
    gateway_try_direct(fixture, notes, "n", "0");
    gateway_try(fixture, find_all, "cursor.firstBatch.0.f", "[ 0, 1, 2, 3, 4, 5, 6, 7, 8 ]");
}

/*
 * A deleted document was restored from a dump. If another program replaces it then, its pages are
 * the only copy of their elements.
 */
static void an_old_note_of_a_restored_head_is_forgotten(void **state)
{
    gateway_fixture_t *fixture = *state;
    gateway_push(fixture, 1, 0, 9);
    gateway_settle(fixture);
    const spill_drop_note_t certain = {.incarnation = read_head(fixture).incarnation,
                                       .rev = SPILL_DROP_IS_CERTAIN};
    write_note(fixture, &certain);
    finish_drops(fixture);
    gateway_try_direct(fixture, notes, "n", "1");
    age_notes(fixture);
    finish_drops(fixture);
    gateway_try_direct(fixture, notes, "n", "0");
    gateway_try(fixture, find_all, "cursor.firstBatch.0.f", "[ 0, 1, 2, 3, 4, 5, 6, 7, 8 ]");
    gateway_try_direct(fixture, delete_all, "n", "1");
    repair(fixture, 0, 1);
    gateway_try_direct(fixture, pages, "n", "3");
}

/* Pages that keep the oldest elements leave tombstones, so no page can be put late. */
static void a_drop_that_leaves_tombstones_leaves_no_note(void **state)
{
    static const char any[] = "{\"count\": \"spillway.marks\", \"query\": {\"_id.drop\": \"o\"}}";
    /* With a query: a server may answer a count of all documents from its statistics. */
    static const char tombstones[] =
        "{\"count\": \"o.pages\", \"query\": {\"_id\": {\"$exists\": true}}}";
    int32_t one = 1;
    spill_array_t *array;
    gateway_fixture_t *fixture = *state;
    spill_definition_t definition = gateway_small_definition();
    const spill_value_t owner = {
        .data = (const uint8_t *)&one, .size_bytes = sizeof one, .type = BSON_TYPE_INT32};
    strcpy(definition.name, "o");
    definition.keep = SPILL_KEEP_OLDEST;
    strcpy(definition.collection, "o");
    strcpy(definition.page_collection, "o.pages");
    spill_store_t *store = server_open(fixture->uri);
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(store, "o", &array, NULL), SPILL_OK);
    for (int i = 0; i < 9; i++)
        assert_int_equal(spill_array_append(array, &owner, &owner, 1, NULL, NULL, NULL), SPILL_OK);
    assert_int_equal(spill_array_drop_owner(array, &owner, NULL), SPILL_OK);
    gateway_try_direct(fixture, tombstones, "n", "3");
    gateway_try_direct(fixture, any, "n", "0");
    spill_array_close(array);
    server_close(store);
}

static void a_note_of_a_head_that_is_gone_is_believed(void **state)
{
    gateway_fixture_t *fixture = *state;
    gateway_push(fixture, 1, 0, 9);
    gateway_settle(fixture);
    const spill_drop_note_t note = read_head(fixture);
    write_note(fixture, &note);
    gateway_try_direct(fixture, delete_all, "n", "1");
    repair(fixture, 1, 0);
    gateway_try_direct(fixture, pages, "n", "0");
    gateway_try_direct(fixture, notes, "n", "1");
}

/* ---- pages of a spill in progress ------------------------------------------------------------ */

/* A client that has begun to spill the head puts page 0. */
static void put_page_of(gateway_fixture_t *fixture, const spill_drop_note_t *head)
{
    char *put = bson_strdup_printf(
        "{\"insert\": \"c.pages\", \"documents\": [{\"_id\": {\"owner\": 1, \"page\": 0}, "
        "\"owner\": 1, \"page\": 0, \"f\": [0, 1], \"spill\": {\"n\": {\"$numberLong\": "
        "\"0\"}, \"first\": {\"$numberLong\": \"0\"}, \"epoch\": {\"$numberLong\": \"%lld\"}, "
        "\"src\": {\"$numberLong\": \"%lld\"}, \"rev\": {\"$numberLong\": \"%lld\"}}}]}",
        (long long)head->incarnation, (long long)head->rev, (long long)head->rev);
    gateway_try_direct(fixture, put, "n", "1");
    gateway_try_direct(fixture, pages, "n", "1");
    bson_free(put);
}

static void put_page(gateway_fixture_t *fixture)
{
    const spill_drop_note_t head = read_head(fixture);
    put_page_of(fixture, &head);
}

static void a_page_that_was_put_goes_with_its_head(void **state)
{
    static const char *const statements[] = {
        delete_one,
        delete_all,
        "{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, \"remove\": true}",
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$set\": {\"f\": "
        "null}}}]}",
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$unset\": {\"f\": "
        "1}}}]}",
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"a\": 1}}]}",
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": [{\"$set\": {\"f\": "
        "null}}]}]}"};
    gateway_fixture_t *fixture = *state;
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        gateway_push(fixture, 1, 0, 4);
        put_page(fixture);
        gateway_try(fixture, statements[i], "ok", "1.0");
        gateway_try_direct(fixture, notes, "n", "1");
        gateway_try_direct(fixture, delete_all, "ok", "1.0"); /* a document that is plain now */
        gateway_push(fixture, 1, 0, 9);
        gateway_settle(fixture);
        gateway_try(fixture, find_all, "cursor.firstBatch.0.f", "[ 0, 1, 2, 3, 4, 5, 6, 7, 8 ]");
        gateway_try_direct(fixture, pages, "n", "3");
        gateway_try(fixture, delete_one, "n", "1");
    }
}

/*
 * Another gateway has read the head to spill it, and puts the page after the head and its pages are
 * deleted. The deleted head need not be due for a spill any more.
 */
static void leave_late_page(gateway_fixture_t *fixture)
{
    gateway_push(fixture, 1, 100, 104);
    const spill_drop_note_t head = read_head(fixture);
    gateway_try(fixture, delete_one, "n", "1");
    gateway_try_direct(fixture, pages, "n", "0");
    put_page_of(fixture, &head);
}

static void a_page_that_is_put_late_goes_with_the_next_adoption(void **state)
{
    gateway_fixture_t *fixture = *state;
    leave_late_page(fixture);
    gateway_push(fixture, 1, 0, 9);
    gateway_settle(fixture);
    gateway_try(fixture, find_all, "cursor.firstBatch.0.f", "[ 0, 1, 2, 3, 4, 5, 6, 7, 8 ]");
    gateway_try_direct(fixture, pages, "n", "3");
}

static void a_page_that_is_put_late_goes_with_a_repair(void **state)
{
    gateway_fixture_t *fixture = *state;
    leave_late_page(fixture);
    repair(fixture, 1, 0);
    gateway_try_direct(fixture, pages, "n", "0");
}

static void a_page_that_is_put_late_goes_with_a_sweep(void **state)
{
    gateway_fixture_t *fixture = *state;
    leave_late_page(fixture);
    age_notes(fixture);
    finish_drops(fixture);
    gateway_try_direct(fixture, pages, "n", "0");
    gateway_try_direct(fixture, notes, "n", "0");
}

/* The same for the library's drop, of an owner without pages that is not due for a spill. */
static void a_page_that_is_put_late_after_a_drop_goes(void **state)
{
    int32_t one = 1;
    spill_array_t *array;
    gateway_fixture_t *fixture = *state;
    const spill_value_t owner = {
        .data = (const uint8_t *)&one, .size_bytes = sizeof one, .type = BSON_TYPE_INT32};
    gateway_push(fixture, 1, 100, 104);
    const spill_drop_note_t head = read_head(fixture);
    spill_store_t *store = server_open(fixture->uri);
    assert_int_equal(spill_array_open(store, "c.f", &array, NULL), SPILL_OK);
    assert_int_equal(spill_array_drop_owner(array, &owner, NULL), SPILL_OK);
    spill_array_close(array);
    put_page_of(fixture, &head);
    repair(fixture, 1, 0);
    gateway_try_direct(fixture, pages, "n", "0");
    gateway_try_direct(fixture, notes, "n", "1");
    assert_int_equal(spill_store_drop(store, "c.f", NULL), SPILL_OK);
    gateway_try_direct(fixture, notes, "n", "0");
    server_close(store);
}

static void a_drop_deletes_many_pages_with_each_call(void **state)
{
    enum { ELEMENTS = 64, CALLS_MAX = 16 };
    int32_t one = 1;
    spill_array_t *array;
    spill_count_t count;
    gateway_fixture_t *fixture = *state;
    const spill_value_t owner = {
        .data = (const uint8_t *)&one, .size_bytes = sizeof one, .type = BSON_TYPE_INT32};
    gateway_push(fixture, 1, 0, ELEMENTS);
    gateway_settle(fixture);
    spill_store_t *store = server_open(fixture->uri);
    assert_int_equal(spill_array_open(store, "c.f", &array, NULL), SPILL_OK);
    assert_int_equal(spill_array_count(array, &owner, &count, NULL), SPILL_OK);
    assert_true(count.pages > CALLS_MAX);
    long long before = atomic_load(&store->counts.calls);
    assert_int_equal(spill_array_drop_owner(array, &owner, NULL), SPILL_OK);
    assert_true(atomic_load(&store->counts.calls) - before < CALLS_MAX);
    gateway_try_direct(fixture, pages, "n", "0");
    spill_array_close(array);
    server_close(store);
}

/* The gateway dies at each of its calls of the server; afterwards the owner is used as before. */
static void a_delete_that_is_killed_is_finished(void **state)
{
    gateway_fixture_t *fixture = *state;
    for (int length = 4; length <= 9; length += 5)
        for (int call = 1; call <= 6; call++)
            for (int loses = 0; loses < 2; loses++) {
                gateway_push(fixture, 1, 0, length);
                gateway_settle(fixture);
                if (length == 4)
                    put_page(fixture);
                fixture->client->dies_at = call;
                fixture->client->loses_reply = loses == 1;
                bson_destroy(gateway_run_json(fixture->client, delete_one));
                gateway_settle(fixture);
                gateway_push(fixture, 1, 20, 29);
                gateway_settle(fixture);
                gateway_try(fixture, find_all, "cursor.firstBatch.0._id", "1");
                repair(fixture, 0, 0);
                gateway_try(fixture, delete_one, "n", "1");
                gateway_try_direct(fixture, pages, "n", "0");
            }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, gateway_setup, gateway_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_deleted_array_ends_its_incarnation),
        TEST(a_note_lets_the_next_array_begin),
        TEST(a_note_lets_repair_finish_a_delete),
        TEST(a_later_note_leaves_what_is_certain),
        TEST(without_a_note_pages_stay),
        TEST(a_note_of_a_head_that_lived_on_is_not_believed),
        TEST(a_note_of_a_head_that_is_gone_is_believed),
        TEST(a_page_that_was_put_goes_with_its_head),
        TEST(an_old_note_of_a_living_head_is_forgotten),
        TEST(an_old_note_of_a_restored_head_is_forgotten),
        TEST(a_drop_that_leaves_tombstones_leaves_no_note),
        TEST(a_page_that_is_put_late_goes_with_the_next_adoption),
        TEST(a_page_that_is_put_late_goes_with_a_repair),
        TEST(a_page_that_is_put_late_goes_with_a_sweep),
        TEST(a_page_that_is_put_late_after_a_drop_goes),
        TEST(a_drop_deletes_many_pages_with_each_call),
        TEST(a_delete_that_is_killed_is_finished),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
