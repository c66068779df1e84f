/*
 * A gateway is killed at every call that a translated statement sends to the server: before the
 * call, and after the server has made it. The driver then repeats the command through another
 * gateway. Each statement takes effect once.
 */
#include "mongo/gateway_client.h"

#include "support/document.h"
#include "support/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { CALLS_MAX = 40 };

/* What an owner is like before the statement. */
typedef enum owner_kind { ADOPTED, WITH_PAGES } owner_kind_t;

typedef struct killed {
    const char *name;
    owner_kind_t owner;
    const char *command; /* %d: the owner */
    const char *array;   /* F of the owner afterwards, as JSON; NULL: it has no document */
} killed_t;

#define UPDATE(u) "{\"update\":\"c\",\"updates\":[{\"q\":{\"_id\":%d},\"u\":" u "}]}"

/* An adopted array is [0, 1, 2, 3], one with pages [0, 1, 2, 3, 4, 5, 6]. */
static const killed_t cases[] = {
    {"a push", ADOPTED, UPDATE("{\"$push\":{\"f\":9},\"$inc\":{\"n\":1}}"), "[ 0, 1, 2, 3, 9 ]"},
    {"a push with a condition on F", ADOPTED,
     "{\"update\":\"c\",\"updates\":[{\"q\":{\"_id\":%d,\"f\":2},\"u\":{\"$push\":{\"f\":9},"
     "\"$inc\":{\"n\":1}}}]}",
     "[ 0, 1, 2, 3, 9 ]"},
    {"$pop", ADOPTED, UPDATE("{\"$pop\":{\"f\":1},\"$inc\":{\"n\":1}}"), "[ 0, 1, 2 ]"},
    {"$inc of an element", ADOPTED, UPDATE("{\"$inc\":{\"f.1\":5,\"n\":1}}"), "[ 0, 6, 2, 3 ]"},
    {"a pipeline", ADOPTED,
     UPDATE("[{\"$set\":{\"f\":{\"$concatArrays\":[\"$f\",[8]]},\"n\":{\"$add\":[\"$n\",1]}}}]"),
     "[ 0, 1, 2, 3, 8 ]"},
    {"findAndModify", ADOPTED,
     "{\"findAndModify\":\"c\",\"query\":{\"_id\":%d},\"update\":{\"$push\":{\"f\":{\"$each\":[7],"
     "\"$position\":0}},\"$inc\":{\"n\":1}},\"new\":true}",
     "[ 7, 0, 1, 2, 3 ]"},
    {"several statements", ADOPTED,
     "{\"update\":\"c\",\"updates\":[{\"q\":{\"_id\":%1$d},\"u\":{\"$pop\":{\"f\":-1}}},"
     "{\"q\":{\"_id\":%1$d},\"u\":{\"$push\":{\"f\":9},\"$inc\":{\"n\":1}}}]}",
     "[ 1, 2, 3, 9 ]"},
    {"a push to pages", WITH_PAGES, UPDATE("{\"$push\":{\"f\":9},\"$inc\":{\"n\":1}}"),
     "[ 0, 1, 2, 3, 4, 5, 6, 9 ]"},
    {"findAndModify with pages", WITH_PAGES,
     "{\"findAndModify\":\"c\",\"query\":{\"_id\":%d},\"update\":{\"$push\":{\"f\":9},\"$inc\":{"
     "\"n\":1}},\"new\":true}",
     "[ 0, 1, 2, 3, 4, 5, 6, 9 ]"},
    {"a delete", WITH_PAGES, "{\"delete\":\"c\",\"deletes\":[{\"q\":{\"_id\":%d},\"limit\":1}]}",
     NULL},
};

typedef struct fixture {
    char *uri;
    gateway_client_t *first, *second;
    int owner;
    int64_t txn_number;
} fixture_t;

static void run(gateway_client_t *client, const char *json)
{
    bson_t *reply = gateway_run_json(client, json);
    gateway_expect(reply, "n", "1");
    bson_destroy(reply);
}

/* Make the next owner, by the second gateway, without numbers. */
static void make_owner(fixture_t *fixture, owner_kind_t kind)
{
    int pushed = kind == ADOPTED ? 4 : 7;
    fixture->owner++;
    fixture->second->txn_number = -1;
    for (int i = 0; i < pushed; i++) {
        char *push = bson_strdup_printf(
            "{\"update\":\"c\",\"updates\":[{\"q\":{\"_id\":%d},\"u\":{\"$push\":{\"f\":%d},"
            "\"$set\":{\"n\":1}},\"upsert\":true}]}",
            fixture->owner, i);
        run(fixture->second, push);
        bson_free(push);
    }
}

/* Run the command through the first gateway, which dies, then perhaps through the second one. */
static bool run_and_retry(fixture_t *fixture, const char *json, int64_t call, bool loses_reply)
{
    gateway_client_t *first = fixture->first, *second = fixture->second;
    first->txn_number = second->txn_number = ++fixture->txn_number;
    first->dies_at = call;
    first->loses_reply = loses_reply;
    first->broken = false;
    bson_destroy(gateway_run_json(first, json));
    bool died = first->broken;
    first->dies_at = 0;
    first->loses_reply = false;
    if (died)
        bson_destroy(gateway_run_json(second, json));
    return died;
}

static void check_owner(fixture_t *fixture, const killed_t *killed, int64_t call)
{
    char *find = bson_strdup_printf("{\"find\":\"c\",\"filter\":{\"_id\":%d}}", fixture->owner);
    fixture->second->txn_number = -1;
    bson_t *reply = gateway_run_json(fixture->second, find);
    print_message("%s, call %d\n", killed->name, (int)call);
    if (killed->array != NULL) {
        gateway_expect(reply, "cursor.firstBatch.0.f", killed->array);
        gateway_expect(reply, "cursor.firstBatch.0.n", "2");
    } else {
        gateway_expect(reply, "cursor.firstBatch", "[  ]");
    }
    bson_destroy(reply);
    bson_free(find);
}

static void play(fixture_t *fixture, const killed_t *killed, bool loses_reply)
{
    bool died = true;
    int64_t call = 0;
    while (died) {
        assert_true(++call < CALLS_MAX);
        make_owner(fixture, killed->owner);
        char *json = bson_strdup_printf(killed->command, fixture->owner);
        died = run_and_retry(fixture, json, call, loses_reply);
        bson_free(json);
        check_owner(fixture, killed, call);
    }
    assert_true(call > 1);
}

static void each_statement_is_made_once(void **state)
{
    fixture_t fixture = {.uri = server_new_database(NULL)};
    spill_definition_t definition = gateway_small_definition();
    spill_store_t *store = server_open(fixture.uri);
    (void)state;
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    server_close(store);
    fixture.first = gateway_client_new(fixture.uri);
    fixture.second = gateway_client_new(fixture.uri);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int loses_reply = 0; loses_reply < 2; loses_reply++)
            play(&fixture, &cases[i], loses_reply == 1);
    gateway_client_free(fixture.first);
    gateway_client_free(fixture.second);
    server_drop(fixture.uri);
    bson_free(fixture.uri);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_statement_is_made_once)};
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
