/*
 * Drops of a whole collection or database. A gateway is killed at each of its calls of the server:
 * either nothing has happened, or repair and the next adoption delete the pages that are left.
 */
#include "mongo/gateway_client.h"

#include "store/store.h"
#include "support/server.h"

#include <mongoc/mongoc.h>
#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { CALLS_MAX = 20 };

static const char whole[] = "[ 0, 1, 2, 3, 4, 5, 6, 7, 8 ]";
static const char pages[] = "{\"count\": \"c.pages\", \"query\": {\"spill.epoch\": {\"$gt\": 0}}}";
/* With a filter: without one, the server may answer with its estimate. */
static const char heads[] = "{\"count\": \"c\", \"query\": {\"_id\": {\"$gt\": 0}}}";
static const char find_first[] = "{\"find\": \"c\", \"filter\": {\"_id\": 1}}";
static const char *const drops[] = {"{\"drop\": \"c\"}", "{\"dropDatabase\": 1}"};

static void fill(gateway_fixture_t *fixture)
{
    for (int owner = 1; owner <= 2; owner++)
        gateway_push(fixture, owner, 0, 9);
    gateway_settle(fixture);
}

static spill_repair_summary_t repair(gateway_fixture_t *fixture)
{
    spill_array_t *array;
    spill_repair_summary_t summary;
    spill_store_t *store = server_open(fixture->uri);
    assert_int_equal(spill_array_open(store, "c.f", &array, NULL), SPILL_OK);
    assert_int_equal(spill_array_repair(array, NULL, false, NULL, NULL, &summary, NULL), SPILL_OK);
    spill_array_close(array);
    server_close(store);
    return summary;
}

/* Run the drop with a gateway that dies at this call. False: it needs fewer calls. */
static bool drop_and_die(gateway_fixture_t *fixture, const char *drop, int call, bool loses_reply)
{
    fixture->client->dies_at = call;
    fixture->client->loses_reply = loses_reply;
    bson_destroy(gateway_run_json(fixture->client, drop));
    bool died = fixture->client->broken;
    gateway_settle(fixture);
    return died;
}

static int64_t count(gateway_fixture_t *fixture, const char *command)
{
    bson_iter_t n;
    bson_t *reply = gateway_direct_json(fixture->client, command);
    assert_true(bson_iter_init_find(&n, reply, "n"));
    int64_t number = bson_iter_as_int64(&n);
    bson_destroy(reply);
    return number;
}

static void check_after(gateway_fixture_t *fixture, bool repairs)
{
    if (count(fixture, heads) > 0) {
        gateway_try(fixture, find_first, "cursor.firstBatch.0.f", whole);
        assert_int_equal(repair(fixture).left, 0);
        gateway_try_direct(fixture, pages, "n", "6");
        return;
    }
    if (repairs) {
        assert_int_equal(repair(fixture).left, 0);
        gateway_try_direct(fixture, pages, "n", "0");
    }
    fill(fixture); /* the next adoption deletes what is left of the owner */
    gateway_try(fixture, find_first, "cursor.firstBatch.0.f", whole);
    gateway_try_direct(fixture, pages, "n", "6");
    assert_int_equal(repair(fixture).left, 0);
}

static void a_killed_drop_is_finished(void **state)
{
    gateway_fixture_t *fixture = *state;
    for (size_t which = 0; which < sizeof drops / sizeof *drops; which++)
        for (int how = 0; how < 4; how++) {
            bool died = true;
            int call = 0;
            while (died) {
                assert_true(++call < CALLS_MAX);
                fill(fixture);
                died = drop_and_die(fixture, drops[which], call, how % 2 == 1);
                print_message("%s, call %d\n", drops[which], call);
                check_after(fixture, how / 2 == 1);
                bson_destroy(gateway_run_json(fixture->client, drops[0]));
                gateway_try_direct(fixture, pages, "n", "0");
            }
            assert_true(call > 3);
        }
}

/* The gateway has written its note, and dies before it drops the collection. */
static void leave_note(gateway_fixture_t *fixture)
{
    static const char notes[] =
        "{\"count\": \"spillway.marks\", \"query\": {\"_id.dropAll\": \"c.f\"}}";
    fill(fixture);
    for (int call = 1; count(fixture, notes) == 0; call++) {
        assert_true(call < CALLS_MAX);
        assert_true(drop_and_die(fixture, drops[0], call, false));
        gateway_try_direct(fixture, heads, "n", "2");
    }
}

/*
 * The gateway dies before it drops the collection. The arrays live on; another program deletes one.
 * No client wanted its later pages to go.
 */
static void a_note_of_a_collection_that_lives_is_not_believed(void **state)
{
    gateway_fixture_t *fixture = *state;
    leave_note(fixture);
    gateway_push(fixture, 1, 9, 13);
    gateway_settle(fixture);
    gateway_try_direct(fixture,
                       "{\"delete\": \"c\", \"deletes\": [{\"q\": {\"_id\": 1}, \"limit\": 1}]}",
                       "n", "1");
    int64_t before = count(fixture, pages);
    assert_int_equal(repair(fixture).left, 1);
    assert_int_equal(count(fixture, pages), before);
}

/* Another program renames the collection: its heads live, under another name. */
static void a_renamed_collection_is_not_dropped(void **state)
{
    gateway_fixture_t *fixture = *state;
    bson_error_t error;
    leave_note(fixture);
    mongoc_client_t *client = mongoc_client_new(fixture->uri);
    mongoc_collection_t *collection =
        mongoc_client_get_collection(client, fixture->client->database, "c");
    assert_true(
        mongoc_collection_rename(collection, fixture->client->database, "d", false, &error));
    mongoc_collection_destroy(collection);
    mongoc_client_destroy(client);
    assert_int_equal(repair(fixture).left, 2);
    gateway_try_direct(fixture, pages, "n", "6");
}

/*
 * A gateway has dropped the collection, and dies before it deletes the pages. Another gateway
 * announces the drop of the new collection, and dies, too. The pages of the first one may go.
 */
static void a_later_note_leaves_what_was_certain(void **state)
{
    static const char announced[] =
        "{\"count\": \"spillway.marks\", \"query\": {\"announced\": {\"$gt\": {}}}}";
    gateway_fixture_t *fixture = *state;
    fill(fixture);
    for (int call = 1; count(fixture, heads) > 0; call++)
        assert_true(drop_and_die(fixture, drops[0], call, false));
    gateway_try_direct(fixture, pages, "n", "6");
    gateway_push(fixture, 3, 0, 4);
    for (int call = 1; count(fixture, announced) == 0; call++)
        assert_true(drop_and_die(fixture, drops[0], call, false));
    gateway_try_direct(fixture, heads, "n", "1");
    assert_int_equal(repair(fixture).left, 0);
    gateway_try_direct(fixture, pages, "n", "0");
}

static void note_all(spill_store_t *store, const spill_definition_t *definition,
                     const spill_drop_all_t *drop, spill_drop_stage_t stage)
{
    assert_int_equal(store->ops->note_drop_all(store, definition, drop, stage, NULL), SPILL_OK);
}

/*
 * The server has refused a drop, and another program drops the collection later. No client wants
 * the pages to go. The announcement arrives once more.
 */
static void a_refused_drop_is_not_believed(void **state)
{
    gateway_fixture_t *fixture = *state;
    spill_definition_t definition = gateway_small_definition();
    const spill_drop_all_t drop = {INT64_MAX / 2, "attempt"};
    fill(fixture);
    spill_store_t *store = server_open(fixture->uri);
    note_all(store, &definition, &drop, SPILL_DROP_BEGINS);
    note_all(store, &definition, &drop, SPILL_DROP_REFUSED);
    note_all(store, &definition, &drop, SPILL_DROP_BEGINS);
    server_close(store);
    gateway_try_direct(fixture, drops[0], "ok", "1.0");
    assert_int_equal(repair(fixture).left, 2);
    gateway_try_direct(fixture, pages, "n", "6");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, gateway_setup, gateway_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_killed_drop_is_finished),
        TEST(a_note_of_a_collection_that_lives_is_not_believed),
        TEST(a_renamed_collection_is_not_dropped),
        TEST(a_later_note_leaves_what_was_certain),
        TEST(a_refused_drop_is_not_believed),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
