/*
 * A user who may only read reads arrays with pages, and cannot change them through a translated
 * step, although the gateway's own user could. The gateway leaves no note of what was refused.
 */
#include "mongo/gateway_client.h"

#include "support/document.h"
#include "support/server.h"

#include <mongoc/mongoc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The client's connection is the driver's, logged in as the user. */
typedef struct user {
    spill_client_connection_t connection; /* first: the translation gets its address */
    mongoc_client_t *client;
    const char *database;
} user_t;

/* A command of the driver has its list in the body. */
static void append_list(bson_t *command, const spill_wire_sequence_t *sequence)
{
    bson_t list;
    char text[16];
    const char *key;
    uint32_t count = 0;
    bson_append_array_begin(command, sequence->name, -1, &list);
    for (size_t at = 0; at < sequence->bytes; count++) {
        bson_t document;
        uint32_t size;
        memcpy(&size, sequence->documents + at, sizeof size);
        assert_true(bson_init_static(&document, sequence->documents + at, size));
        bson_uint32_to_string(count, &key, text, sizeof text);
        bson_append_document(&list, key, -1, &document);
        at += size;
    }
    bson_append_array_end(command, &list);
}

static spill_code_t call(spill_client_connection_t *connection, const bson_t *body,
                         const spill_wire_sequence_t *sequences, size_t count, bson_t *reply,
                         spill_error_t *error)
{
    user_t *user = (user_t *)connection;
    bson_error_t cause;
    bson_t command = BSON_INITIALIZER, answer;
    (void)error;
    bson_copy_to_excluding_noinit(body, &command, "$db", NULL);
    for (size_t i = 0; i < count; i++)
        append_list(&command, &sequences[i]);
    mongoc_client_command_simple(user->client, user->database, &command, NULL, &answer, &cause);
    bson_copy_to(&answer, reply);
    bson_destroy(&answer);
    bson_destroy(&command);
    return SPILL_OK;
}

static bool reserve(spill_client_connection_t *connection, size_t bytes)
{
    (void)connection;
    (void)bytes;
    return true;
}

static user_t log_in(const char *uri, const char *database)
{
    user_t user = {.client = mongoc_client_new(uri), .database = database};
    assert_non_null(user.client);
    user.connection = (spill_client_connection_t){.call = call,
                                                  .reserve = reserve,
                                                  .reply_bytes_max = SPILL_WIRE_MESSAGE_BYTES_MAX,
                                                  .rights = spill_rights_new()};
    return user;
}

static void log_out(user_t *user)
{
    spill_rights_free(user->connection.rights);
    mongoc_client_destroy(user->client);
}

static bson_t *run(spill_served_t *served, user_t *user, const char *json)
{
    bool close;
    bson_t reply;
    spill_error_t error;
    spill_client_command_t command;
    bson_t *body = document_from_json(json);
    BSON_APPEND_UTF8(body, "$db", bson_has_field(body, "bulkWrite") ? "admin" : user->database);
    spill_wire_message_t message = {.header = {.opcode = SPILL_WIRE_MSG}};
    bson_init_static(&message.body, bson_get_data(body), body->len);
    assert_int_equal(spill_client_command_read(&message, &command, &error), SPILL_OK);
    assert_int_equal(spill_translate_classify(served, &command), SPILL_TRANSLATION_RUN);
    spill_translate_run(served, &user->connection, &command, &reply, &close);
    assert_false(close);
    bson_t *copy = bson_copy(&reply);
    bson_destroy(&reply);
    bson_destroy(body);
    return copy;
}

static bool has_error(const bson_t *reply)
{
    static const char *const places[] = {"code", "writeErrors.0.code", "cursor.firstBatch.0.code"};
    bson_iter_t iter, code;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, places[i], &code))
            return true;
    return false;
}

/* ---- a database with arrays, its owner and a reader ------------------------------------------ */

typedef struct fixture {
    char *uri;
    spill_served_t *served;
    user_t owner, reader;
} fixture_t;

static void serve(fixture_t *fixture)
{
    spill_error_t error;
    if (spill_served_open(fixture->uri, &fixture->served, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    const char *database = spill_served_database(fixture->served);
    fixture->owner = log_in(getenv("SPILLWAY_TEST_AUTH_URI"), database);
    fixture->reader = log_in(getenv("SPILLWAY_TEST_READER_URI"), database);
}

static void stop_serving(fixture_t *fixture)
{
    log_out(&fixture->reader);
    log_out(&fixture->owner);
    spill_served_free(fixture->served);
}

static void define(const fixture_t *fixture, const char *array, const char *pages)
{
    spill_definition_t definition = gateway_small_definition();
    spill_store_t *store = server_open(fixture->uri);
    strcpy(definition.array, array);
    strcpy(definition.page_array, array);
    snprintf(definition.name, sizeof definition.name, "c.%s", array);
    snprintf(definition.page_collection, sizeof definition.page_collection, "%s", pages);
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    server_close(store);
}

static void make_array(fixture_t *fixture, int owner, int length)
{
    char push[200];
    snprintf(push, sizeof push,
             "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": %d}, \"u\": {\"$push\": {\"f\": "
             "1}}, \"upsert\": true}]}",
             owner);
    for (int i = 0; i < length; i++) {
        bson_t *reply = run(fixture->served, &fixture->owner, push);
        assert_false(has_error(reply));
        bson_destroy(reply);
    }
}

/* Owner 1 has pages; the array of owner 3 is adopted, and all of it is in the head. */
static int setup(void **state)
{
    fixture_t *fixture = bson_malloc0(sizeof *fixture);
    fixture->uri = server_new_database(NULL);
    define(fixture, "f", "c.pages");
    serve(fixture);
    make_array(fixture, 1, 6);
    make_array(fixture, 3, 4);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_t *fixture = *state;
    stop_serving(fixture);
    server_drop(fixture->uri);
    bson_free(fixture->uri);
    bson_free(fixture);
    return 0;
}

/* All of a collection, in order, as the server has it. */
static char *collection_text(fixture_t *fixture, const char *collection)
{
    bson_t reply;
    bson_error_t error;
    bson_t *find = BCON_NEW("find", BCON_UTF8(collection), "sort", "{", "_id", BCON_INT32(1), "}");
    if (!mongoc_client_command_simple(fixture->owner.client, fixture->owner.database, find, NULL,
                                      &reply, &error))
        fail_msg("%s", error.message);
    char *text = bson_as_canonical_extended_json(&reply, NULL);
    bson_destroy(&reply);
    bson_destroy(find);
    return text;
}

/* The reader's command is refused, and changes nothing: no head, no page, and no bookkeeping. */
static void expect_refused(fixture_t *fixture, const char *json)
{
    static const char *const collections[] = {"c", "c.pages", "spillway.marks"};
    enum { COLLECTIONS = sizeof collections / sizeof *collections };
    char *before[COLLECTIONS];
    for (size_t i = 0; i < COLLECTIONS; i++)
        before[i] = collection_text(fixture, collections[i]);
    bson_t *reply = run(fixture->served, &fixture->reader, json);
    if (!has_error(reply))
        fail_msg("not refused: %s", json);
    bson_destroy(reply);
    for (size_t i = 0; i < COLLECTIONS; i++) {
        char *after = collection_text(fixture, collections[i]);
        if (strcmp(before[i], after) != 0)
            fail_msg("%s has changed %s", json, collections[i]);
        bson_free(after);
        bson_free(before[i]);
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_reader_reads_and_does_not_write(void **state)
{
    static const char *const writes[] = {
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": 1}}}]}",
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 2}, \"u\": {\"$push\": {\"f\": 1}}, "
        "\"upsert\": true}]}",
        "{\"update\": \"c\", \"updates\": [{\"q\": {}, \"u\": {\"$push\": {\"f\": 1}}, \"multi\": "
        "true}]}",
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 3}, \"u\": {\"$unset\": {\"f\": "
        "1}}}]}",
        "{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, \"update\": {\"$push\": {\"f\": 1}}}",
        "{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, \"remove\": true}",
        "{\"delete\": \"c\", \"deletes\": [{\"q\": {\"_id\": 1}, \"limit\": 1}]}",
        "{\"delete\": \"c\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}",
        "{\"drop\": \"c\"}",
        "{\"dropDatabase\": 1}"};
    fixture_t *fixture = *state;
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
        expect_refused(fixture, writes[i]);
    bson_t *reply =
        run(fixture->served, &fixture->reader, "{\"find\": \"c\", \"filter\": {\"_id\": 1}}");
    gateway_expect(reply, "cursor.firstBatch", "[ { \"_id\" : 1, \"f\" : [ 1, 1, 1, 1, 1, 1 ] } ]");
    bson_destroy(reply);
}

static void a_reader_makes_no_bulk_write(void **state)
{
    static const char *const operations[] = {
        "{\"update\": 0, \"filter\": {\"_id\": 1}, \"updateMods\": {\"$push\": {\"f\": 1}}}",
        ("{\"update\": 0, \"filter\": {\"_id\": 2}, \"upsert\": true, "
         "\"updateMods\": {\"$push\": {\"f\": 1}}}"),
        "{\"update\": 0, \"filter\": {\"_id\": 3}, \"updateMods\": {\"$unset\": {\"f\": 1}}}",
        "{\"insert\": 0, \"document\": {\"_id\": 4, \"f\": [1]}}",
        "{\"delete\": 0, \"filter\": {\"_id\": 1}}",
        "{\"delete\": 0, \"filter\": {}, \"multi\": true}"};
    fixture_t *fixture = *state;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        char *command = bson_strdup_printf(
            "{\"bulkWrite\": 1, \"ops\": [%s], \"nsInfo\": [{\"ns\": \"%s.c\"}]}", operations[i],
            fixture->reader.database);
        expect_refused(fixture, command);
        bson_free(command);
    }
}

/* Two definitions share the collection: it is not served, and its owner may drop it. */
static void a_reader_drops_nothing_that_is_not_served(void **state)
{
    fixture_t *fixture = *state;
    define(fixture, "g", "c.g.pages");
    stop_serving(fixture);
    serve(fixture);
    expect_refused(fixture, "{\"drop\": \"c\"}");
    expect_refused(fixture, "{\"dropDatabase\": 1}");
    bson_t *reply = run(fixture->served, &fixture->owner, "{\"drop\": \"c\"}");
    assert_false(has_error(reply));
    bson_destroy(reply);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(a_reader_reads_and_does_not_write),
                                       TEST(a_reader_makes_no_bulk_write),
                                       TEST(a_reader_drops_nothing_that_is_not_served)};
    const char *owner = getenv("SPILLWAY_TEST_AUTH_URI");
    if (owner == NULL || getenv("SPILLWAY_TEST_READER_URI") == NULL)
        return 77;
    setenv("SPILLWAY_TEST_URI", owner, 1); /* for server_new_database */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
