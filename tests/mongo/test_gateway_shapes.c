/*
 * Shapes of commands that could slip through: reads that would return a part of an array or
 * `spill`, and statements whose filter, flags or numbers differ from the usual ones.
 */
#include "mongo/gateway_client.h"

#include "support/document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* "c" is served; "p" has the same documents. Owner 1 is unmanaged, 2 is adopted, 3 has pages. */
enum { OWNERS = 3, ADOPTED_LENGTH = 4, LONG_LENGTH = 12 };

static bson_t *run_on(gateway_fixture_t *fixture, const char *command, const char *collection)
{
    bson_string_t *text = bson_string_new("");
    for (; *command != '\0'; command++)
        if (*command == '@')
            bson_string_append(text, collection);
        else
            bson_string_append_c(text, *command);
    bson_t *reply = strcmp(collection, "c") == 0 ? gateway_run_json(fixture->client, text->str)
                                                 : gateway_direct_json(fixture->client, text->str);
    bson_string_free(text, true);
    return reply;
}

/* Run a write on both collections. */
static void write_both(gateway_fixture_t *fixture, const char *command)
{
    static const char *const names[] = {"c", "p"};
    for (size_t i = 0; i < 2; i++) {
        bson_t *reply = run_on(fixture, command, names[i]);
        gateway_expect(reply, "ok", "1.0");
        gateway_expect(reply, "writeErrors", "null");
        bson_destroy(reply);
    }
}

static void fill(gateway_fixture_t *fixture, int longest)
{
    const int lengths[OWNERS] = {2, ADOPTED_LENGTH, longest};
    char command[256];
    for (int owner = 1; owner <= OWNERS; owner++) {
        snprintf(command, sizeof command,
                 "{\"insert\": \"@\", \"documents\": [{\"_id\": %d, \"a\": %d, \"b\": {\"z\": 1, "
                 "\"y\": 2}, \"t\": [1, 2], \"l\": [%d, 0]}]}",
                 owner, owner, owner);
        write_both(fixture, command);
        for (int i = 0; i < lengths[owner - 1]; i++) {
            snprintf(command, sizeof command,
                     "{\"update\": \"@\", \"updates\": [{\"q\": {\"_id\": %d}, \"u\": {\"$push\": "
                     "{\"f\": %d}}}]}",
                     owner, i);
            write_both(fixture, command);
        }
    }
    bson_t *reply = gateway_direct_json(
        fixture->client,
        "{\"insert\": \"x\", \"documents\": [{\"_id\": 1}, {\"_id\": 2}, {\"_id\": 3}]}");
    gateway_expect(reply, "n", "3");
    bson_destroy(reply);
}

/* ---- reads ----------------------------------------------------------------------------------- */

#define FIND(projection) "{\"find\": \"@\", \"sort\": {\"_id\": 1}, \"projection\": " projection "}"
#define AGGREGATE(stages)                                                                          \
    "{\"aggregate\": \"@\", \"pipeline\": [{\"$sort\": {\"_id\": 1}}, " stages "], \"cursor\": "   \
    "{}}"
#define JOIN(stages)                                                                               \
    "{\"aggregate\": \"x\", \"pipeline\": [{\"$sort\": {\"_id\": 1}}, " stages "], \"cursor\": "   \
    "{}}"

/* Exact for every array. */
static const char *const reads[] = {
    FIND("{\"b\": {\"z\": 0}}"),
    FIND("{\"b\": {\"z\": {\"y\": 0}}}"),
    FIND("{\"b\": {\"z\": 1}}"),
    FIND("{\"a\": {\"$numberDecimal\": \"0\"}}"),
    FIND("{\"a\": {\"$numberDecimal\": \"1\"}}"),
    FIND("{\"f\": {\"$numberDecimal\": \"0.0\"}}"),
    FIND("{\"a\": 0, \"t\": {\"$elemMatch\": {\"$gt\": 1}}}"),
    FIND("{\"t\": {\"$elemMatch\": {\"$gt\": 1}}}"),
    FIND("{\"t\": {\"$elemMatch\": {\"$gt\": 1}}, \"f\": {\"$slice\": 2}}"),
    FIND("{\"_id\": 1, \"f\": {\"$slice\": -3}}"),
    FIND("{\"_id\": 1, \"t\": {\"$slice\": 1}}"),
    FIND("{\"f\": {\"$slice\": 2}, \"b\": {\"z\": 0}}"),
    FIND("{\"f\": {\"$slice\": 2}, \"b\": {\"z\": 1}}"),
    AGGREGATE("{\"$project\": {\"b\": {\"z\": 0}}}"),
    AGGREGATE("{\"$project\": {\"b\": {\"z\": 1}}}"),
    AGGREGATE("{\"$project\": {\"a\": {\"$numberDecimal\": \"0\"}}}"),
    AGGREGATE("{\"$unset\": \"f\"}, {\"$group\": {\"_id\": null, \"d\": {\"$push\": \"$$ROOT\"}}}"),
    AGGREGATE("{\"$project\": {\"f\": 0}}, {\"$facet\": {\"d\": [{\"$limit\": 9}]}}"),
    AGGREGATE("{\"$unset\": [\"f\", \"a\"]}, {\"$replaceWith\": {\"d\": \"$$ROOT\"}}"),
    AGGREGATE("{\"$unset\": \"f\"}, {\"$project\": {\"d\": {\"$objectToArray\": \"$$ROOT\"}}}"),
    AGGREGATE("{\"$lookup\": {\"from\": \"x\", \"localField\": \"a\", \"foreignField\": \"_id\", "
              "\"as\": \"j\"}}")};

/* Exact if no array has pages. */
static const char *const reads_of_heads[] = {
    "{\"aggregate\": \"@\", \"pipeline\": [{\"$geoNear\": {\"near\": [0, 0], \"distanceField\": "
    "\"d\", \"key\": \"l\"}}], \"cursor\": {}}",
    AGGREGATE("{\"$unwind\": {\"path\": \"$t\", \"includeArrayIndex\": \"_id\"}}"),
    AGGREGATE("{\"$lookup\": {\"from\": \"x\", \"localField\": \"a\", \"foreignField\": \"_id\", "
              "\"as\": \"_id\"}}"),
    AGGREGATE("{\"$project\": {\"f\": 0}}, {\"$set\": {\"d\": \"$$ROOT\"}}"),
    AGGREGATE("{\"$unset\": \"f\"}, {\"$set\": {\"d\": \"$f\"}}"),
    JOIN("{\"$lookup\": {\"from\": \"@\", \"localField\": \"_id\", \"foreignField\": \"a\", "
         "\"as\": \"j\"}}"),
    JOIN("{\"$lookup\": {\"from\": \"@\", \"localField\": \"_id\", \"foreignField\": \"a\", "
         "\"as\": \"j\"}}, {\"$unwind\": \"$j\"}"),
    JOIN("{\"$lookup\": {\"from\": \"@\", \"let\": {\"r\": \"$_id\"}, \"pipeline\": [{\"$match\": "
         "{\"$expr\": {\"$eq\": [\"$_id\", \"$$r\"]}}}], \"as\": \"j\"}}"),
    JOIN("{\"$lookup\": {\"from\": \"x\", \"pipeline\": [{\"$lookup\": {\"from\": \"@\", "
         "\"localField\": \"_id\", \"foreignField\": \"a\", \"as\": \"k\"}}], \"as\": \"j\"}}"),
    JOIN("{\"$graphLookup\": {\"from\": \"@\", \"startWith\": \"$_id\", \"connectFromField\": "
         "\"q\", \"connectToField\": \"_id\", \"as\": \"j\"}}"),
    JOIN("{\"$unionWith\": \"@\"}"),
    JOIN("{\"$unionWith\": {\"coll\": \"@\", \"pipeline\": [{\"$group\": {\"_id\": null, \"d\": "
         "{\"$push\": \"$$ROOT\"}}}]}}"),
    JOIN("{\"$facet\": {\"d\": [{\"$unionWith\": \"@\"}]}}")};

/* The documents of the reply, as text; "": there are none. */
static char *documents_of(const bson_t *reply)
{
    bson_iter_t iter, batch;
    const uint8_t *data;
    uint32_t size;
    bson_t documents;
    if (!bson_iter_init(&iter, reply) ||
        !bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch))
        return bson_strdup("");
    bson_iter_array(&batch, &size, &data);
    assert_true(bson_init_static(&documents, data, size));
    return bson_as_canonical_extended_json(&documents, NULL);
}

static void expect_equal(gateway_fixture_t *fixture, const char *command)
{
    bson_t *served = run_on(fixture, command, "c"), *plain = run_on(fixture, command, "p");
    char *got = documents_of(served), *wanted = documents_of(plain);
    char *all = bson_as_relaxed_extended_json(served, NULL);
    if (strcmp(got, wanted) != 0 || wanted[0] == '\0')
        fail_msg("%s\nreturns %s\nand not %s", command, all, wanted);
    bson_free(all);
    bson_free(got);
    bson_free(wanted);
    bson_destroy(served);
    bson_destroy(plain);
}

static void reads_are_whole_beside_pages(void **state)
{
    gateway_fixture_t *fixture = *state;
    fill(fixture, LONG_LENGTH);
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        expect_equal(fixture, reads[i]);
    for (size_t i = 0; i < sizeof reads_of_heads / sizeof *reads_of_heads; i++) {
        bson_t *reply = run_on(fixture, reads_of_heads[i], "c");
        gateway_expect(reply, "code", "115");
        bson_destroy(reply);
    }
}

static void reads_hide_the_bookkeeping(void **state)
{
    gateway_fixture_t *fixture = *state;
    write_both(fixture, "{\"createIndexes\": \"@\", \"indexes\": [{\"key\": {\"l\": \"2d\"}, "
                        "\"name\": \"l\"}]}");
    fill(fixture, ADOPTED_LENGTH);
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        expect_equal(fixture, reads[i]);
    for (size_t i = 0; i < sizeof reads_of_heads / sizeof *reads_of_heads; i++)
        expect_equal(fixture, reads_of_heads[i]);
    bson_t *reply = run_on(fixture, FIND("{\"d\": \"$$ROOT\"}"), "c");
    gateway_expect(reply, "code", "115");
    bson_destroy(reply);
}

static void written_documents_have_no_bookkeeping(void **state)
{
    static const char *const commands[] = {
        "{\"aggregate\": \"c\", \"pipeline\": [{\"$unset\": \"f\"}, {\"$out\": \"o\"}], "
        "\"cursor\": {}}",
        "{\"aggregate\": \"c\", \"pipeline\": [{\"$project\": {\"f\": 0}}, {\"$merge\": \"o\"}], "
        "\"cursor\": {}}"};
    gateway_fixture_t *fixture = *state;
    fill(fixture, LONG_LENGTH);
    for (size_t i = 0; i < 2; i++) {
        gateway_try(fixture, commands[i], "ok", "1.0");
        gateway_try_direct(fixture, "{\"count\": \"o\", \"query\": {\"_id\": {\"$gt\": 0}}}", "n",
                           "3");
        gateway_try_direct(
            fixture, "{\"count\": \"o\", \"query\": {\"spill\": {\"$exists\": true}}}", "n", "0");
        gateway_try_direct(fixture, "{\"drop\": \"o\"}", "ok", "1.0");
    }
}

/* A name of a served collection means another collection in another database. */
static void other_databases_are_relayed(void **state)
{
    static const char *const commands[] = {
        "{\"aggregate\": \"x\", \"pipeline\": [{\"$out\": \"c\"}], \"cursor\": {}, \"$db\": \"@\"}",
        "{\"aggregate\": \"x\", \"pipeline\": [{\"$merge\": \"c.pages\"}], \"cursor\": {}, "
        "\"$db\": \"@\"}",
        "{\"aggregate\": \"x\", \"pipeline\": [{\"$lookup\": {\"from\": \"c\", \"localField\": "
        "\"a\", \"foreignField\": \"a\", \"as\": \"j\"}}], \"cursor\": {}, \"$db\": \"@\"}",
        "{\"aggregate\": \"x\", \"pipeline\": [{\"$changeStream\": {}}], \"cursor\": {}, \"$db\": "
        "\"@\"}",
        "{\"create\": \"v\", \"viewOn\": \"c\", \"pipeline\": [], \"$db\": \"@\"}",
        "{\"mapReduce\": \"x\", \"out\": \"c\", \"$db\": \"@\"}"};
    gateway_fixture_t *fixture = *state;
    char *other = bson_strdup_printf("%s_other", fixture->client->database);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const char *at = strchr(commands[i], '@');
        char *command =
            bson_strdup_printf("%.*s%s%s", (int)(at - commands[i]), commands[i], other, at + 1);
        bson_destroy(gateway_run_json(fixture->client, command));
        assert_true(fixture->client->relayed);
        bson_free(command);
    }
    char *drop = bson_strdup_printf("{\"dropDatabase\": 1, \"$db\": \"%s\"}", other);
    gateway_try_direct(fixture, drop, "ok", "1.0");
    char *into = bson_strdup_printf("{\"aggregate\": \"x\", \"pipeline\": [{\"$out\": {\"db\": "
                                    "\"%s\", \"coll\": \"c\"}}], \"cursor\": {}, \"$db\": \"%s\"}",
                                    fixture->client->database, other);
    gateway_try(fixture, into, "code", "115");
    gateway_try(fixture,
                "{\"aggregate\": 1, \"pipeline\": [{\"$changeStream\": {}}], \"cursor\": {}}",
                "spillway.operator", "\"$changeStream\"");
    gateway_try(fixture,
                "{\"aggregate\": 1, \"pipeline\": [{\"$changeStream\": {\"allChangesForCluster\": "
                "true}}], \"cursor\": {}, \"$db\": \"admin\"}",
                "spillway.operator", "\"$changeStream\"");
    bson_free(drop);
    bson_free(into);
    bson_free(other);
}

/* ---- statements ------------------------------------------------------------------------------ */

static void expect_array(gateway_fixture_t *fixture, const char *json)
{
    gateway_try(fixture, "{\"find\": \"c\", \"filter\": {\"_id\": 1}}", "cursor.firstBatch.0.f",
                json);
}

/* One command of a session, in which several filters find the same owner. */
static void equal_ids_are_one_owner(void **state)
{
    static const char command[] =
        "{\"update\": \"c\", \"updates\": ["
        "{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": 8}}}, "
        "{\"q\": {\"_id\": 1.0}, \"u\": {\"$push\": {\"f\": 9}}}, "
        "{\"q\": {\"_id\": {\"$numberLong\": \"1\"}}, \"u\": {\"$push\": {\"f\": 10}}}, "
        "{\"q\": {\"_id\": {\"$numberDecimal\": \"1.0\"}}, \"u\": {\"$push\": {\"f\": 11}}}, "
        "{\"q\": {\"k\": 1}, \"u\": {\"$push\": {\"f\": 12}}}]}";
    gateway_fixture_t *fixture = *state;
    gateway_push(fixture, 1, 0, 8);
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$set\": "
                "{\"k\": 1}}}]}",
                "n", "1");
    fixture->client->txn_number = 1;
    for (int i = 0; i < 2; i++) {
        gateway_try(fixture, command, "n", "5");
        expect_array(fixture, "[ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 ]");
    }
    fixture->client->txn_number = 2;
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"k\": 1}, \"u\": {\"$push\": {\"f\": "
                "13}}}, {\"q\": {\"_id\": 1.0}, \"u\": {\"$push\": {\"f\": 14}}}]}",
                "n", "2");
    expect_array(fixture, "[ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 ]");
}

/* Statements on other fields have no number, so they leave no gaps between pushes. */
static void pushes_alternate_with_other_statements(void **state)
{
    gateway_fixture_t *fixture = *state;
    bson_string_t *command = bson_string_new("{\"update\": \"c\", \"updates\": [");
    gateway_push(fixture, 1, 0, 8);
    for (int i = 8; i < 20; i++)
        bson_string_append_printf(command,
                                  "%s{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": %d}}}, "
                                  "{\"q\": {\"_id\": 1}, \"u\": {\"$set\": {\"a\": %d}}}",
                                  i > 8 ? ", " : "", i, i);
    bson_string_append(command, "]}");
    fixture->client->txn_number = 1;
    gateway_try(fixture, command->str, "n", "24");
    expect_array(fixture,
                 "[ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 ]");
    bson_string_free(command, true);
}

/* A retry after the first statement alone was made: that one matches no longer. */
static void a_retry_keeps_the_numbers_of_named_owners(void **state)
{
#define FIRST "{\"q\": {\"k\": 1}, \"u\": {\"$push\": {\"f\": 8}, \"$set\": {\"k\": 2}}}"
    gateway_fixture_t *fixture = *state;
    gateway_push(fixture, 1, 0, 8);
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$set\": "
                "{\"k\": 1}}}]}",
                "n", "1");
    fixture->client->txn_number = 1;
    gateway_try(fixture, "{\"update\": \"c\", \"updates\": [" FIRST "]}", "n", "1");
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [" FIRST
                ", {\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": 9}}}]}",
                "n", "1");
    expect_array(fixture, "[ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 ]");
}

static void a_push_of_nothing_looks_at_the_document(void **state)
{
    gateway_fixture_t *fixture = *state;
    gateway_push(fixture, 1, 0, 8);
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1, \"k\": 9}, \"u\": "
                "{\"$push\": {\"f\": {\"$each\": []}}}}]}",
                "n", "0");
    bson_t *reply = gateway_direct_json(
        fixture->client, "{\"delete\": \"c\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}");
    gateway_expect(reply, "n", "1");
    bson_destroy(reply);
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": "
                "{\"f\": {\"$each\": []}}}, \"upsert\": true}]}",
                "upserted.0._id", "1");
}

/* The condition on F beside the _id makes the server refuse an insert, which nobody asked for. */
static void an_upsert_of_a_long_array_with_a_condition_on_it_is_a_push(void **state)
{
    gateway_fixture_t *fixture = *state;
    gateway_try_direct(fixture,
                       "{\"insert\": \"c\", \"documents\": [{\"_id\": 1, \"f\": [{\"v\": 2}, 1, 2, "
                       "3, 4, 5]}]}",
                       "n", "1");
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1, \"f.v\": 2}, \"u\": "
                "{\"$push\": {\"f\": 9}}, \"upsert\": true}]}",
                "nModified", "1");
    gateway_settle(fixture);
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.f",
                "[ { \"v\" : 2 }, 1, 2, 3, 4, 5, 9 ]");
    gateway_push(fixture, 2, 0, 9);
    gateway_settle(fixture);
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 2, \"f.v\": 2}, \"u\": "
                "{\"$push\": {\"f\": 9}}, \"upsert\": true}]}",
                "writeErrors.0.code", "115");
}

static void flags_have_their_types(void **state)
{
    gateway_fixture_t *fixture = *state;
    for (int owner = 1; owner <= 3; owner++)
        gateway_push(fixture, owner, 0, 8);
    gateway_try(fixture,
                "{\"delete\": \"c\", \"deletes\": [{\"q\": {}, \"limit\": {\"$numberDecimal\": "
                "\"1\"}}]}",
                "n", "1");
    gateway_try(fixture, "{\"delete\": \"c\", \"deletes\": [{\"q\": {}, \"limit\": 2}]}", "code",
                "9");
    gateway_try(fixture, "{\"delete\": \"c\", \"deletes\": [{\"q\": {}}]}", "code", "9");
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {}, \"u\": {\"$push\": {\"f\": 1}}, "
                "\"multi\": 1}]}",
                "code", "14");
    gateway_try(
        fixture,
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 9}, \"u\": {\"$push\": {\"f\": "
        "1}}, \"upsert\": 1}]}",
        "code", "14");
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {}, \"u\": {\"$push\": {\"f\": 1}}, "
                "\"sort\": {\"a\": 1}}]}",
                "writeErrors.0.code", "115");
    gateway_try(fixture, "{\"count\": \"c\", \"query\": {\"_id\": {\"$gt\": 0}}}", "n", "2");
}

static void a_set_of_the_same_id_changes_nothing(void **state)
{
    gateway_fixture_t *fixture = *state;
    gateway_push(fixture, 1, 0, 8);
    gateway_try(
        fixture,
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": "
        "8}, \"$set\": {\"_id\": 1, \"a\": 5}}}]}",
        "nModified", "1");
    gateway_try(
        fixture,
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": "
        "9}, \"$set\": {\"_id\": 2}}}]}",
        "writeErrors.0.index", "0");
    gateway_try(fixture, "{\"count\": \"c\", \"query\": {\"a\": 5}}", "n", "1");
    expect_array(fixture, "[ 0, 1, 2, 3, 4, 5, 6, 7, 8 ]");
}

/* Pages cannot have such an _id. */
static void a_long_id_stays_unmanaged(void **state)
{
    enum { ID_BYTES = 3000, PUSHES = 12 };
    gateway_fixture_t *fixture = *state;
    char id[ID_BYTES + 1];
    memset(id, 'x', ID_BYTES);
    id[ID_BYTES] = '\0';
    char *command = bson_strdup_printf("{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": "
                                       "\"%s\"}, \"u\": {\"$push\": {\"f\": 1}}, \"upsert\": "
                                       "true}]}",
                                       id);
    for (int i = 0; i < PUSHES; i++)
        gateway_try(fixture, command, "n", "1");
    gateway_try_direct(fixture, "{\"count\": \"c\", \"query\": {\"f\": {\"$size\": 12}}}", "n",
                       "1");
    bson_free(command);
}

/* Another client replaces the document between the push and the read of the new document. */
static bool replace_before_third_find(gateway_client_t *client, const bson_t *body)
{
    int *finds = client->context;
    if (!bson_has_field(body, "find") || ++*finds < 3)
        return true;
    client->before_call = NULL;
    bson_destroy(gateway_direct_json(
        client, "{\"delete\": \"c\", \"deletes\": [{\"q\": {\"_id\": 1}, \"limit\": 1}]}"));
    bson_destroy(gateway_direct_json(
        client, "{\"insert\": \"c\", \"documents\": [{\"_id\": 1, \"f\": [7]}]}"));
    return true;
}

static void a_replaced_document_is_not_returned(void **state)
{
    static const char *const fields[] = {"", ", \"fields\": {\"a\": 1}",
                                         ", \"fields\": {\"f\": 0}"};
    gateway_fixture_t *fixture = *state;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        int finds = 0;
        bson_destroy(gateway_direct_json(
            fixture->client, "{\"delete\": \"c\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}"));
        gateway_push(fixture, 1, 0, 5);
        fixture->client->context = &finds;
        fixture->client->before_call = replace_before_third_find;
        char *command = bson_strdup_printf("{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, "
                                           "\"update\": {\"$push\": {\"f\": 5}}, \"new\": true%s}",
                                           fields[i]);
        gateway_try(fixture, command, "code", "217");
        bson_free(command);
    }
}

/* ... or between the reads of its head and of its pages. */
static bool replace_before_pages(gateway_client_t *client, const bson_t *body)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, body, "find") ||
        strcmp(bson_iter_utf8(&iter, NULL), "c.pages") != 0)
        return true;
    client->before_call = NULL;
    *(bool *)client->context = true;
    bson_destroy(gateway_direct_json(
        client, "{\"delete\": \"c\", \"deletes\": [{\"q\": {\"_id\": 1}, \"limit\": 1}]}"));
    bson_destroy(gateway_direct_json(
        client, "{\"insert\": \"c\", \"documents\": [{\"_id\": 1, \"f\": [7]}]}"));
    return true;
}

static void a_replaced_document_is_read_again(void **state)
{
    gateway_fixture_t *fixture = *state;
    bool replaced = false;
    gateway_push(fixture, 1, 0, LONG_LENGTH);
    fixture->client->context = &replaced;
    fixture->client->before_call = replace_before_pages;
    gateway_try(fixture,
                "{\"find\": \"c\", \"filter\": {\"_id\": 1}, \"projection\": {\"f\": "
                "{\"$slice\": -10}}}",
                "cursor.firstBatch.0.f", "[ 7 ]");
    assert_true(replaced);
}

/* ---- upserts beside another client ----------------------------------------------------------- */

static const char push_nine[] = "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": "
                                "{\"$push\": {\"f\": 9}}, \"upsert\": true%s}]}";

typedef struct other_client {
    int finds, updates;
    bool later;   /* it deletes the document after the look, not before */
    bool inserts; /* it inserts the document that was there */
    bson_t document;
} other_client_t;

static void delete_all(gateway_client_t *client)
{
    bson_destroy(gateway_direct_json(
        client, "{\"delete\": \"c\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}"));
}

/* The insert meets a document, which is gone afterwards. */
static bool delete_beside(gateway_client_t *client, const bson_t *body)
{
    other_client_t *other = client->context;
    if (bson_has_field(body, "find") && ++other->finds == 1 && other->later)
        bson_destroy(gateway_direct_json(
            client, "{\"update\": \"c\", \"updates\": [{\"q\": {}, \"u\": {\"f\": [7]}}]}"));
    else if (bson_has_field(body, "find") && other->finds == 1)
        delete_all(client);
    if (bson_has_field(body, "update") && ++other->updates == 2 && other->later)
        delete_all(client);
    return true;
}

static void an_upsert_beside_a_delete_inserts(void **state)
{
    gateway_fixture_t *fixture = *state;
    char *command = bson_strdup_printf(push_nine, "");
    for (int later = 0; later < 2; later++) {
        other_client_t other = {.later = later == 1};
        gateway_push(fixture, 1, 0, 6);
        gateway_settle(fixture);
        fixture->client->context = &other;
        fixture->client->before_call = delete_beside;
        gateway_try(fixture, command, "upserted.0._id", "1");
        fixture->client->before_call = NULL;
        gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.f", "[ 9 ]");
        delete_all(fixture->client);
    }
    bson_free(command);
}

/* The document is not there when the gateway looks for it, and is when it inserts. */
static bool insert_beside(gateway_client_t *client, const bson_t *body)
{
    other_client_t *other = client->context;
    if (bson_has_field(body, "update") && ++other->updates == 1) {
        bson_t *insert =
            BCON_NEW("insert", "c", "documents", "[", BCON_DOCUMENT(&other->document), "]");
        bson_destroy(gateway_direct(client, insert));
        bson_destroy(insert);
    }
    return true;
}

static void an_upsert_of_many_beside_an_insert_pushes(void **state)
{
    gateway_fixture_t *fixture = *state;
    other_client_t other = {0};
    bson_iter_t iter, found;
    bson_t document;
    uint32_t size;
    const uint8_t *data;
    gateway_push(fixture, 1, 0, 4);
    gateway_settle(fixture);
    bson_t *reply = gateway_direct_json(fixture->client, "{\"find\": \"c\"}");
    assert_true(bson_iter_init(&iter, reply));
    assert_true(bson_iter_find_descendant(&iter, "cursor.firstBatch.0", &found));
    bson_iter_document(&found, &size, &data);
    assert_true(bson_init_static(&document, data, size));
    bson_copy_to(&document, &other.document);
    bson_destroy(reply);
    delete_all(fixture->client);
    fixture->client->context = &other;
    fixture->client->before_call = insert_beside;
    char *command = bson_strdup_printf(push_nine, ", \"multi\": true");
    gateway_try(fixture, command, "nModified", "1");
    fixture->client->before_call = NULL;
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.f", "[ 0, 1, 2, 3, 9 ]");
    bson_destroy(&other.document);
    bson_free(command);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, gateway_setup, gateway_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(reads_are_whole_beside_pages),
        TEST(reads_hide_the_bookkeeping),
        TEST(written_documents_have_no_bookkeeping),
        TEST(other_databases_are_relayed),
        TEST(equal_ids_are_one_owner),
        TEST(pushes_alternate_with_other_statements),
        TEST(a_retry_keeps_the_numbers_of_named_owners),
        TEST(a_push_of_nothing_looks_at_the_document),
        TEST(an_upsert_of_a_long_array_with_a_condition_on_it_is_a_push),
        TEST(flags_have_their_types),
        TEST(a_set_of_the_same_id_changes_nothing),
        TEST(a_long_id_stays_unmanaged),
        TEST(an_upsert_beside_a_delete_inserts),
        TEST(an_upsert_of_many_beside_an_insert_pushes),
        TEST(a_replaced_document_is_not_returned),
        TEST(a_replaced_document_is_read_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
