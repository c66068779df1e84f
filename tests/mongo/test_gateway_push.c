/*
 * Pushes to managed arrays that have room: one update on the client's connection
 * (gateway/translate/first_step.c), or the library's append. Both store each element once.
 */
#include "mongo/gateway_client.h"

#include "support/server.h"
#include "util/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

enum { ADOPTED = 8 }; /* elements of an array that has just been adopted */

typedef struct fixture {
    char *uri;
    gateway_client_t *client;
} fixture_t;

static void push(gateway_client_t *client, int from, int to)
{
    for (int i = from; i < to; i++) {
        char *command = bson_strdup_printf("{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": "
                                           "1}, \"u\": {\"$push\": {\"f\": %d}}, "
                                           "\"upsert\": true}]}",
                                           i);
        bson_t *reply = gateway_run_json(client, command);
        gateway_expect(reply, "n", "1");
        bson_destroy(reply);
        bson_free(command);
    }
}

/* Owner 1 has a managed array with room, and the gateway knows its length. */
static fixture_t *open_fixture(void)
{
    spill_error_t error;
    spill_definition_t definition = gateway_small_definition();
    fixture_t *fixture = bson_malloc0(sizeof *fixture);
    definition.bounds.threshold = 5;
    definition.bounds.page_capacity = 50;
    fixture->uri = server_new_database(NULL);
    spill_store_t *store = server_open(fixture->uri);
    if (spill_store_define(store, &definition, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    server_close(store);
    fixture->client = gateway_client_new(fixture->uri);
    push(fixture->client, 0, ADOPTED);
    return fixture;
}

static void close_fixture(fixture_t *fixture)
{
    gateway_client_free(fixture->client);
    server_drop(fixture->uri);
    bson_free(fixture->uri);
    bson_free(fixture);
}

/* The array has the numbers below `end`, each once. */
static void expect_numbers(const fixture_t *fixture, int end)
{
    bson_string_t *json = bson_string_new("[ ");
    for (int i = 0; i < end; i++)
        bson_string_append_printf(json, "%s%d", i > 0 ? ", " : "", i);
    bson_string_append(json, " ]");
    bson_t *reply = gateway_run_json(fixture->client, "{\"find\": \"c\"}");
    gateway_expect(reply, "cursor.firstBatch.0.f", json->str);
    bson_destroy(reply);
    bson_string_free(json, true);
}

static void a_push_is_one_update_on_the_clients_connection(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    int64_t calls = fixture->client->calls;
    push(fixture->client, ADOPTED, ADOPTED + 4);
    assert_int_equal(fixture->client->calls - calls, 4);
    bson_t *stored = gateway_direct_json(fixture->client, "{\"count\": \"c\", \"query\": "
                                                          "{\"spill.f.epoch\": {\"$gt\": 0}}}");
    gateway_expect(stored, "n", "1"); /* the array is managed */
    bson_destroy(stored);
    expect_numbers(fixture, ADOPTED + 4);
    close_fixture(fixture);
}

static void pushes_at_the_same_time_go_to_the_library(void **state)
{
    (void)state;
    bool alone;
    bson_iter_t id;
    fixture_t *fixture = open_fixture();
    spill_managed_owners_t *owners = spill_served_managed(fixture->client->served);
    bson_t *filter = BCON_NEW("_id", BCON_INT32(1));
    assert_true(bson_iter_init_find(&id, filter, "_id"));
    spill_value_t owner = spill_value_from_iter(&id);
    size_t slot = spill_managed_begin(owners, "c", &owner, &alone);
    assert_true(alone);
    push(fixture->client, ADOPTED, ADOPTED + 1); /* perhaps with a test of the client's rights */
    int64_t calls = fixture->client->calls;
    push(fixture->client, ADOPTED + 1, ADOPTED + 3);
    assert_int_equal(fixture->client->calls - calls, 0); /* the library has its own connection */
    spill_managed_end(owners, slot);
    push(fixture->client, ADOPTED + 3, ADOPTED + 5);
    assert_int_equal(fixture->client->calls - calls, 2);
    expect_numbers(fixture, ADOPTED + 5);
    bson_destroy(filter);
    close_fixture(fixture);
}

/* Each of two gateways has seen another length, so the guard of its update does not hold. */
static void a_push_with_a_wrong_length_is_made_once(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    gateway_client_t *other = gateway_client_new(fixture->uri);
    for (int i = ADOPTED; i < ADOPTED + 6; i++)
        push(i % 2 == 0 ? other : fixture->client, i, i + 1);
    expect_numbers(fixture, ADOPTED + 6);
    gateway_client_free(other);
    close_fixture(fixture);
}

/* ---- numbered pushes ------------------------------------------------------------------------- */

/* The gateway has known for long that owner 1 is managed. */
static void settle_owner(gateway_client_t *client)
{
    struct timespec now;
    bson_iter_t id;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    BSON_APPEND_INT32(&filter, "_id", 1);
    assert_true(bson_iter_init_find(&id, &filter, "_id"));
    spill_value_t owner = spill_value_from_iter(&id);
    spill_managed_owners_t *owners = spill_served_managed(client->served);
    clock_gettime(CLOCK_MONOTONIC, &now);
    spill_managed_forget(owners, "c", &owner);
    spill_managed_note(owners, "c", &owner, now.tv_sec - SPILL_MANAGED_CERTAIN_SECONDS - 1);
}

static void push_numbered(gateway_client_t *client, int64_t txn_number, int element)
{
    client->txn_number = txn_number;
    push(client, element, element + 1);
}

/* How many entries of sessions does the head have? */
static int64_t entries(const fixture_t *fixture)
{
    bson_iter_t iter, found, each;
    int64_t count = 0;
    bson_t *reply = gateway_direct_json(fixture->client, "{\"find\": \"c\"}");
    assert_true(bson_iter_init(&iter, reply));
    if (bson_iter_find_descendant(&iter, "cursor.firstBatch.0.spill.f.sessions", &found) &&
        bson_iter_recurse(&found, &each))
        while (bson_iter_next(&each))
            count++;
    bson_destroy(reply);
    return count;
}

static void a_numbered_push_is_one_update_with_its_entry(void **state)
{
    enum { PUSHES = 6 };
    (void)state;
    fixture_t *fixture = open_fixture();
    settle_owner(fixture->client);
    int64_t calls = fixture->client->calls;
    for (int i = 0; i < PUSHES; i++)
        push_numbered(fixture->client, i, ADOPTED + i);
    /* Perhaps one of them also removes old entries, and is made by the library. */
    assert_true(fixture->client->calls - calls >= PUSHES - 1);
    assert_true(fixture->client->calls - calls <= PUSHES);
    assert_int_equal(entries(fixture), 1);
    /* The driver repeats the last one, here and through another gateway. */
    gateway_client_t *other = gateway_client_new(fixture->uri);
    push_numbered(fixture->client, PUSHES - 1, ADOPTED + PUSHES - 1);
    push_numbered(other, PUSHES - 1, ADOPTED + PUSHES - 1);
    gateway_client_free(other);
    expect_numbers(fixture, ADOPTED + PUSHES);
    close_fixture(fixture);
}

/*
 * The gateway dies at each call of a numbered push, before it or before its answer. The driver
 * repeats the push through another gateway, which may know the owner as well.
 */
static void a_numbered_push_that_is_killed_is_made_once(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    int element = ADOPTED;
    for (int how = 0; how < 4; how++) {
        bool died = true;
        for (int call = 1; died; call++, element++) {
            gateway_client_t *other = gateway_client_new(fixture->uri);
            char *command =
                bson_strdup_printf("{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": "
                                   "{\"$push\": {\"f\": %d}}}]}",
                                   element);
            fixture->client->dies_at = call;
            fixture->client->loses_reply = how % 2 == 1;
            fixture->client->broken = false;
            fixture->client->txn_number = other->txn_number = element;
            settle_owner(fixture->client);
            bson_destroy(gateway_run_json(fixture->client, command));
            died = fixture->client->broken;
            fixture->client->dies_at = 0;
            if (how / 2 == 1)
                settle_owner(other);
            bson_t *reply = gateway_run_json(other, command);
            gateway_expect(reply, "n", "1");
            bson_destroy(reply);
            bson_free(command);
            gateway_client_free(other);
        }
    }
    expect_numbers(fixture, element);
    close_fixture(fixture);
}

/* ---- collations ------------------------------------------------------------------------------ */

/* How many documents of the collection match? */
static void expect_count(const fixture_t *fixture, const char *query, const char *count)
{
    char *command = bson_strdup_printf("{\"count\": \"c\", \"query\": %s}", query);
    bson_t *reply = gateway_direct_json(fixture->client, command);
    gateway_expect(reply, "n", count);
    bson_destroy(reply);
    bson_free(command);
}

static void insert_many(const fixture_t *fixture, int from, int to)
{
    bson_string_t *command = bson_string_new("{\"insert\": \"c\", \"documents\": [");
    for (int i = from; i < to; i++)
        bson_string_append_printf(command, "%s{\"_id\": \"%d\", \"m\": 1, \"f\": [1]}",
                                  i > from ? ", " : "", i);
    bson_string_append(command, "]}");
    bson_t *reply = gateway_direct_json(fixture->client, command->str);
    gateway_expect(reply, "ok", "1.0");
    bson_destroy(reply);
    bson_string_free(command, true);
}

static bson_t *push_to_many(const fixture_t *fixture, const char *locale)
{
    char *command = bson_strdup_printf("{\"update\": \"c\", \"updates\": [{\"q\": {\"m\": 1}, "
                                       "\"u\": {\"$push\": {\"f\": 2}}, \"multi\": true, "
                                       "\"collation\": {\"locale\": \"%s\"}}]}",
                                       locale);
    bson_t *reply = gateway_run_json(fixture->client, command);
    bson_free(command);
    return reply;
}

/*
 * Two updates of 1000 documents could both change an _id that is equal to another one. The
 * collation "simple" compares bytes.
 */
static void many_documents_with_a_collation_are_refused(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    fixture->client->omits_collation = true;
    insert_many(fixture, 0, 1001);
    bson_t *reply = push_to_many(fixture, "fr");
    gateway_expect(reply, "n", "0");
    gateway_expect(reply, "writeErrors.0.code", "115");
    bson_destroy(reply);
    expect_count(fixture, "{\"m\": 1, \"f\": {\"$size\": 1}}", "1001");
    reply = push_to_many(fixture, "simple"); /* the server has it, or fails by itself */
    assert_false(bson_has_field(reply, "writeErrors"));
    bson_destroy(reply);
    close_fixture(fixture);
}

/* ---- undo ------------------------------------------------------------------------------------ */

static void push_to_second(const fixture_t *fixture, int count)
{
    for (int i = 0; i < count; i++) {
        bson_t *reply = gateway_run_json(fixture->client,
                                         "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 2}, "
                                         "\"u\": {\"$push\": {\"f\": 1}}, \"upsert\": true}]}");
        gateway_expect(reply, "n", "1");
        bson_destroy(reply);
    }
}

static void mark_definition(const fixture_t *fixture, const char *update)
{
    char *command = bson_strdup_printf(
        "{\"update\": \"spillway.definitions\", \"updates\": [{\"q\": {}, \"u\": %s}]}", update);
    bson_t *reply = gateway_direct_json(fixture->client, command);
    gateway_expect(reply, "nModified", "1");
    bson_destroy(reply);
    bson_free(command);
}

/* While the migration is undone, long arrays stay unmanaged, and pushes succeed. */
static void an_undo_leaves_arrays_unmanaged(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    mark_definition(fixture,
                    "{\"$set\": {\"entry.undoing\": {\"$numberLong\": \"1700000000000000\"}}}");
    push_to_second(fixture, ADOPTED);
    expect_count(fixture, "{\"_id\": 2, \"spill\": {\"$exists\": false}, \"f\": {\"$size\": 8}}",
                 "1");
    expect_count(fixture, "{\"spill.f.epoch\": {\"$gt\": 0}}", "1");
    push(fixture->client, ADOPTED, ADOPTED + 1); /* a managed array gets it as before */
    expect_numbers(fixture, ADOPTED + 1);
    mark_definition(fixture, "{\"$unset\": {\"entry.undoing\": 1}}");
    const struct timespec second = {.tv_sec = 1, .tv_nsec = 100000000};
    nanosleep(&second, NULL); /* so long the refusal is remembered */
    push_to_second(fixture, 1);
    expect_count(fixture, "{\"spill.f.epoch\": {\"$gt\": 0}}", "2");
    close_fixture(fixture);
}

/* An undo has deleted the only definition, and the gateway still knows it. */
static void arrays_stay_unmanaged_without_a_definition(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    bson_t *reply =
        gateway_direct_json(fixture->client, "{\"delete\": \"spillway.definitions\", \"deletes\": "
                                             "[{\"q\": {}, \"limit\": 0}]}");
    gateway_expect(reply, "n", "1");
    bson_destroy(reply);
    push_to_second(fixture, ADOPTED);
    expect_count(fixture, "{\"_id\": 2, \"spill\": {\"$exists\": false}, \"f\": {\"$size\": 8}}",
                 "1");
    close_fixture(fixture);
}

/* The DocumentDB engine looks for an index when it reads the guard of an adoption. */
static void arrays_are_adopted_beside_other_indexes(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    bson_t *reply = gateway_run_json(
        fixture->client, "{\"createIndexes\": \"c\", \"indexes\": [{\"key\": {\"a\": 1},"
                         " \"name\": \"a\"}]}");
    gateway_expect(reply, "ok", "1.0");
    bson_destroy(reply);
    push_to_second(fixture, ADOPTED);
    expect_count(fixture, "{\"spill.f.epoch\": {\"$gt\": 0}}", "2");
    close_fixture(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_adopted_beside_other_indexes),
        cmocka_unit_test(a_push_is_one_update_on_the_clients_connection),
        cmocka_unit_test(pushes_at_the_same_time_go_to_the_library),
        cmocka_unit_test(a_push_with_a_wrong_length_is_made_once),
        cmocka_unit_test(a_numbered_push_is_one_update_with_its_entry),
        cmocka_unit_test(a_numbered_push_that_is_killed_is_made_once),
        cmocka_unit_test(many_documents_with_a_collation_are_refused),
        cmocka_unit_test(an_undo_leaves_arrays_unmanaged),
        cmocka_unit_test(arrays_stay_unmanaged_without_a_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
