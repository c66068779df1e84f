/* The tests' proxy applies the chosen faults to requests, and counts the requests. */
#include "support/deadline.h"
#include "support/proxy.h"
#include "support/server.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    proxy_t *proxy;
    char *uri;
    mongoc_client_t *straight;
    mongoc_client_t *client; /* by way of the proxy */
    mongoc_database_t *database;
    mongoc_database_t *proxied;
} fixture_t;

static int set_up(void **state)
{
    fixture_t *fixture = bson_malloc0(sizeof *fixture);
    *state = fixture;
    fixture->uri = server_new_database("retryReads=false&retryWrites=false");
    fixture->proxy = proxy_start(server_uri());
    char *through = proxy_uri(fixture->proxy, fixture->uri);
    fixture->straight = server_client(fixture->uri, &fixture->database);
    fixture->client = server_client(through, &fixture->proxied);
    bson_free(through);
    mongoc_log_set_handler(NULL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    fixture_t *fixture = *state;
    mongoc_database_destroy(fixture->proxied);
    mongoc_client_destroy(fixture->client);
    proxy_stop(fixture->proxy);
    mongoc_database_destroy(fixture->database);
    mongoc_client_destroy(fixture->straight);
    server_drop(fixture->uri);
    bson_free(fixture->uri);
    bson_free(fixture);
    return 0;
}

static bool insert_document(fixture_t *fixture, int32_t id)
{
    bson_error_t error;
    bson_t *document = BCON_NEW("_id", BCON_INT32(id), "text", "0123456789");
    mongoc_collection_t *things = mongoc_database_get_collection(fixture->proxied, "things");
    bool good = mongoc_collection_insert_one(things, document, NULL, NULL, &error);
    mongoc_collection_destroy(things);
    bson_destroy(document);
    return good;
}

/* Whether the document is stored, by a query that does not use the proxy. */
static bool is_stored(fixture_t *fixture, int32_t id)
{
    bson_error_t error;
    bson_t *filter = BCON_NEW("_id", BCON_INT32(id));
    mongoc_collection_t *things = mongoc_database_get_collection(fixture->database, "things");
    int64_t found = mongoc_collection_count_documents(things, filter, NULL, NULL, NULL, &error);
    assert_true(found >= 0);
    mongoc_collection_destroy(things);
    bson_destroy(filter);
    return found == 1;
}

static void set_fault(fixture_t *fixture, proxy_fault_t fault)
{
    proxy_plan_t plan = {.seed = 7, .delay_us = 1000, .late_us = 1000};
    plan.rate[fault] = 10000;
    proxy_set_plan(fixture->proxy, fault == PROXY_PASS ? NULL : &plan);
}

/* Insert while the fault affects every insert. Returns whether it succeeds. Afterwards reconnect.
 */
static bool insert_with(fixture_t *fixture, proxy_fault_t fault, int32_t id)
{
    assert_true(insert_document(fixture, id + 1000)); /* connects again if necessary */
    set_fault(fixture, fault);
    proxy_counts_t before = proxy_counts(fixture->proxy);
    bool good = insert_document(fixture, id);
    proxy_counts_t after = proxy_counts(fixture->proxy);
    set_fault(fixture, PROXY_PASS);
    assert_int_equal(after.faults[fault] - before.faults[fault], 1);
    assert_int_equal(after.requests - before.requests, 1);
    return good;
}

/* The server may execute a request some time after its client has disconnected. */
static void await_stored(fixture_t *fixture, int32_t id)
{
    deadline_t deadline = deadline_begin();
    while (!is_stored(fixture, id))
        deadline_pause(&deadline, "the server stores the document");
}

static void test_counts(void **state)
{
    fixture_t *fixture = *state;
    assert_true(insert_document(fixture, 1));
    proxy_counts_t before = proxy_counts(fixture->proxy);
    for (int32_t id = 2; id < 12; id++)
        assert_true(insert_document(fixture, id));
    proxy_counts_t after = proxy_counts(fixture->proxy);
    assert_int_equal(after.requests - before.requests, 10);
    assert_int_equal(after.replies - before.replies, 10);
    /* The document alone takes 36 bytes, a reply's header 16. */
    assert_in_range(after.request_bytes - before.request_bytes, 360, 5000);
    assert_in_range(after.reply_bytes - before.reply_bytes, 160, 5000);
    assert_int_equal((after.request_bytes - before.request_bytes) % 10, 0);
    assert_int_equal(after.faults[PROXY_PASS] - before.faults[PROXY_PASS], 10);
}

static void test_leaves_out_what_the_driver_sends(void **state)
{
    fixture_t *fixture = *state;
    bson_t *ping = BCON_NEW("ping", BCON_INT32(1));
    bson_error_t error;
    assert_true(insert_document(fixture, 1));
    set_fault(fixture, PROXY_CUT_BEFORE);
    proxy_counts_t before = proxy_counts(fixture->proxy);
    for (int i = 0; i < 5; i++)
        assert_true(mongoc_database_command_simple(fixture->proxied, ping, NULL, NULL, &error));
    proxy_counts_t after = proxy_counts(fixture->proxy);
    assert_true(after.own_requests - before.own_requests >= 5);
    assert_true(after.own_replies - before.own_replies >= 5);
    assert_int_equal(after.requests, before.requests);
    assert_int_equal(after.request_bytes, before.request_bytes);
    bson_destroy(ping);
}

static void test_faults(void **state)
{
    fixture_t *fixture = *state;
    assert_false(insert_with(fixture, PROXY_CUT_BEFORE, 1));
    assert_false(is_stored(fixture, 1));
    assert_false(insert_with(fixture, PROXY_CUT_REQUEST, 2));
    assert_false(is_stored(fixture, 2));
    assert_false(insert_with(fixture, PROXY_CUT_AFTER, 3));
    await_stored(fixture, 3);
    assert_false(insert_with(fixture, PROXY_CUT_REPLY, 4));
    assert_true(is_stored(fixture, 4));
    assert_false(insert_with(fixture, PROXY_LATE, 5));
    await_stored(fixture, 5);
    assert_true(insert_with(fixture, PROXY_DELAY, 6));
    assert_true(is_stored(fixture, 6));
    assert_true(insert_document(fixture, 7));
}

static void check_uri(fixture_t *fixture, const char *uri, const char *before, const char *after)
{
    char *through = proxy_uri(fixture->proxy, uri);
    assert_memory_equal(through, before, strlen(before));
    const char *rest = through + strlen(before);
    assert_true(strtol(rest, (char **)&rest, 10) > 0);
    assert_string_equal(rest, after);
    bson_free(through);
}

static void test_uri(void **state)
{
    fixture_t *fixture = *state;
    check_uri(fixture, "mongodb://localhost", "mongodb://127.0.0.1:", "/?directConnection=true");
    check_uri(fixture, "mongodb://a:1,b:2/db?replicaSet=r&w=1",
              "mongodb://127.0.0.1:", "/db?directConnection=true&w=1");
    check_uri(fixture, "mongodb://me:pass@a:1/db?",
              "mongodb://me:pass@127.0.0.1:", "/db?directConnection=true");
}

int main(void)
{
    server_uri();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_leaves_out_what_the_driver_sends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_faults, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_uri, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
