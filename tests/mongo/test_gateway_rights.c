/*
 * A user who may only read reads arrays with pages, and cannot change them through a translated
 * step, although the gateway's own user could.
 */
#include "mongo/gateway_client.h"

#include "support/document.h"
#include "support/server.h"

#include <mongoc/mongoc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The client's connection is the driver's, logged in as the user. */
typedef struct user {
    spill_client_connection_t connection; /* first: the translation gets its address */
    mongoc_client_t *client;
    const char *database;
} user_t;

static spill_code_t call(spill_client_connection_t *connection, const bson_t *body,
                         const spill_wire_sequence_t *sequences, size_t count, bson_t *reply,
                         spill_error_t *error)
{
    user_t *user = (user_t *)connection;
    bson_error_t cause;
    bson_t command = BSON_INITIALIZER, answer;
    (void)sequences;
    (void)error;
    assert_int_equal(count, 0);
    bson_copy_to_excluding_noinit(body, &command, "$db", NULL);
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
    bson_t *body = document_from_json(json);
    BSON_APPEND_UTF8(body, "$db", user->database);
    spill_wire_message_t message = {.header = {.opcode = SPILL_WIRE_MSG}};
    bson_init_static(&message.body, bson_get_data(body), body->len);
    bson_iter_t iter;
    assert_true(bson_iter_init(&iter, body) && bson_iter_next(&iter));
    spill_client_command_t command = {.message = &message,
                                      .name = bson_iter_key(&iter),
                                      .collection = bson_iter_utf8(&iter, NULL),
                                      .database = user->database,
                                      .txn_number = -1};
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
    bson_iter_t iter, code;
    return bson_iter_init_find(&iter, reply, "code") ||
           (bson_iter_init(&iter, reply) &&
            bson_iter_find_descendant(&iter, "writeErrors.0.code", &code));
}

static void expect_refused(spill_served_t *served, user_t *user, const char *json)
{
    bson_t *reply = run(served, user, json);
    if (!has_error(reply))
        fail_msg("not refused: %s", json);
    bson_destroy(reply);
}

static void make_array(spill_served_t *served, user_t *owner)
{
    for (int i = 0; i < 6; i++) {
        bson_t *reply = run(served, owner,
                            "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": "
                            "{\"$push\": {\"f\": 1}}, \"upsert\": true}]}");
        assert_false(has_error(reply));
        bson_destroy(reply);
    }
}

static void a_reader_reads_and_does_not_write(void **state)
{
    static const char *const writes[] = {
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": 1}}}]}",
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 2}, \"u\": {\"$push\": {\"f\": 1}}, "
        "\"upsert\": true}]}",
        "{\"update\": \"c\", \"updates\": [{\"q\": {}, \"u\": {\"$push\": {\"f\": 1}}, \"multi\": "
        "true}]}",
        "{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, \"update\": {\"$push\": {\"f\": 1}}}",
        "{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, \"remove\": true}",
        "{\"delete\": \"c\", \"deletes\": [{\"q\": {\"_id\": 1}, \"limit\": 1}]}",
        "{\"delete\": \"c\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}"};
    spill_error_t error;
    spill_served_t *served;
    spill_definition_t definition = gateway_small_definition();
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open(uri);
    (void)state;
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    server_close(store);
    if (spill_served_open(uri, &served, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    user_t owner = log_in(getenv("SPILLWAY_TEST_AUTH_URI"), spill_served_database(served));
    user_t reader = log_in(getenv("SPILLWAY_TEST_READER_URI"), spill_served_database(served));
    make_array(served, &owner);
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
        expect_refused(served, &reader, writes[i]);
    bson_t *reply = run(served, &reader, "{\"find\": \"c\"}");
    gateway_expect(reply, "cursor.firstBatch", "[ { \"_id\" : 1, \"f\" : [ 1, 1, 1, 1, 1, 1 ] } ]");
    bson_destroy(reply);
    log_out(&reader);
    log_out(&owner);
    spill_served_free(served);
    server_drop(uri);
    bson_free(uri);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_reader_reads_and_does_not_write)};
    const char *owner = getenv("SPILLWAY_TEST_AUTH_URI");
    if (owner == NULL || getenv("SPILLWAY_TEST_READER_URI") == NULL)
        return 77;
    setenv("SPILLWAY_TEST_URI", owner, 1); /* for server_new_database */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
