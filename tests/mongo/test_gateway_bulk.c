/* The command bulkWrite on served collections: also on a server that does not know it. */
#include "mongo/gateway_client.h"

#include "support/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Run a bulkWrite; in its operations, collection 0 is the served one, 1 another one. */
static bson_t *bulk(gateway_fixture_t *fixture, const char *operations, const char *options)
{
    const char *database = fixture->client->database;
    char *json = bson_strdup_printf("{\"bulkWrite\": 1, \"ops\": [%s], \"nsInfo\": [{\"ns\": "
                                    "\"%s.c\"}, {\"ns\": \"%s.d\"}], \"$db\": \"admin\"%s}",
                                    operations, database, database, options);
    bson_t *reply = gateway_run_json(fixture->client, json);
    assert_false(fixture->client->relayed);
    bson_free(json);
    return reply;
}

static void expect_bulk(gateway_fixture_t *fixture, const char *operations, const char *options,
                        const char *path, const char *json)
{
    bson_t *reply = bulk(fixture, operations, options);
    gateway_expect(reply, path, json);
    bson_destroy(reply);
}

#define PUSH(owner, elements)                                                                      \
    "{\"update\": 0, \"filter\": {\"_id\": " owner "}, \"updateMods\": {\"$push\": {\"f\": "       \
    "{\"$each\": [" elements "]}}}, \"upsert\": true}"

static void one_bulk_write_changes_several_collections(void **state)
{
    static const char operations[] =
        "{\"insert\": 0, \"document\": {\"_id\": 1, \"f\": [1, 2, 3]}},"
        "{\"insert\": 0, \"document\": {\"_id\": 2, \"g\": 0}}," PUSH("1", "4, 5, 6, 7") "," PUSH(
            "3", "1") ","
                      "{\"insert\": 1, \"document\": {\"_id\": 1}},"
                      "{\"update\": 1, \"filter\": {}, \"updateMods\": {\"$set\": {\"g\": "
                      "\"$$x\"}}, \"multi\": "
                      "true},"
                      "{\"delete\": 0, \"filter\": {\"g\": 0}, \"multi\": true},"
                      "{\"delete\": 0, \"filter\": {\"_id\": 9}}";
    gateway_fixture_t *fixture = *state;
    bson_t *reply = bulk(fixture, operations, "");
    gateway_expect(reply, "ok", "1.0");
    gateway_expect(reply, "nErrors", "0");
    gateway_expect(reply, "nInserted", "3");
    gateway_expect(reply, "nMatched", "2");
    gateway_expect(reply, "nModified", "2");
    gateway_expect(reply, "nUpserted", "1");
    gateway_expect(reply, "nDeleted", "1");
    gateway_expect(reply, "cursor.id", "0");
    gateway_expect(reply, "cursor.ns", "\"admin.$cmd.bulkWrite\"");
    gateway_expect(reply, "cursor.firstBatch.0", "{ \"ok\" : 1.0, \"idx\" : 0, \"n\" : 1 }");
    gateway_expect(reply, "cursor.firstBatch.2",
                   "{ \"ok\" : 1.0, \"idx\" : 2, \"n\" : 1, \"nModified\" : 1 }");
    gateway_expect(reply, "cursor.firstBatch.3",
                   "{ \"ok\" : 1.0, \"idx\" : 3, \"n\" : 1, \"nModified\" : 0, \"upserted\" : { "
                   "\"_id\" : 3 } }");
    gateway_expect(reply, "cursor.firstBatch.6", "{ \"ok\" : 1.0, \"idx\" : 6, \"n\" : 1 }");
    gateway_expect(reply, "cursor.firstBatch.7", "{ \"ok\" : 1.0, \"idx\" : 7, \"n\" : 0 }");
    bson_destroy(reply);
    gateway_try(
        fixture, "{\"find\": \"c\", \"sort\": {\"_id\": 1}}", "cursor.firstBatch",
        "[ { \"_id\" : 1, \"f\" : [ 1, 2, 3, 4, 5, 6, 7 ] }, { \"_id\" : 3, \"f\" : [ 1 ] } ]");
    gateway_try(fixture, "{\"find\": \"d\"}", "cursor.firstBatch",
                "[ { \"_id\" : 1, \"g\" : \"$$x\" } ]");
    gateway_settle(fixture);
    /* With a filter: without one, the server may answer with its estimate. */
    bson_t *pages = gateway_direct_json(
        fixture->client, "{\"count\": \"c.pages\", \"query\": {\"spill.epoch\": {\"$gt\": 0}}}");
    gateway_expect(pages, "n", "2");
    bson_destroy(pages);
}

/* The second insert has the _id of the first; $pull is refused; the rest is in order. */
static const char with_errors[] =
    "{\"insert\": 1, \"document\": {\"_id\": 1}}, {\"insert\": 1, \"document\": {\"_id\": 1}},"
    "{\"insert\": 1, \"document\": {\"_id\": 2}}," PUSH(
        "1", "1, 2, 3, 4, 5, 6, 7") ","
                                    "{\"update\": 0, \"filter\": {\"_id\": 1, \"spill\": 1}, "
                                    "\"updateMods\": {\"$set\": {\"g\": "
                                    "1}}}, " PUSH("1", "8");

static void the_first_error_ends_an_ordered_bulk_write(void **state)
{
    gateway_fixture_t *fixture = *state;
    bson_t *reply = bulk(fixture, with_errors, "");
    gateway_expect(reply, "ok", "1.0");
    gateway_expect(reply, "nErrors", "1");
    gateway_expect(reply, "nInserted", "1");
    gateway_expect(reply, "nUpserted", "0");
    gateway_expect(reply, "cursor.firstBatch.1.ok", "0.0");
    gateway_expect(reply, "cursor.firstBatch.1.idx", "1");
    gateway_expect(reply, "cursor.firstBatch.1.code", "11000");
    gateway_expect(reply, "cursor.firstBatch.2", "null");
    bson_destroy(reply);
    gateway_try(fixture, "{\"count\": \"c\"}", "n", "0");
}

static void an_unordered_bulk_write_goes_on_after_errors(void **state)
{
    gateway_fixture_t *fixture = *state;
    bson_t *reply = bulk(fixture, with_errors, ", \"ordered\": false, \"errorsOnly\": true");
    gateway_expect(reply, "nErrors", "2");
    gateway_expect(reply, "nInserted", "2");
    gateway_expect(reply, "nMatched", "1");
    gateway_expect(reply, "cursor.firstBatch.0.idx", "1");
    gateway_expect(reply, "cursor.firstBatch.1.idx", "4");
    gateway_expect(reply, "cursor.firstBatch.1.code", "115");
    gateway_expect(reply, "cursor.firstBatch.1.spillway.field", "\"spill\"");
    gateway_expect(reply, "cursor.firstBatch.2", "null");
    bson_destroy(reply);
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.f",
                "[ 1, 2, 3, 4, 5, 6, 7, 8 ]");
}

/* Also two pushes to one owner: each has its own number in the session. */
static void a_repeated_bulk_write_is_made_once(void **state)
{
    gateway_fixture_t *fixture = *state;
    bson_destroy(bulk(fixture, PUSH("1", "1, 2, 3") "," PUSH("1", "4, 5"), ""));
    fixture->client->txn_number = 1;
    for (int i = 0; i < 2; i++)
        expect_bulk(fixture, PUSH("1", "6") "," PUSH("1", "7, 8") "," PUSH("1", "9"), "",
                    "nModified", "3");
    fixture->client->txn_number = 2;
    expect_bulk(fixture, PUSH("1", "10"), "", "nModified", "1");
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.f",
                "[ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ]");
}

static void a_malformed_bulk_write_changes_nothing(void **state)
{
    static const struct {
        const char *operations, *code;
    } bad[] = {{"", "16"},
               {"{\"insert\": 2, \"document\": {}}", "2"},
               {"{\"insert\": -1, \"document\": {}}", "2"},
               {"{\"insert\": \"c\", \"document\": {}}", "2"},
               {"{\"insert\": 0}", "2"},
               {"{\"update\": 0, \"filter\": {}}", "2"},
               {"{\"delete\": 0, \"filter\": 1}", "2"},
               {"{}", "2"},
               {"{\"replace\": 0}", "2"}};
    char operations[200];
    gateway_fixture_t *fixture = *state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(operations, sizeof operations, "%s%s",
                 i == 0 ? "" : "{\"insert\": 1, \"document\": {\"_id\": 1}}, ", bad[i].operations);
        expect_bulk(fixture, operations, "", "code", bad[i].code);
    }
    gateway_try(fixture, "{\"count\": \"d\"}", "n", "0");
}

/* Copy a document and give its field "zzzz" a type that BSON does not have. */
static uint8_t *spoil(const bson_t *document)
{
    uint8_t *bytes = bson_malloc(document->len);
    memcpy(bytes, bson_get_data(document), document->len);
    for (uint32_t i = 1; i + 4 < document->len; i++)
        if (memcmp(&bytes[i], "zzzz", 4) == 0)
            bytes[i - 1] = 0x7e;
    return bytes;
}

/* A driver sends statements as a sequence, which is not checked before. */
static void expect_spoilt_is_refused(gateway_fixture_t *fixture, const bson_t *body,
                                     const char *list, const bson_t *statement)
{
    spill_client_command_t command;
    spill_error_t error;
    bson_t reply;
    bool close;
    uint8_t *bytes = spoil(statement);
    spill_wire_message_t message = {.sequences = {{list, bytes, statement->len}},
                                    .sequence_count = 1};
    bson_init_static(&message.body, bson_get_data(body), body->len);
    assert_int_equal(spill_client_command_read(&message, &command, &error), SPILL_OK);
    spill_translate_run(fixture->client->served, &fixture->client->connection, &command, &reply,
                        &close);
    gateway_expect(&reply, "code", "22");
    bson_destroy(&reply);
    bson_free(bytes);
}

static void a_statement_that_is_no_bson_changes_nothing(void **state)
{
    gateway_fixture_t *fixture = *state;
    const char *database = fixture->client->database;
    char *ns = bson_strdup_printf("%s.c", database);
    bson_t *operation = BCON_NEW("delete", BCON_INT32(0), "filter", "{", "}", "multi",
                                 BCON_BOOL(false), "zzzz", BCON_INT32(0));
    bson_t *deletion =
        BCON_NEW("q", "{", "}", "limit", BCON_INT32(1), "zzzz", BCON_INT32(0), "hint", "{", "}");
    bson_t *bulk = BCON_NEW("bulkWrite", BCON_INT32(1), "nsInfo", "[", "{", "ns", BCON_UTF8(ns),
                            "}", "]", "$db", BCON_UTF8("admin"));
    bson_t *delete = BCON_NEW("delete", BCON_UTF8("c"), "$db", BCON_UTF8(database));
    bson_destroy(gateway_run_json(fixture->client, "{\"insert\": \"c\", \"documents\": [{}]}"));
    expect_spoilt_is_refused(fixture, bulk, "ops", operation);
    expect_spoilt_is_refused(fixture, delete, "deletes", deletion);
    gateway_try(fixture, "{\"count\": \"c\"}", "n", "1");
    bson_destroy(operation);
    bson_destroy(deletion);
    bson_destroy(bulk);
    bson_destroy(delete);
    bson_free(ns);
}

static void pages_and_bookkeeping_stay_hidden(void **state)
{
    gateway_fixture_t *fixture = *state;
    static const char *const hidden[] = {"c.pages", "spillway.definitions"};
    for (size_t i = 0; i < 2; i++) {
        char *json = bson_strdup_printf(
            "{\"bulkWrite\": 1, \"ops\": [{\"delete\": 0, \"filter\": {}, \"multi\": true}], "
            "\"nsInfo\": [{\"ns\": \"%s.%s\"}], \"$db\": \"admin\"}",
            fixture->client->database, hidden[i]);
        gateway_try(fixture, json, "code", "13");
        bson_free(json);
    }
    expect_bulk(fixture, PUSH("1", "1"), ", \"autocommit\": false", "code", "263");
}

/* Operations may be commands of the database, and operations of operations. */
static void apply_ops_on_the_database_is_refused(void **state)
{
    gateway_fixture_t *fixture = *state;
    static const char *const operations[] = {
        "{\"op\": \"i\", \"ns\": \"%s.c\", \"o\": {\"_id\": 1}}",
        "{\"op\": \"c\", \"ns\": \"%s.$cmd\", \"o\": {\"drop\": \"c\"}}",
        "{\"op\": \"c\", \"ns\": \"a.$cmd\", \"o\": {\"applyOps\": [{\"ns\": \"%s.c\"}]}}"};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        char *one = bson_strdup_printf(operations[i], fixture->client->database);
        char *json = bson_strdup_printf("{\"applyOps\": [%s], \"$db\": \"admin\"}", one);
        gateway_try(fixture, json, "code", "115");
        bson_free(json);
        bson_free(one);
    }
}

/* Nothing is served in it: the server's answer is passed on, which may be that it knows no such
 * command. */
static void other_bulk_writes_are_relayed(void **state)
{
    gateway_fixture_t *fixture = *state;
    char *json = bson_strdup_printf("{\"bulkWrite\": 1, \"ops\": [{\"insert\": 0, \"document\": "
                                    "{\"ns\": \"%s.c\"}}], \"nsInfo\": [{\"ns\": \"%s.d\"}], "
                                    "\"$db\": \"admin\"}",
                                    fixture->client->database, fixture->client->database);
    bson_destroy(gateway_run_json(fixture->client, json));
    assert_true(fixture->client->relayed);
    bson_free(json);
}

/*
 * An entry holds 8 runs of numbers. Each statement that matches nothing leaves a gap. No retry of
 * the command could help, so the error is none that drivers retry.
 */
static void many_gaps_between_numbers_are_refused(void **state)
{
    enum { MATCHED = 8, STATEMENTS = 2 * MATCHED + 2 };
    gateway_fixture_t *fixture = *state;
    bson_string_t *command = bson_string_new("{\"update\": \"c\", \"updates\": [");
    gateway_push(fixture, 1, 0, 6);
    gateway_settle(fixture);
    for (int i = 0; i < STATEMENTS; i++)
        bson_string_append_printf(command,
                                  "%s{\"q\": {\"_id\": 1%s}, \"u\": {\"$push\": {\"f\": %d}}}",
                                  i > 0 ? ", " : "", i % 2 == 0 ? "" : ", \"a\": 99", i);
    bson_string_append(command, "]}");
    fixture->client->txn_number = 1;
    bson_t *reply = gateway_run_json(fixture->client, command->str);
    fixture->client->txn_number = -1;
    gateway_expect(reply, "ok", "1.0");
    gateway_expect(reply, "n", "8");
    gateway_expect(reply, "writeErrors.0.index", "16");
    gateway_expect(reply, "writeErrors.0.code", "115");
    assert_false(bson_has_field(reply, "errorLabels"));
    bson_destroy(reply);
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.f",
                "[ 0, 1, 2, 3, 4, 5, 0, 2, 4, 6, 8, 10, 12, 14 ]");
    bson_string_free(command, true);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, gateway_setup, gateway_teardown)
    const struct CMUnitTest tests[] = {TEST(one_bulk_write_changes_several_collections),
                                       TEST(the_first_error_ends_an_ordered_bulk_write),
                                       TEST(an_unordered_bulk_write_goes_on_after_errors),
                                       TEST(a_repeated_bulk_write_is_made_once),
                                       TEST(a_malformed_bulk_write_changes_nothing),
                                       TEST(a_statement_that_is_no_bson_changes_nothing),
                                       TEST(pages_and_bookkeeping_stay_hidden),
                                       TEST(apply_ops_on_the_database_is_refused),
                                       TEST(other_bulk_writes_are_relayed),
                                       TEST(many_gaps_between_numbers_are_refused)};
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
