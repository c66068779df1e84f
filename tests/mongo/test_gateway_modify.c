/* What findAndModify returns if the document's managed array is missing. */
#include "mongo/gateway_client.h"

#include "support/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A replacement without F leaves a managed array without its field. */
static void make_missing(gateway_fixture_t *fixture, const char *replacement)
{
    gateway_push(fixture, 1, 0, 4);
    gateway_settle(fixture);
    char *update = bson_strdup_printf(
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": %s}]}", replacement);
    gateway_try(fixture, update, "n", "1");
    bson_free(update);
    gateway_try_direct(fixture, "{\"count\": \"c\", \"query\": {\"spill.f\": {\"$exists\": true}}}",
                       "n", "1");
}

/* The document before has none of the fields that are asked for. */
static void a_document_without_a_field_is_returned_empty(void **state)
{
    gateway_fixture_t *fixture = *state;
    make_missing(fixture, "{\"a\": 1}");
    gateway_try(fixture,
                "{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, \"update\": {\"$push\": "
                "{\"f\": 5}}, \"fields\": {\"f\": 1, \"_id\": 0}}",
                "value", "{  }");
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch",
                "[ { \"_id\" : 1, \"a\" : 1, \"f\" : [ 5 ] } ]");
}

static void a_removed_head_without_a_field_is_returned_empty(void **state)
{
    gateway_fixture_t *fixture = *state;
    gateway_push(fixture, 1, 0, 9);
    gateway_settle(fixture);
    gateway_try(fixture,
                "{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, \"remove\": true, "
                "\"fields\": {\"none\": 1, \"_id\": 0}}",
                "value", "{  }");
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch", "[  ]");
}

/*
 * An operator on a missing array is for the server alone: the end of the bookkeeping is no part of
 * its update, which changes nothing.
 */
static void an_operator_on_a_missing_array_changes_nothing(void **state)
{
    static const char *const updates[] = {"{\"$pull\": {\"f\": 3}}", "{\"$pop\": {\"f\": 1}}",
                                          "{\"$pullAll\": {\"f\": [1]}}",
                                          "{\"$unset\": {\"f\": 1}}"};
    gateway_fixture_t *fixture = *state;
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++)
        for (int many = 0; many < 2; many++) {
            make_missing(fixture, "{\"a\": 1}");
            char *update = bson_strdup_printf(
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"a\": 1}, \"u\": %s, \"multi\": %s}]}",
                updates[i], many == 1 ? "true" : "false");
            gateway_try(fixture, update, "nModified", "0");
            gateway_try_direct(fixture, "{\"find\": \"c\"}", "cursor.firstBatch",
                               "[ { \"_id\" : 1, \"a\" : 1 } ]");
            bson_free(update);
            gateway_try(fixture, "{\"delete\": \"c\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}",
                        "n", "1");
        }
}

/*
 * Behind an array of documents there is no array, though an expression makes one of their fields.
 * So the push is for the server, which refuses it.
 */
static void a_path_through_an_array_is_the_servers(void **state)
{
    (void)state;
    spill_definition_t definition = gateway_small_definition();
    strcpy(definition.array, "h.f");
    gateway_fixture_t *fixture = gateway_fixture_new(&definition);
    gateway_try_direct(fixture,
                       "{\"insert\": \"c\", \"documents\": [{\"_id\": 1, \"h\": [{\"f\": [1]}]}]}",
                       "n", "1");
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": "
                "{\"h.f\": {\"$each\": [2, 3, 4, 5]}}}}]}",
                "writeErrors.0.code", "28");
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.h", "[ { \"f\" : [ 1 ] } ]");
    gateway_fixture_free(fixture);
}

/* The filter of owner `owner` with a variable of `let`, and what the reply to it has. */
static void try_let(gateway_fixture_t *fixture, int owner, const char *format, const char *path,
                    const char *json)
{
    char command[512];
    snprintf(command, sizeof command, format, owner);
    gateway_try(fixture, command, path, json);
}

/* Each step that carries the filter needs `let`. A guard of the library does not have it. */
static void a_filter_with_let_finds_the_same(void **state)
{
#define WITH_LET "{\"$expr\": {\"$eq\": [\"$a\", \"$$x\"]}}"
#define UPDATE(u)                                                                                  \
    "{\"update\": \"c\", \"updates\": [{\"q\": " WITH_LET ", \"u\": " u "}], \"let\": {\"x\": "    \
    "%d}}"
#define MODIFY(u) "{\"findAndModify\": \"c\", \"query\": " WITH_LET ", " u ", \"let\": {\"x\": %d}}"
    enum { PLAIN = 1, ADOPTED = 2, WITH_PAGES = 3 };
    gateway_fixture_t *fixture = *state;
    const int lengths[] = {[PLAIN] = 2, [ADOPTED] = 4, [WITH_PAGES] = 9};
    for (int owner = PLAIN; owner <= WITH_PAGES; owner++)
        gateway_push(fixture, owner, 0, lengths[owner]);
    gateway_try_direct(fixture,
                       "{\"update\": \"c\", \"updates\": [{\"q\": {}, \"u\": [{\"$set\": {\"a\": "
                       "\"$_id\"}}], \"multi\": true}]}",
                       "n", "3");
    gateway_settle(fixture);
    try_let(fixture, PLAIN, UPDATE("{\"$push\": {\"f\": 9}}"), "n", "1");
    try_let(fixture, ADOPTED, UPDATE("{\"$push\": {\"f\": 9}}"), "n", "1");
    try_let(fixture, ADOPTED, UPDATE("{\"$pop\": {\"f\": 1}}"), "n", "1");
    try_let(fixture, WITH_PAGES, UPDATE("{\"$push\": {\"f\": 9}}"), "writeErrors.0.code", "115");
    try_let(fixture, WITH_PAGES, MODIFY("\"update\": {\"$push\": {\"f\": 9}}"), "code", "115");
    try_let(fixture, WITH_PAGES, UPDATE("{\"$set\": {\"b\": 1}}"), "n", "1");
    for (int owner = PLAIN; owner <= WITH_PAGES; owner++)
        try_let(fixture, owner,
                "{\"delete\": \"c\", \"deletes\": [{\"q\": " WITH_LET ", \"limit\": 0}], \"let\": "
                "{\"x\": %d}}",
                "n", "1");
}

/* A sort is for the document that is found, so {"_id": ...} with one finds the same document. */
static void make_upsert(int owner, int value, const char *options, char command[512])
{
    snprintf(command, 512,
             "{\"findAndModify\": \"c\", \"query\": {\"_id\": %d}, \"update\": {\"$push\": {\"f\": "
             "%d}}, \"upsert\": true, \"fields\": {\"f\": 1, \"_id\": 0}%s}",
             owner, value, options);
}

/* An upsert finds a document of every kind, and makes none beside it. */
static void an_upsert_finds_the_document(void **state)
{
    static const char *const sorts[] = {"", ", \"sort\": {\"_id\": 1}"};
    static const char *const elements[] = {"[ 0 ]", "[ 0, 1, 2, 3 ]",
                                           "[ 0, 1, 2, 3, 4, 5, 6, 7, 8 ]"};
    static const int lengths[] = {1, 4, 9}; /* unmanaged, adopted, with pages */
    gateway_fixture_t *fixture = *state;
    int owner = 0;
    for (size_t kind = 0; kind < sizeof lengths / sizeof *lengths; kind++)
        for (size_t sort = 0; sort < sizeof sorts / sizeof *sorts; sort++) {
            char before[128], after[128], options[128], command[512];
            gateway_push(fixture, ++owner, 0, lengths[kind]);
            gateway_settle(fixture);
            snprintf(before, sizeof before, "{ \"f\" : %s }", elements[kind]);
            make_upsert(owner, 50, sorts[sort], command);
            gateway_try(fixture, command, "value", before);
            snprintf(after, sizeof after, "{ \"f\" : %.*s, 50, 51 ] }",
                     (int)strlen(elements[kind]) - 2, elements[kind]);
            snprintf(options, sizeof options, ", \"new\": true%s", sorts[sort]);
            make_upsert(owner, 51, options, command);
            gateway_try(fixture, command, "value", after);
            make_upsert(owner + 100, 1, options, command); /* absent */
            gateway_try(fixture, command, "value", "{ \"f\" : [ 1 ] }");
        }
}

/* Before the gateway inserts the document, another gateway does, and adopts its array. */
static bool push_before_the_insert(gateway_client_t *client, const bson_t *body)
{
    gateway_fixture_t other = {.client = client->context};
    bson_iter_t upsert;
    if (!bson_iter_init_find(&upsert, body, "upsert"))
        return true;
    client->before_call = NULL;
    gateway_push(&other, 1, 0, 4);
    return true;
}

static void an_upsert_that_loses_a_race_appends(void **state)
{
    gateway_fixture_t *fixture = *state;
    char command[512];
    fixture->client->context = gateway_client_new(fixture->uri);
    fixture->client->before_call = push_before_the_insert;
    make_upsert(1, 50, ", \"new\": true", command);
    gateway_try(fixture, command, "value", "{ \"f\" : [ 0, 1, 2, 3, 50 ] }");
    assert_null(fixture->client->before_call);
    gateway_client_free(fixture->client->context);
}

/* A document that breaks another unique index is no document that the upsert finds. */
static void an_upsert_that_breaks_an_index_fails(void **state)
{
    gateway_fixture_t *fixture = *state;
    gateway_try(fixture,
                "{\"createIndexes\": \"c\", \"indexes\": [{\"key\": {\"u\": 1}, \"name\": "
                "\"u\", \"unique\": true}]}",
                "ok", "1.0");
    gateway_try(fixture, "{\"insert\": \"c\", \"documents\": [{\"_id\": 1, \"u\": 1}]}", "n", "1");
    bson_t *reply = gateway_run_json(
        fixture->client,
        "{\"findAndModify\": \"c\", \"query\": {\"_id\": 2}, \"update\": {\"$push\": "
        "{\"f\": 1}, \"$set\": {\"u\": 1}}, \"upsert\": true}");
    gateway_expect(reply, "ok", "0.0");
    bson_destroy(reply);
    gateway_try(fixture, "{\"count\": \"c\"}", "n", "1");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, gateway_setup, gateway_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_document_without_a_field_is_returned_empty),
        TEST(a_removed_head_without_a_field_is_returned_empty),
        TEST(a_filter_with_let_finds_the_same),
        TEST(an_operator_on_a_missing_array_changes_nothing),
        TEST(an_upsert_finds_the_document),
        TEST(an_upsert_that_loses_a_race_appends),
        TEST(an_upsert_that_breaks_an_index_fails),
        cmocka_unit_test(a_path_through_an_array_is_the_servers),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
