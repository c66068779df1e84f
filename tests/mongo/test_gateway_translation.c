/* The translation of commands on served collections: what clients see, and what it costs. */
#include "mongo/gateway_client.h"

#include "store/store.h"
#include "support/document.h"
#include "support/server.h"

#include <mongoc/mongoc.h>
#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static gateway_fixture_t *open_small(void)
{
    spill_definition_t definition = gateway_small_definition();
    return gateway_fixture_new(&definition);
}

/* ---- the wall -------------------------------------------------------------------------------- */

static void a_short_array_is_stored_as_the_client_sends_it(void **state)
{
    (void)state;
    gateway_fixture_t *fixture = open_small();
    gateway_push(fixture, 1, 0, 1);
    int64_t calls = fixture->client->calls;
    gateway_push(fixture, 1, 1, 3);
    assert_int_equal(fixture->client->calls - calls, 2); /* one trip each */
    gateway_try_direct(fixture, "{\"find\": \"c\"}", "cursor.firstBatch",
                       "[ { \"_id\" : 1, \"f\" : [ 0, 1, 2 ] } ]");
    gateway_fixture_free(fixture);
}

static void a_long_array_gets_pages_that_no_client_sees(void **state)
{
    (void)state;
    gateway_fixture_t *fixture = open_small();
    gateway_push(fixture, 1, 0, 9);
    gateway_settle(fixture);
    gateway_try_direct(
        fixture, "{\"count\": \"c.pages\", \"query\": {\"spill.epoch\": {\"$gt\": 0}}}", "n", "3");
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch",
                "[ { \"_id\" : 1, \"f\" : [ 0, 1, 2, 3, 4, 5, 6, 7, 8 ] } ]");
    gateway_try(fixture, "{\"listCollections\": 1, \"nameOnly\": true}", "cursor.firstBatch",
                "[ { \"name\" : \"c\", \"type\" : \"collection\" } ]");
    gateway_fixture_free(fixture);
}

static void a_front_array_has_the_newest_element_first(void **state)
{
    (void)state;
    spill_definition_t definition = gateway_small_definition();
    definition.order = SPILL_ARRAY_NEWEST_FIRST;
    gateway_fixture_t *fixture = gateway_fixture_new(&definition);
    for (int i = 0; i < 4; i++)
        gateway_try(
            fixture,
            "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": "
            "{\"$each\": [1, 2], \"$position\": 0}}}, \"upsert\": true}]}",
            "n", "1");
    gateway_try_direct(fixture, "{\"count\": \"c.pages\", \"query\": {\"owner\": 1}}", "n", "2");
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.f",
                "[ 1, 2, 1, 2, 1, 2, 1, 2 ]");
    gateway_try(fixture, "{\"find\": \"c\", \"projection\": {\"f\": {\"$slice\": -3}}}",
                "cursor.firstBatch.0.f", "[ 2, 1, 2 ]");
    gateway_try(
        fixture,
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": "
        "9}}}]}",
        "writeErrors.0.code", "115");
    gateway_fixture_free(fixture);
}

/* Preset feed-recent counts elements in the head. */
static void count_fields_are_set_when_an_array_is_adopted(void **state)
{
    (void)state;
    spill_definition_t definition = gateway_small_definition();
    strcpy(definition.count_field, "count");
    gateway_fixture_t *fixture = gateway_fixture_new(&definition);
    gateway_push(fixture, 1, 0, 3);
    gateway_try_direct(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.count", "null");
    gateway_push(fixture, 1, 3, 6);
    gateway_try_direct(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.count", "6");
    gateway_try(
        fixture,
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$set\": {\"count\": "
        "0}}}]}",
        "writeErrors.0.spillway.field", "\"count\"");
    gateway_fixture_free(fixture);
}

/* The gateway sets it again. So the document has not changed, and is not counted as modified. */
static void a_count_field_that_a_pipeline_removes_stays(void **state)
{
    (void)state;
    spill_definition_t definition = gateway_small_definition();
    strcpy(definition.count_field, "count");
    gateway_fixture_t *fixture = gateway_fixture_new(&definition);
    gateway_push(fixture, 1, 0, 3);
    gateway_push(fixture, 1, 3, 4);
    gateway_try_direct(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.count", "4");
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": [{\"$project\": "
                "{\"f\": 1}}]}]}",
                "nModified", "0");
    gateway_try_direct(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.count", "4");
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": [{\"$project\": "
                "{\"f\": 1}}, {\"$set\": {\"a\": 1}}]}]}",
                "nModified", "1");
    gateway_fixture_free(fixture);
}

/* ---- reads ----------------------------------------------------------------------------------- */

static int64_t read_id(const bson_t *reply)
{
    bson_iter_t iter, id;
    assert_true(bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, "cursor.id", &id));
    return bson_iter_as_int64(&id);
}

static void a_cursor_completes_each_batch(void **state)
{
    (void)state;
    gateway_fixture_t *fixture = open_small();
    for (int owner = 0; owner < 4; owner++)
        gateway_push(fixture, owner, 0, 5);
    bson_t *reply = gateway_run_json(fixture->client,
                                     "{\"find\": \"c\", \"sort\": {\"_id\": 1}, \"batchSize\": 2, "
                                     "\"projection\": {\"f\": {\"$slice\": 4}}}");
    gateway_expect(reply, "cursor.firstBatch.1", "{ \"_id\" : 1, \"f\" : [ 0, 1, 2, 3 ] }");
    int64_t id = read_id(reply);
    bson_destroy(reply);
    assert_int_not_equal(id, 0);
    char *more = bson_strdup_printf("{\"getMore\": {\"$numberLong\": \"%lld\"}, \"collection\": "
                                    "\"c\", \"batchSize\": 10}",
                                    (long long)id);
    reply = gateway_run_json(fixture->client, more);
    gateway_expect(reply, "cursor.nextBatch.1", "{ \"_id\" : 3, \"f\" : [ 0, 1, 2, 3 ] }");
    gateway_expect(reply, "cursor.id", "0");
    bson_destroy(reply);
    gateway_try(fixture, more, "code", "43"); /* it has ended */
    bson_free(more);
    gateway_fixture_free(fixture);
}

static void a_killed_cursor_is_gone(void **state)
{
    (void)state;
    gateway_fixture_t *fixture = open_small();
    for (int owner = 0; owner < 3; owner++)
        gateway_push(fixture, owner, 0, 1);
    bson_t *reply = gateway_run_json(fixture->client, "{\"find\": \"c\", \"batchSize\": 1}");
    int64_t id = read_id(reply);
    bson_destroy(reply);
    char *kill = bson_strdup_printf(
        "{\"killCursors\": \"c\", \"cursors\": [{\"$numberLong\": \"%lld\"}]}", (long long)id);
    char *killed = bson_strdup_printf("[ %lld ]", (long long)id);
    gateway_try(fixture, kill, "cursorsKilled", killed);
    gateway_try(fixture, kill, "cursorsNotFound", killed);
    bson_free(kill);
    bson_free(killed);
    gateway_fixture_free(fixture);
}

static void push_large(gateway_fixture_t *fixture, int owner, int elements, int bytes)
{
    char *text = bson_malloc0((size_t)bytes + 1);
    memset(text, 'x', (size_t)bytes);
    for (int i = 0; i < elements; i++) {
        bson_t *command = BCON_NEW("update", "c", "updates", "[", "{", "q", "{", "_id",
                                   BCON_INT32(owner), "}", "u", "{", "$push", "{", "f",
                                   BCON_UTF8(text), "}", "}", "upsert", BCON_BOOL(true), "}", "]");
        bson_t *reply = gateway_run(fixture->client, command);
        gateway_expect(reply, "n", "1");
        bson_destroy(reply);
        bson_destroy(command);
    }
    bson_free(text);
}

static size_t batch_of(const bson_t *reply, const char *path, size_t *elements)
{
    bson_iter_t iter, batch, each;
    bson_t array;
    const uint8_t *data;
    uint32_t size;
    size_t documents = 0;
    *elements = 0;
    assert_true(bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, path, &batch));
    assert_true(bson_iter_recurse(&batch, &each));
    for (; bson_iter_next(&each); documents++) {
        bson_iter_t field;
        assert_true(bson_iter_recurse(&each, &field) && bson_iter_find(&field, "f"));
        bson_iter_array(&field, &size, &data);
        bson_init_static(&array, data, size);
        *elements += bson_count_keys(&array);
    }
    return documents;
}

/* Elements of 1 MB: a document of 18 MB, and one of 3 MB, which do not share a batch. */
static void a_document_past_16_mb_is_read_whole(void **state)
{
    (void)state;
    gateway_fixture_t *fixture = open_small();
    size_t elements;
    push_large(fixture, 1, 18, 1000000);
    push_large(fixture, 2, 3, 1000000);
    bson_t *reply = gateway_run_json(fixture->client, "{\"find\": \"c\", \"sort\": {\"_id\": 1}}");
    assert_int_equal(batch_of(reply, "cursor.firstBatch", &elements), 1);
    assert_int_equal(elements, 18);
    assert_true(reply->len > 18000000);
    assert_true(fixture->client->reserved > 18000000);
    char *more =
        bson_strdup_printf("{\"getMore\": {\"$numberLong\": \"%lld\"}, \"collection\": \"c\"}",
                           (long long)read_id(reply));
    bson_destroy(reply);
    reply = gateway_run_json(fixture->client, more);
    assert_int_equal(batch_of(reply, "cursor.nextBatch", &elements), 1);
    assert_int_equal(elements, 3);
    gateway_expect(reply, "cursor.id", "0");
    bson_destroy(reply);
    bson_free(more);
    fixture->client->connection.reply_bytes_max = 17000000;
    reply = gateway_run_json(fixture->client, "{\"find\": \"c\", \"filter\": {\"_id\": 1}}");
    gateway_expect(reply, "code", "10334");
    bson_iter_t message;
    assert_true(bson_iter_init_find(&message, reply, "errmsg"));
    assert_non_null(strstr(bson_iter_utf8(&message, NULL), "$slice"));
    if (strstr(bson_iter_utf8(&message, NULL), "the document of _id 1 with") == NULL)
        fail_msg("the message does not name the document: %s", bson_iter_utf8(&message, NULL));
    bson_destroy(reply);
    gateway_fixture_free(fixture);
}

/* ---- retries --------------------------------------------------------------------------------- */

static void repeat(gateway_fixture_t *fixture, const char *command, const char *path,
                   const char *json)
{
    gateway_client_t *other = gateway_client_new(fixture->uri); /* another gateway */
    other->txn_number = ++fixture->client->txn_number;
    for (int i = 0; i < 3; i++) {
        bson_t *reply = gateway_run_json(i < 2 ? fixture->client : other, command);
        gateway_expect(reply, path, json);
        bson_destroy(reply);
    }
    gateway_client_free(other);
}

static void a_repeated_push_is_made_once(void **state)
{
    (void)state;
    gateway_fixture_t *fixture = open_small();
    gateway_try(fixture,
                "{\"insert\": \"c\", \"documents\": [{\"_id\": 1, \"v\": 0, \"f\": [0, 1, 2]}]}",
                "n", "1");
    fixture->client->txn_number = 0;
    /* It adopts the array. */
    repeat(fixture,
           "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": "
           "3}}}]}",
           "n", "1");
    /* The filter no longer matches after the first time. */
    repeat(fixture,
           "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1, \"v\": 0}, \"u\": {\"$push\": "
           "{\"f\": 4}, \"$inc\": {\"v\": 1}}}]}",
           "n", "1");
    repeat(fixture,
           "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": "
           "{\"$each\": [5, 6]}}}}, {\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": 7}}}, {\"q\": "
           "{\"_id\": 1}, \"u\": {\"$push\": {\"f\": {\"$each\": []}}, \"$inc\": {\"v\": 1}}}]}",
           "n", "3");
    repeat(fixture,
           "{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, \"update\": {\"$push\": {\"f\": "
           "8}}, \"new\": true}",
           "value.f", "[ 0, 1, 2, 3, 4, 5, 6, 7, 8 ]");
    fixture->client->txn_number = -1;
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch",
                "[ { \"_id\" : 1, \"v\" : 2, \"f\" : [ 0, 1, 2, 3, 4, 5, 6, 7, 8 ] } ]");
    gateway_fixture_free(fixture);
}

/* An adopted array without pages; then pages come, and the retry still finds the statement. */
static void a_repeated_rewrite_is_made_once(void **state)
{
    static const char pop[] = "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": "
                              "{\"$pop\": {\"f\": 1}, \"$inc\": {\"n\": 1}}}]}";
    (void)state;
    gateway_fixture_t *fixture = open_small();
    gateway_push(fixture, 1, 0, 4);
    fixture->client->txn_number = 5;
    gateway_try(fixture, pop, "nModified", "1");
    gateway_try(fixture, pop, "nModified", "1");
    fixture->client->txn_number = -1;
    gateway_push(fixture, 1, 4, 9);
    gateway_settle(fixture);
    fixture->client->txn_number = 5;
    gateway_try(fixture, pop, "n", "1");
    fixture->client->txn_number = 4;
    gateway_try(fixture, pop, "writeErrors.0.code", "225");
    fixture->client->txn_number = 6;
    gateway_try(fixture, pop, "writeErrors.0.code", "115");
    fixture->client->txn_number = -1;
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.f",
                "[ 0, 1, 2, 4, 5, 6, 7, 8 ]");
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.n", "1");
    gateway_fixture_free(fixture);
}

/* Preset feed-recent counts elements in the head. A replacement without F leaves the array empty.
 */
static void a_rewrite_keeps_count_and_bookkeeping(void **state)
{
    (void)state;
    spill_definition_t definition = gateway_small_definition();
    strcpy(definition.count_field, "count");
    gateway_fixture_t *fixture = gateway_fixture_new(&definition);
    gateway_push(fixture, 1, 0, 4);
    gateway_try(
        fixture,
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$pull\": {\"f\": "
        "{\"$lt\": 2}}}}]}",
        "nModified", "1");
    gateway_try_direct(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.count", "2");
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"a\": 1}}]}",
                "nModified", "1");
    gateway_try(fixture, "{\"find\": \"c\", \"projection\": {\"count\": 0}}", "cursor.firstBatch",
                "[ { \"_id\" : 1, \"a\" : 1 } ]");
    gateway_try(
        fixture,
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"_id\": 1, \"b\": 2, "
        "\"f\": [5]}}]}",
        "nModified", "1");
    gateway_try(fixture, "{\"find\": \"c\", \"projection\": {\"count\": 0}}", "cursor.firstBatch",
                "[ { \"_id\" : 1, \"b\" : 2, \"f\" : [ 5 ] } ]");
    gateway_push(fixture, 1, 7, 9);
    gateway_try_direct(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.count", "3");
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.f", "[ 5, 7, 8 ]");
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$set\": {\"f\": "
                "\"text\"}}}]}",
                "nModified", "1");
    gateway_try_direct(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.spill", "null");
    gateway_fixture_free(fixture);
}

static void a_command_of_an_older_transaction_is_refused(void **state)
{
    (void)state;
    gateway_fixture_t *fixture = open_small();
    gateway_push(fixture, 1, 0, 4);
    fixture->client->txn_number = 7;
    gateway_push(fixture, 1, 4, 5);
    fixture->client->txn_number = 6;
    gateway_try(
        fixture,
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": "
        "9}}}]}",
        "writeErrors.0.code", "225");
    gateway_fixture_free(fixture);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void pages_and_bookkeeping_belong_to_spillway(void **state)
{
    static const char *const commands[] = {
        "{\"insert\": \"c.pages\", \"documents\": [{}]}",
        "{\"update\": \"spillway.definitions\", \"updates\": []}",
        "{\"delete\": \"c.pages\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}",
        "{\"drop\": \"c.pages\"}",
        "{\"findAndModify\": \"c.pages\", \"remove\": true}",
        "{\"createIndexes\": \"c.pages\", \"indexes\": []}",
        "{\"create\": \"spillway.marks\"}",
        "{\"collMod\": \"c.pages\"}",
        "{\"aggregate\": \"other\", \"pipeline\": [{\"$out\": \"c.pages\"}], \"cursor\": {}}",
        "{\"aggregate\": \"o\", \"pipeline\": [{\"$merge\": {\"into\": \"c.pages\"}}]}"};
    (void)state;
    gateway_fixture_t *fixture = open_small();
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        gateway_try(fixture, commands[i], "code", "13");
    gateway_fixture_free(fixture);
}

static void what_could_be_wrong_is_refused_with_a_reason(void **state)
{
    static const char *const commands[] = {
        "{\"find\": \"c\", \"filter\": {\"f\": 1}}",
        "{\"find\": \"c\", \"filter\": {\"$or\": [{\"a\": 1}, {\"f.x\": 1}]}}",
        "{\"find\": \"c\", \"filter\": {\"$expr\": {\"$gt\": [{\"$size\": \"$f\"}, 2]}}}",
        "{\"find\": \"c\", \"filter\": {\"spill.f.pages\": 1}}",
        "{\"find\": \"c\", \"sort\": {\"f\": 1}}",
        "{\"find\": \"c\", \"projection\": {\"spill\": 1}}",
        "{\"find\": \"c\", \"projection\": {\"x\": {\"$size\": \"$f\"}}}",
        "{\"find\": \"c\", \"readConcern\": {\"level\": \"linearizable\"}}",
        "{\"count\": \"c\", \"query\": {\"f\": 1}}",
        "{\"distinct\": \"c\", \"key\": \"f\"}",
        "{\"aggregate\": \"c\", \"pipeline\": [{\"$unwind\": \"$f\"}], \"cursor\": {}}",
        "{\"aggregate\": \"c\", \"pipeline\": [{\"$facet\": {\"a\": []}}], \"cursor\": {}}",
        "{\"aggregate\": \"c\", \"pipeline\": [{\"$out\": \"copy\"}], \"cursor\": {}}",
        "{\"aggregate\": \"c\", \"pipeline\": [{\"$changeStream\": {}}], \"cursor\": {}}",
        "{\"aggregate\": \"o\", \"pipeline\": [{\"$lookup\": {\"from\": \"c\"}}]}",
        "{\"aggregate\": \"o\", \"pipeline\": [{\"$unionWith\": \"c\"}]}",
        "{\"aggregate\": \"other\", \"pipeline\": [{\"$merge\": \"c\"}], \"cursor\": {}}",
        "{\"create\": \"view\", \"viewOn\": \"c\", \"pipeline\": []}",
        "{\"mapReduce\": \"c\"}",
        "{\"convertToCapped\": \"c\", \"size\": 1}",
        "{\"insert\": \"c\", \"documents\": [{\"spill\": 1}]}"};
    (void)state;
    gateway_fixture_t *fixture = open_small();
    gateway_push(fixture, 1, 0, 6);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        bson_iter_t iter, reason;
        bson_t *reply = gateway_run_json(fixture->client, commands[i]);
        gateway_expect(reply, "code", "115");
        assert_true(bson_iter_init(&iter, reply) &&
                    bson_iter_find_descendant(&iter, "spillway.reason", &reason));
        bson_destroy(reply);
    }
    char *rename = bson_strdup_printf("{\"renameCollection\": \"%s.c\", \"to\": \"%s.d\", \"$db\": "
                                      "\"admin\"}",
                                      fixture->client->database, fixture->client->database);
    gateway_try(fixture, rename, "code", "115");
    bson_free(rename);
    gateway_fixture_free(fixture);
}

/* The same questions are answered while no array has pages. */
static void without_pages_all_is_answered(void **state)
{
    static const char *const commands[] = {
        "{\"find\": \"c\", \"filter\": {\"f\": 1}}",
        "{\"find\": \"c\", \"sort\": {\"f\": 1}}",
        "{\"count\": \"c\", \"query\": {\"f\": 1}}",
        "{\"distinct\": \"c\", \"key\": \"f\"}",
        "{\"aggregate\": \"c\", \"pipeline\": [{\"$unwind\": \"$f\"}], \"cursor\": {}}",
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"f\": 1}, \"u\": {\"$pull\": {\"f\": 1}}}]}"};
    (void)state;
    gateway_fixture_t *fixture = open_small();
    gateway_push(fixture, 1, 0, 3);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        gateway_try(fixture, commands[i], "ok", "1.0");
        gateway_try(fixture, commands[i], "writeErrors", "null");
    }
    gateway_fixture_free(fixture);
}

static void other_collections_are_relayed(void **state)
{
    static const char *const commands[] = {
        "{\"find\": \"other\", \"filter\": {\"f\": 1}}",
        "{\"insert\": \"other\", \"documents\": [{\"spill\": 1}]}",
        "{\"insert\": \"c\", \"documents\": [{\"f\": [1, 2, 3, 4, 5]}]}",
        "{\"aggregate\": \"other\", \"pipeline\": [{\"$match\": {\"a\": 1}}], \"cursor\": {}}",
        "{\"find\": \"c.pages\"}",
        "{\"listIndexes\": \"c\"}",
        "{\"ping\": 1}",
        "{\"find\": \"c\", \"$db\": \"elsewhere\"}",
        "{\"listCollections\": 1, \"$db\": \"elsewhere\"}"};
    (void)state;
    gateway_fixture_t *fixture = open_small();
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        bson_destroy(gateway_run_json(fixture->client, commands[i]));
        assert_true(fixture->client->relayed);
    }
    gateway_fixture_free(fixture);
}

static void transactions_and_other_write_concerns_are_refused(void **state)
{
    (void)state;
    gateway_fixture_t *fixture = open_small();
    gateway_push(fixture, 1, 0, 6);
    gateway_try(fixture, "{\"find\": \"c\", \"autocommit\": false}", "code", "263");
    gateway_try(
        fixture,
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": "
        "1}}}], \"writeConcern\": {\"w\": 3}}",
        "writeErrors.0.code", "100");
    gateway_try(
        fixture,
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": "
        "1}}}], \"writeConcern\": {\"w\": 0}}",
        "n", "1");
    gateway_fixture_free(fixture);
}

/* ---- the catalogue --------------------------------------------------------------------------- */

static void a_drop_leaves_the_definition(void **state)
{
    (void)state;
    gateway_fixture_t *fixture = open_small();
    gateway_push(fixture, 1, 0, 6);
    gateway_settle(fixture);
    gateway_try(fixture, "{\"drop\": \"c\"}", "ok", "1.0");
    gateway_try_direct(
        fixture, "{\"count\": \"c.pages\", \"query\": {\"spill.epoch\": {\"$gt\": 0}}}", "n", "0");
    gateway_push(fixture, 1, 0, 6);
    gateway_settle(fixture);
    gateway_try(fixture, "{\"dropDatabase\": 1}", "ok", "1.0");
    gateway_try_direct(
        fixture, "{\"count\": \"c.pages\", \"query\": {\"spill.epoch\": {\"$gt\": 0}}}", "n", "0");
    gateway_try_direct(fixture, "{\"count\": \"c\", \"query\": {\"_id\": {\"$exists\": true}}}",
                       "n", "0");
    gateway_push(fixture, 1, 0, 6);
    gateway_settle(fixture);
    gateway_try_direct(
        fixture, "{\"count\": \"c.pages\", \"query\": {\"spill.epoch\": {\"$gt\": 0}}}", "n", "1");
    gateway_fixture_free(fixture);
}

/* The array that follows a deleted one has a later incarnation, whatever the clocks of gateways
 * say.
 */
/* Before the pages are deleted, another gateway's client makes an array with pages. */
static bool push_meanwhile(gateway_client_t *client, const bson_t *body)
{
    bson_iter_t iter;
    gateway_fixture_t *other = client->context;
    bool pages = bson_iter_init(&iter, body) && bson_iter_next(&iter) &&
                 BSON_ITER_HOLDS_UTF8(&iter) && strcmp(bson_iter_utf8(&iter, NULL), "c.pages") == 0;
    bool drops = pages && (strcmp(bson_iter_key(&iter), "drop") == 0 ||
                           (strcmp(bson_iter_key(&iter), "delete") == 0 &&
                            bson_has_field(body, "writeConcern"))); /* not a probe of the rights */
    if (drops) {
        gateway_push(other, 2, 0, 9);
        gateway_settle(other);
    }
    return true;
}

static void a_drop_spares_arrays_that_are_adopted_meanwhile(void **state)
{
    (void)state;
    gateway_fixture_t *fixture = open_small();
    gateway_fixture_t other = {.uri = fixture->uri, .client = gateway_client_new(fixture->uri)};
    gateway_push(fixture, 1, 100, 109);
    gateway_settle(fixture);
    fixture->client->before_call = push_meanwhile;
    fixture->client->context = &other;
    gateway_try(fixture, "{\"drop\": \"c\"}", "ok", "1.0");
    fixture->client->before_call = NULL;
    gateway_try(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0.f",
                "[ 0, 1, 2, 3, 4, 5, 6, 7, 8 ]");
    gateway_try_direct(
        fixture, "{\"count\": \"c.pages\", \"query\": {\"spill.epoch\": {\"$gt\": 0}}}", "n", "3");
    gateway_client_free(other.client);
    gateway_fixture_free(fixture);
}

/* The array at a path: whole, as a part, as a part of the document around it, and hidden. */
static void an_array_at_a_path_is_served(void **state)
{
    (void)state;
    static const char set_around[] =
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": "
        "{\"$set\": {\"s\": {\"z\": 2}}}}]}";
    spill_definition_t definition = gateway_small_definition();
    strcpy(definition.array, "s.e");
    gateway_fixture_t *fixture = gateway_fixture_new(&definition);
    gateway_try(
        fixture,
        "{\"insert\": \"c\", \"documents\": [{\"_id\": 1, \"s\": {\"a\": 0, \"e\": [0, 1, 2], "
        "\"z\": 1}}]}",
        "n", "1");
    for (int i = 3; i < 9; i++) {
        char *push =
            bson_strdup_printf("{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": "
                               "{\"$push\": {\"s.e\": %d}, \"$inc\": {\"s.z\": 1}}}]}",
                               i);
        gateway_try(fixture, push, "nModified", "1");
        bson_free(push);
    }
    gateway_settle(fixture);
    gateway_try_direct(
        fixture, "{\"count\": \"c.pages\", \"query\": {\"spill.epoch\": {\"$gt\": 0}}}", "n", "3");
    gateway_try(
        fixture, "{\"find\": \"c\"}", "cursor.firstBatch",
        "[ { \"_id\" : 1, \"s\" : { \"a\" : 0, \"e\" : [ 0, 1, 2, 3, 4, 5, 6, 7, 8 ], \"z\" : 7 } "
        "} ]");
    gateway_try(fixture, "{\"find\": \"c\", \"projection\": {\"s\": 1, \"_id\": 0}}",
                "cursor.firstBatch.0.s.e", "[ 0, 1, 2, 3, 4, 5, 6, 7, 8 ]");
    gateway_try(fixture, "{\"find\": \"c\", \"projection\": {\"s.e\": {\"$slice\": -3}}}",
                "cursor.firstBatch.0.s", "{ \"a\" : 0, \"e\" : [ 6, 7, 8 ], \"z\" : 7 }");
    gateway_try(fixture, "{\"find\": \"c\", \"projection\": {\"s.e\": 0}}", "cursor.firstBatch.0",
                "{ \"_id\" : 1, \"s\" : { \"a\" : 0, \"z\" : 7 } }");
    gateway_try(fixture, "{\"find\": \"c\", \"projection\": {\"s\": 0}}", "cursor.firstBatch.0",
                "{ \"_id\" : 1 }");
    gateway_try(fixture, "{\"find\": \"c\", \"filter\": {\"s\": {\"a\": 0}}}", "code", "115");
    gateway_try(fixture, set_around, "writeErrors.0.spillway.field", "\"s\"");
    gateway_try(fixture, "{\"delete\": \"c\", \"deletes\": [{\"q\": {\"_id\": 1}, \"limit\": 1}]}",
                "n", "1");
    gateway_try_direct(
        fixture, "{\"count\": \"c.pages\", \"query\": {\"spill.epoch\": {\"$gt\": 0}}}", "n", "0");
    gateway_fixture_free(fixture);
}

/* Without pages, a change of the document around it makes the array plain. */
static void a_change_around_an_adopted_array_makes_it_plain(void **state)
{
    (void)state;
    spill_definition_t definition = gateway_small_definition();
    strcpy(definition.array, "s.e");
    gateway_fixture_t *fixture = gateway_fixture_new(&definition);
    static const char insert[] =
        "{\"insert\": \"c\", \"documents\": [{\"_id\": 1, \"s\": {\"e\": [0, 1, 2]}}]}";
    static const char push[] = "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": "
                               "{\"$push\": {\"s.e\": 3}}}]}";
    static const char set[] = "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": "
                              "{\"$set\": {\"s\": {\"e\": [7], \"z\": 2}}}}]}";
    static const char managed[] =
        "{\"count\": \"c\", \"query\": {\"spill.s$e\": {\"$exists\": true}}}";
    gateway_try(fixture, insert, "n", "1");
    gateway_try(fixture, push, "n", "1");
    gateway_try_direct(fixture, managed, "n", "1");
    gateway_try(fixture, set, "nModified", "1");
    gateway_try_direct(fixture, managed, "n", "0");
    gateway_try_direct(fixture, "{\"find\": \"c\"}", "cursor.firstBatch.0",
                       "{ \"_id\" : 1, \"s\" : { \"e\" : [ 7 ], \"z\" : 2 } }");
    gateway_try(fixture, push, "n", "1");
    gateway_fixture_free(fixture);
}

static void a_reload_finds_new_definitions(void **state)
{
    (void)state;
    gateway_fixture_t *fixture = open_small();
    spill_definition_t other = gateway_small_definition();
    strcpy(other.name, "d.g");
    strcpy(other.collection, "d");
    strcpy(other.page_collection, "d.pages");
    assert_null(spill_served_find(fixture->client->served, fixture->client->database, "d"));
    const spill_served_collection_t *before =
        spill_served_find(fixture->client->served, fixture->client->database, "c");
    assert_non_null(before);
    assert_int_equal(spill_served_reload(fixture->client->served, NULL), SPILL_OK);
    assert_ptr_equal(spill_served_find(fixture->client->served, fixture->client->database, "c"),
                     before);
    gateway_define(fixture->uri, &other);
    assert_int_equal(spill_served_reload(fixture->client->served, NULL), SPILL_OK);
    assert_non_null(spill_served_find(fixture->client->served, fixture->client->database, "d"));
    assert_true(spill_served_hidden(fixture->client->served, fixture->client->database, "d.pages"));
    gateway_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_array_is_stored_as_the_client_sends_it),
        cmocka_unit_test(a_long_array_gets_pages_that_no_client_sees),
        cmocka_unit_test(a_front_array_has_the_newest_element_first),
        cmocka_unit_test(count_fields_are_set_when_an_array_is_adopted),
        cmocka_unit_test(a_count_field_that_a_pipeline_removes_stays),
        cmocka_unit_test(a_cursor_completes_each_batch),
        cmocka_unit_test(a_killed_cursor_is_gone),
        cmocka_unit_test(a_document_past_16_mb_is_read_whole),
        cmocka_unit_test(a_repeated_push_is_made_once),
        cmocka_unit_test(a_repeated_rewrite_is_made_once),
        cmocka_unit_test(a_rewrite_keeps_count_and_bookkeeping),
        cmocka_unit_test(a_command_of_an_older_transaction_is_refused),
        cmocka_unit_test(pages_and_bookkeeping_belong_to_spillway),
        cmocka_unit_test(what_could_be_wrong_is_refused_with_a_reason),
        cmocka_unit_test(without_pages_all_is_answered),
        cmocka_unit_test(other_collections_are_relayed),
        cmocka_unit_test(transactions_and_other_write_concerns_are_refused),
        cmocka_unit_test(a_drop_leaves_the_definition),
        cmocka_unit_test(a_drop_spares_arrays_that_are_adopted_meanwhile),
        cmocka_unit_test(an_array_at_a_path_is_served),
        cmocka_unit_test(a_change_around_an_adopted_array_makes_it_plain),
        cmocka_unit_test(a_reload_finds_new_definitions),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
