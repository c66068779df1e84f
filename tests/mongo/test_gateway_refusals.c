/*
 * What a refusal says: the collection that it concerns, and what to do instead. And what belongs to
 * Spillway: reads by name are relayed, every change is refused.
 */
#include "mongo/gateway_client.h"

#include "support/document.h"
#include "support/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A command that is refused because owner 1 of "c" has pages; "@" is the database. */
typedef struct refusal {
    const char *command;
    const char *names;  /* the collection, in quotes */
    const char *advice; /* a phrase of the message */
} refusal_t;

static char *with_database(const gateway_client_t *client, const char *text)
{
    bson_string_t *made = bson_string_new("");
    for (; *text != '\0'; text++)
        if (*text == '@')
            bson_string_append(made, client->database);
        else
            bson_string_append_c(made, *text);
    return bson_string_free(made, false);
}

static bson_t *run_command(gateway_fixture_t *fixture, const char *command)
{
    char *text = with_database(fixture->client, command);
    bson_t *reply = gateway_run_json(fixture->client, text);
    bson_free(text);
    return reply;
}

static void expect_refusal(gateway_fixture_t *fixture, const refusal_t *refusal, const char *code)
{
    static const char *const places[] = {"", "writeErrors.0.", "cursor.firstBatch.0."};
    bson_iter_t iter, found;
    bson_t *reply = run_command(fixture, refusal->command);
    char *all = bson_as_relaxed_extended_json(reply, NULL);
    char path[64] = "";
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%serrmsg", places[i]);
        if (bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, path, &found))
            break;
    }
    if (!bson_iter_init(&iter, reply) || !bson_iter_find_descendant(&iter, path, &found))
        fail_msg("%s is not refused: %s", refusal->command, all);
    const char *message = bson_iter_utf8(&found, NULL);
    if (strstr(message, refusal->names) == NULL || strstr(message, refusal->advice) == NULL ||
        strstr(message, "''") != NULL)
        fail_msg("%s\nis refused with: %s\nwithout %s, or without '%s'", refusal->command, message,
                 refusal->names, refusal->advice);
    path[strlen(path) - strlen("errmsg")] = '\0';
    strcat(path, "code");
    gateway_expect(reply, path, code);
    bson_free(all);
    bson_destroy(reply);
}

#define UPDATE(q, u) "{\"update\": \"c\", \"updates\": [{\"q\": " q ", \"u\": " u "}]}"
#define FIND(filter) "{\"find\": \"c\", \"filter\": " filter "}"
#define STAGES(stages) "{\"aggregate\": \"c\", \"cursor\": {}, \"pipeline\": [" stages "]}"
#define ELSEWHERE(stages) "{\"aggregate\": \"o\", \"cursor\": {}, \"pipeline\": [" stages "]}"

#define BULK(operation, name)                                                                      \
    "{\"bulkWrite\": 1, \"ops\": [" operation "], \"nsInfo\": [{\"ns\": \"@." name                 \
    "\"}], \"$db\": \"admin\"}"

static void a_refusal_names_the_collection_and_an_alternative(void **state)
{
    static const refusal_t refusals[] = {
        {FIND("{\"f\": 1}"), "'c'", "add the _id"},
        {FIND("{\"_id\": 1, \"f\": 1}"), "'c'", "find the document by its _id alone"},
        {"{\"find\": \"c\", \"sort\": {\"f\": 1}}", "'c'", "add the _id"},
        {FIND("{\"spill.f.pages\": 1}"), "'c'", "leave it out"},
        {"{\"find\": \"c\", \"projection\": {\"x\": {\"$size\": \"$f\"}}}", "'c'",
         "read the whole array"},
        {"{\"find\": \"c\", \"readConcern\": {\"level\": \"snapshot\"}}", "'c'",
         "use another read concern"},
        {"{\"count\": \"c\", \"query\": {\"f\": 1}}", "'c'", "add the _id"},
        {"{\"count\": \"c\", \"query\": {\"f\": 1, \"_id\": 1}}", "'c'", "by its _id alone"},
        {"{\"distinct\": \"c\", \"key\": \"f\"}", "'c'", "add the _id"},
        {"{\"distinct\": \"c\", \"key\": \"f\", \"query\": {\"_id\": 1}}", "'c'",
         "by its _id alone"},
        {STAGES("{\"$unwind\": \"$f\"}"), "'c'", "add the _id"},
        {STAGES("{\"$match\": {\"_id\": 1}}, {\"$unwind\": \"$f\"}"), "'c'",
         "find and the projection {\"f\": {\"$slice\": -50}}"},
        {STAGES("{\"$project\": {\"f\": {\"$slice\": [\"$f\", -5]}}}"), "'c'",
         "#count-or-search-the-elements"},
        {UPDATE("{\"_id\": 1}", "{\"$pullAll\": {\"f\": [3]}}"), "'c'",
         "`spillway remove STORE c.f OWNER`"},
        {UPDATE("{\"_id\": 1}", "{\"$set\": {\"f.3\": 1}}"), "'c'",
         "`spillway edit STORE c.f OWNER`"},
        {UPDATE("{\"_id\": 1, \"f\": 3}", "{\"$set\": {\"f.$\": 1}}"), "'c'",
         "`spillway edit STORE c.f OWNER`"},
        {"{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$set\": "
         "{\"f.$[e]\": 1}}, \"arrayFilters\": [{\"e\": 3}]}]}",
         "'c'", "#remove-or-edit-an-element"},
        {STAGES("{\"$changeStream\": {}}"), "'c'", "watch the collection on the server"},
        {ELSEWHERE("{\"$unionWith\": \"c\"}"), "'c'", "read them with find"},
        {ELSEWHERE("{\"$merge\": \"c\"}"), "'c'", "write to another collection"},
        {ELSEWHERE("{\"$out\": \"c\"}"), "'c'", "write to another collection"},
        {UPDATE("{\"_id\": 1}", "{\"$pull\": {\"f\": 3}}"), "'c'", "append with $push"},
        {UPDATE("{\"_id\": 1}", "{\"$push\": {\"f\": {\"$each\": [1], \"$slice\": 2}}}"), "'c'",
         "push to the end"},
        {UPDATE("{\"_id\": 1}", "{\"k\": 1}"), "'c'", "append with $push"},
        {UPDATE("{\"_id\": 1, \"f\": 3}", "{\"$set\": {\"a\": 1}}"), "'c'", "give the _id alone"},
        {UPDATE("{\"f\": 3}", "{\"$push\": {\"f\": 1}}"), "'c'", "give the _id alone"},
        {UPDATE("{\"_id\": 1}", "{\"$set\": {\"spill\": 1}}"), "'c'", "leave it out"},
        {"{\"update\": \"c\", \"updates\": [{\"q\": {}, \"u\": {\"$pop\": {\"f\": 1}}, \"multi\": "
         "true}]}",
         "'c'", "append with $push"},
        {"{\"insert\": \"c\", \"documents\": [{\"spill\": 1}]}", "'c'", "leave it out"},
        {"{\"delete\": \"c\", \"deletes\": [{\"q\": {\"_id\": 1, \"f\": 3}, \"limit\": 1}]}", "'c'",
         "give the _id alone"},
        {"{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, \"update\": {\"$pop\": {\"f\": 1}}}",
         "'c'", "append with $push"},
        {"{\"findAndModify\": \"c\", \"sort\": {\"f\": 1}, \"update\": {\"$set\": {\"a\": 1}}}",
         "'c'", "sort by another field"},
        {"{\"create\": \"v\", \"viewOn\": \"c\", \"pipeline\": []}", "'v'",
         "query the collection itself"},
        {"{\"mapReduce\": \"c\"}", "'c'", "use aggregate"},
        {"{\"mapReduce\": \"o\", \"out\": {\"merge\": \"c\"}}", "'c'", "use aggregate"},
        {"{\"convertToCapped\": \"c\", \"size\": 1}", "'c'", "use find"},
        {"{\"renameCollection\": \"@.c\", \"to\": \"@.d\", \"$db\": \"admin\"}", "'c'",
         "rename the collection"},
        {"{\"renameCollection\": \"@.o\", \"to\": \"@.c\", \"$db\": \"admin\"}", "'c'",
         "rename the collection"},
        {"{\"applyOps\": [{\"op\": \"n\", \"ns\": \"@.c\"}], \"$db\": \"admin\"}", "'@'",
         "send insert"},
        {"{\"bulkWrite\": 1, \"ops\": [{\"update\": 0, \"filter\": {\"_id\": 1}, \"updateMods\": "
         "{\"$pop\": {\"f\": 1}}}], \"nsInfo\": [{\"ns\": \"@.c\"}], \"$db\": \"admin\"}",
         "'c'", "append with $push"}};
    gateway_fixture_t *fixture = *state;
    gateway_push(fixture, 1, 0, 8);
    gateway_settle(fixture);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        refusal_t refusal = refusals[i];
        char *names = with_database(fixture->client, refusal.names);
        refusal.names = names;
        expect_refusal(fixture, &refusal, "115");
        bson_free(names);
    }
    gateway_try(fixture, FIND("{}"), "cursor.firstBatch.0",
                "{ \"_id\" : 1, \"f\" : [ 0, 1, 2, 3, 4, 5, 6, 7 ] }");
}

/* ---- what belongs to Spillway ---------------------------------------------------------------- */

/* All documents of both collections, as they are stored. */
static char *stored_text(gateway_fixture_t *fixture)
{
    static const char *const finds[] = {
        "{\"find\": \"c.pages\", \"sort\": {\"_id\": 1}}",
        "{\"find\": \"spillway.definitions\", \"sort\": {\"_id\": 1}}"};
    bson_string_t *all = bson_string_new("");
    for (size_t i = 0; i < sizeof finds / sizeof *finds; i++) {
        bson_t *reply = gateway_direct_json(fixture->client, finds[i]);
        bson_iter_t iter, batch;
        assert_true(bson_iter_init(&iter, reply) &&
                    bson_iter_find_descendant(&iter, "cursor.firstBatch.0", &batch));
        char *text = bson_as_relaxed_extended_json(reply, NULL);
        bson_string_append(all, text);
        bson_free(text);
        bson_destroy(reply);
    }
    return bson_string_free(all, false);
}

static void changes_of_pages_and_bookkeeping_are_refused(void **state)
{
    /* "#" is the collection. */
    static const char *const commands[] = {
        "{\"insert\": \"#\", \"documents\": [{}]}",
        "{\"update\": \"#\", \"updates\": [{\"q\": {}, \"u\": {\"$set\": {\"x\": 1}}}]}",
        "{\"delete\": \"#\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}",
        "{\"findAndModify\": \"#\", \"remove\": true}",
        "{\"findandmodify\": \"#\", \"update\": {\"$set\": {\"x\": 1}}}",
        "{\"drop\": \"#\"}",
        "{\"create\": \"#\"}",
        "{\"collMod\": \"#\"}",
        "{\"createIndexes\": \"#\", \"indexes\": []}",
        "{\"dropIndexes\": \"#\", \"index\": \"*\"}",
        "{\"convertToCapped\": \"#\", \"size\": 1}",
        "{\"mapReduce\": \"o\", \"out\": \"#\"}",
        "{\"mapReduce\": \"o\", \"out\": {\"replace\": \"#\"}}",
        ELSEWHERE("{\"$out\": \"#\"}"),
        ELSEWHERE("{\"$out\": {\"db\": \"@\", \"coll\": \"#\"}}"),
        ELSEWHERE("{\"$merge\": {\"into\": {\"db\": \"@\", \"coll\": \"#\"}}}"),
        STAGES("{\"$merge\": {\"into\": \"#\"}}"),
        "{\"renameCollection\": \"@.#\", \"to\": \"@.x\", \"$db\": \"admin\"}",
        "{\"renameCollection\": \"@.o\", \"to\": \"@.#\", \"$db\": \"admin\"}",
        BULK("{\"delete\": 0, \"filter\": {}}", "#")};
    static const char *const collections[] = {"c.pages", "spillway.definitions", "spillway.marks"};
    gateway_fixture_t *fixture = *state;
    gateway_push(fixture, 1, 0, 8);
    gateway_settle(fixture);
    char *before = stored_text(fixture);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        for (size_t j = 0; j < sizeof collections / sizeof *collections; j++) {
            bson_string_t *command = bson_string_new("");
            char *names = bson_strdup_printf("'%s'", collections[j]);
            for (const char *at = commands[i]; *at != '\0'; at++)
                if (*at == '#')
                    bson_string_append(command, collections[j]);
                else
                    bson_string_append_c(command, *at);
            const refusal_t refusal = {command->str, names, "would damage arrays; change"};
            expect_refusal(fixture, &refusal, "13");
            bson_string_free(command, true);
            bson_free(names);
        }
    char *after = stored_text(fixture);
    assert_string_equal(after, before);
    bson_free(before);
    bson_free(after);
}

/* Listings hide them. A client that knows a name reads what is stored. */
static void pages_and_bookkeeping_are_read_by_name(void **state)
{
    gateway_fixture_t *fixture = *state;
    gateway_push(fixture, 1, 0, 8);
    gateway_settle(fixture);
    gateway_try(fixture, "{\"listCollections\": 1, \"filter\": {\"name\": \"c.pages\"}}",
                "cursor.firstBatch", "[  ]");
    gateway_try(fixture,
                "{\"listCollections\": 1, \"filter\": {\"name\": {\"$regex\": \"^spill\"}}}",
                "cursor.firstBatch", "[  ]");
    gateway_try(fixture,
                "{\"find\": \"c.pages\", \"sort\": {\"_id\": 1}, \"limit\": 1, \"projection\": "
                "{\"_id\": 0, \"f\": 1}}",
                "cursor.firstBatch.0", "{ \"f\" : [ 0, 1 ] }");
    assert_true(fixture->client->relayed);
    gateway_try(fixture, "{\"count\": \"spillway.definitions\"}", "n", "1");
    assert_true(fixture->client->relayed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_refusal_names_the_collection_and_an_alternative,
                                        gateway_setup, gateway_teardown),
        cmocka_unit_test_setup_teardown(changes_of_pages_and_bookkeeping_are_refused, gateway_setup,
                                        gateway_teardown),
        cmocka_unit_test_setup_teardown(pages_and_bookkeeping_are_read_by_name, gateway_setup,
                                        gateway_teardown),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
