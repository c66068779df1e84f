/* Collections that have a definition which the gateway does not serve: nothing is read in part. */
#include "mongo/gateway_client.h"

#include "support/server.h"

#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Commands that can return or use the array "f", and those that cannot. */
static const char *const using_f[] = {
    "{\"find\": \"c\"}",
    "{\"find\": \"c\", \"filter\": {\"_id\": 1}}",
    "{\"find\": \"c\", \"projection\": {\"f\": 1}}",
    "{\"find\": \"c\", \"projection\": {\"f\": {\"$slice\": -2}}}",
    "{\"find\": \"c\", \"projection\": {\"a\": 0}}",
    "{\"find\": \"c\", \"projection\": {\"a\": 1, \"n\": {\"$size\": \"$f\"}}}",
    "{\"find\": \"c\", \"projection\": {\"a\": 1}, \"filter\": {\"f\": 1}}",
    "{\"find\": \"c\", \"projection\": {\"a\": 1}, \"sort\": {\"f\": 1}}",
    "{\"count\": \"c\", \"query\": {\"f.3\": {\"$exists\": true}}}",
    "{\"distinct\": \"c\", \"key\": \"f\"}",
    "{\"distinct\": \"c\", \"key\": \"a\", \"query\": {\"f\": 1}}",
    "{\"aggregate\": \"c\", \"pipeline\": [], \"cursor\": {}}",
    "{\"aggregate\": \"c\", \"pipeline\": [{\"$match\": {\"_id\": 1}}], \"cursor\": {}}",
    "{\"aggregate\": \"c\", \"pipeline\": [{\"$unwind\": \"$f\"}, {\"$count\": \"n\"}], "
    "\"cursor\": {}}",
    "{\"aggregate\": \"c\", \"pipeline\": [{\"$group\": {\"_id\": null, \"all\": {\"$push\": "
    "\"$$ROOT\"}}}], \"cursor\": {}}",
    "{\"aggregate\": \"other\", \"pipeline\": [{\"$lookup\": {\"from\": \"c\", \"localField\": "
    "\"_id\", \"foreignField\": \"_id\", \"as\": \"c\"}}], \"cursor\": {}}",
    "{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, \"update\": {\"$set\": {\"a\": 2}}}",
    "{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, \"update\": {\"$set\": {\"a\": 2}}, "
    "\"new\": true, \"fields\": {\"f\": 1}}",
    "{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, \"remove\": true}",
    "{\"delete\": \"c\", \"deletes\": [{\"q\": {\"_id\": 1}, \"limit\": 1}]}",
};

static const char *const writing_f[] = {
    "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": 7}}}]}",
    "{\"update\": \"c\", \"updates\": [{\"q\": {\"f\": 1}, \"u\": {\"$set\": {\"a\": 2}}}]}",
};

/* Each is refused, with the field and a reason that has the text. Nothing reaches the server. */
static void refuses(gateway_fixture_t *fixture, const char *command, bool write, const char *cause)
{
    int64_t calls = fixture->client->calls;
    bson_iter_t iter, reason;
    bson_t *reply = gateway_run_json(fixture->client, command);
    gateway_expect(reply, write ? "writeErrors.0.code" : "code", "115");
    assert_true(bson_iter_init(&iter, reply) &&
                bson_iter_find_descendant(
                    &iter, write ? "writeErrors.0.spillway.reason" : "spillway.reason", &reason));
    if (strstr(bson_iter_utf8(&reason, NULL), cause) == NULL)
        fail_msg("%s: '%s' does not say '%s'", command, bson_iter_utf8(&reason, NULL), cause);
    assert_int_equal(fixture->client->calls, calls);
    bson_destroy(reply);
}

static void refuses_all(gateway_fixture_t *fixture, const char *cause)
{
    for (size_t i = 0; i < sizeof using_f / sizeof *using_f; i++)
        refuses(fixture, using_f[i], false, cause);
    for (size_t i = 0; i < sizeof writing_f / sizeof *writing_f; i++)
        refuses(fixture, writing_f[i], true, cause);
    refuses(fixture, "{\"insert\": \"c\", \"documents\": [{\"f\": [1]}]}", false, cause);
}

/* What leaves the arrays "f" and "g" out is answered, and shows no bookkeeping. */
static void answers_the_rest(gateway_fixture_t *fixture)
{
    gateway_try(fixture, "{\"find\": \"c\", \"projection\": {\"a\": 1}}", "cursor.firstBatch.0",
                "{ \"_id\" : 1, \"a\" : 5 }");
    gateway_try(fixture, "{\"find\": \"c\", \"projection\": {\"f\": 0, \"g\": 0}}",
                "cursor.firstBatch.0", "{ \"_id\" : 1, \"a\" : 5 }");
    gateway_try(fixture, "{\"count\": \"c\", \"query\": {\"a\": 5}}", "n", "1");
    gateway_try(fixture, "{\"distinct\": \"c\", \"key\": \"a\"}", "values", "[ 5 ]");
    gateway_try(fixture,
                "{\"aggregate\": \"c\", \"pipeline\": [{\"$match\": {\"a\": 5}}, {\"$project\": "
                "{\"f\": 0, \"g\": 0}}], \"cursor\": {}}",
                "cursor.firstBatch.0", "{ \"_id\" : 1, \"a\" : 5 }");
    gateway_try(fixture,
                "{\"aggregate\": \"c\", \"pipeline\": [{\"$group\": {\"_id\": \"$a\"}}], "
                "\"cursor\": {}}",
                "cursor.firstBatch.0", "{ \"_id\" : 5 }");
    gateway_try(fixture,
                "{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, \"update\": {\"$inc\": "
                "{\"a\": 0}}, \"fields\": {\"f\": 0, \"g\": 0}}",
                "value", "{ \"_id\" : 1, \"a\" : 5 }");
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$set\": "
                "{\"a\": 5}}}]}",
                "n", "1");
}

/* The collection "c" has an array with pages when a second definition appears. */
static gateway_fixture_t *open_shared(void)
{
    spill_definition_t first = gateway_small_definition(), second = first;
    gateway_fixture_t *fixture = gateway_fixture_new(&first);
    gateway_push(fixture, 1, 0, 9);
    gateway_settle(fixture);
    gateway_try(fixture,
                "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$set\": "
                "{\"a\": 5}}}]}",
                "n", "1");
    strcpy(second.name, "c.g");
    strcpy(second.array, "g");
    strcpy(second.page_collection, "c.g.pages");
    gateway_define(fixture->uri, &second);
    assert_int_equal(spill_served_reload(fixture->client->served, NULL), SPILL_OK);
    return fixture;
}

static void two_definitions_of_a_collection_return_no_part(void **state)
{
    (void)state;
    static const char cause[] = "'c.g' share the collection";
    gateway_fixture_t *fixture = open_shared();
    refuses_all(fixture, cause);
    refuses(fixture, "{\"find\": \"c\", \"projection\": {\"g\": 1}}", false, cause);
    refuses(fixture, "{\"find\": \"c\", \"projection\": {\"f\": 0}}", false, cause);
    refuses(fixture, "{\"find\": \"c\", \"projection\": {\"a\": 1}, \"filter\": {\"g\": 1}}", false,
            cause);
    refuses(fixture, "{\"distinct\": \"c\", \"key\": \"g.x\"}", false, cause);
    refuses(fixture,
            "{\"update\": \"c\", \"updates\": [{\"q\": {\"g\": 1}, \"u\": {\"$set\": {\"a\": "
            "2}}}]}",
            true, cause);
    answers_the_rest(fixture);
    gateway_fixture_free(fixture);
}

static void a_drop_takes_the_pages_of_all_definitions(void **state)
{
    (void)state;
    gateway_fixture_t *fixture = open_shared();
    gateway_try_direct(fixture,
                       "{\"insert\": \"c.g.pages\", \"documents\": [{\"_id\": 1, \"spill\": "
                       "{\"epoch\": 5}}]}",
                       "n", "1");
    gateway_try(fixture, "{\"drop\": \"c\"}", "ok", "1.0");
    gateway_try_direct(
        fixture, "{\"count\": \"c.pages\", \"query\": {\"_id\": {\"$exists\": true}}}", "n", "0");
    gateway_try_direct(
        fixture, "{\"count\": \"c.g.pages\", \"query\": {\"_id\": {\"$exists\": true}}}", "n", "0");
    gateway_try(fixture, "{\"dropDatabase\": 1}", "ok", "1.0");
    gateway_fixture_free(fixture);
}

static int64_t pages_left(gateway_fixture_t *fixture)
{
    bson_iter_t n;
    bson_t *reply = gateway_direct_json(
        fixture->client, "{\"count\": \"c.pages\", \"query\": {\"spill.epoch\": {\"$gt\": 0}}}");
    assert_true(bson_iter_init_find(&n, reply, "n"));
    int64_t count = bson_iter_as_int64(&n);
    bson_destroy(reply);
    return count;
}

/* Repair the array of the definition c.f. Return how many findings it has left. */
static int64_t repair(const gateway_fixture_t *fixture)
{
    spill_array_t *array;
    spill_repair_summary_t summary;
    spill_store_t *store = server_open(fixture->uri);
    assert_int_equal(spill_array_open(store, "c.f", &array, NULL), SPILL_OK);
    assert_int_equal(spill_array_repair(array, NULL, false, NULL, NULL, &summary, NULL), SPILL_OK);
    spill_array_close(array);
    server_close(store);
    return summary.left;
}

/* The drop leaves a note: repair deletes the pages, wherever the gateway dies. */
static void a_killed_drop_is_finished_for_all_definitions(void **state)
{
    enum { CALLS_MAX = 20 };
    (void)state;
    bool died = true;
    for (int call = 1; died; call++) {
        assert_true(call < CALLS_MAX);
        gateway_fixture_t *fixture = open_shared();
        int64_t before = pages_left(fixture);
        fixture->client->dies_at = call;
        fixture->client->loses_reply = call % 2 == 0;
        bson_destroy(gateway_run_json(fixture->client, "{\"drop\": \"c\"}"));
        died = fixture->client->broken;
        gateway_settle(fixture);
        assert_int_equal(repair(fixture), 0);
        bson_iter_t n;
        bson_t *heads = gateway_direct_json(
            fixture->client, "{\"count\": \"c\", \"query\": {\"_id\": {\"$gt\": 0}}}");
        assert_true(bson_iter_init_find(&n, heads, "n"));
        assert_int_equal(pages_left(fixture), bson_iter_as_int64(&n) > 0 ? before : 0);
        bson_destroy(heads);
        gateway_fixture_free(fixture);
    }
}

/* One definition: a set, and one that keeps the oldest elements. */
static void check_alone(const spill_definition_t *definition, const char *cause)
{
    gateway_fixture_t *fixture = gateway_fixture_new(definition);
    gateway_try_direct(fixture,
                       "{\"insert\": \"c\", \"documents\": [{\"_id\": 1, \"f\": [1, 2], \"a\": 5, "
                       "\"spill\": {}}]}",
                       "n", "1");
    refuses_all(fixture, cause);
    answers_the_rest(fixture);
    gateway_fixture_free(fixture);
}

static void a_set_returns_no_part(void **state)
{
    (void)state;
    spill_definition_t definition = gateway_small_definition();
    strcpy(definition.id_field, ".");
    definition.unique = true;
    check_alone(&definition, "is a set");
}

static void a_head_with_the_oldest_elements_returns_no_part(void **state)
{
    (void)state;
    spill_definition_t definition = gateway_small_definition();
    definition.keep = SPILL_KEEP_OLDEST;
    check_alone(&definition, "keeps the oldest elements");
}

/* Heads of other layouts have no part of an array: their documents are as the layout says. */
static void other_layouts_are_read_as_stored_and_not_written(void **state)
{
    (void)state;
    static const char *const presets[] = {"reviews-separate", "reviews-subset", "reviews-bucket"};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        spill_definition_t definition;
        assert_int_equal(spill_definition_preset(&definition, presets[i], "reviews", NULL),
                         SPILL_OK);
        gateway_fixture_t *fixture = gateway_fixture_new(&definition);
        const char *c = definition.collection, *f = definition.array;
        char *find = bson_strdup_printf("{\"find\": \"%s\"}", c);
        char *push = bson_strdup_printf("{\"update\": \"%s\", \"updates\": [{\"q\": {\"_id\": 1}, "
                                        "\"u\": {\"$push\": {\"%s\": 1}}}]}",
                                        c, f);
        char *insert =
            bson_strdup_printf("{\"insert\": \"%s\", \"documents\": [{\"%s\": [1]}]}", c, f);
        char *update = bson_strdup_printf(
            "{\"update\": \"%s\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$set\": {\"a\": "
            "1}}, \"upsert\": true}]}",
            c);
        char *delete =
            bson_strdup_printf("{\"delete\": \"%s\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}", c);
        gateway_try(fixture, find, "ok", "1.0");
        assert_true(fixture->client->relayed);
        refuses(fixture, push, true, "has the layout");
        refuses(fixture, insert, false, "has the layout");
        gateway_try(fixture, update, "n", "1");
        refuses(fixture, delete, false, "has the layout");
        gateway_fixture_free(fixture);
        bson_free(find);
        bson_free(push);
        bson_free(insert);
        bson_free(update);
        bson_free(delete);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_definitions_of_a_collection_return_no_part),
        cmocka_unit_test(a_drop_takes_the_pages_of_all_definitions),
        cmocka_unit_test(a_killed_drop_is_finished_for_all_definitions),
        cmocka_unit_test(a_set_returns_no_part),
        cmocka_unit_test(a_head_with_the_oldest_elements_returns_no_part),
        cmocka_unit_test(other_layouts_are_read_as_stored_and_not_written),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
