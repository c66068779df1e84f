/*
 * maxTimeMS of commands on served collections: the time ends after each of a command's calls of the
 * server in turn. The reply says what was made, and nothing is made by halves.
 */
#include "mongo/gateway_client.h"

#include "support/server.h"

#include "util/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define LONG_AGO_US (-INT64_C(1000000000000))

enum { OWNERS = 3, PUSHED = 2, CALLS_MAX = 60 };

/* ---- a connection on which the time ends ----------------------------------------------------- */

static spill_code_t (*call_server)(spill_client_connection_t *connection, const bson_t *body,
                                   const spill_wire_sequence_t *sequences, size_t count,
                                   bson_t *reply, spill_error_t *error);
static int calls_left; /* until the time ends; -1: it does not */
static int64_t least_ms, calls_timed;

static spill_code_t call_for_a_time(spill_client_connection_t *connection, const bson_t *body,
                                    const spill_wire_sequence_t *sequences, size_t count,
                                    bson_t *reply, spill_error_t *error)
{
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, body, "maxTimeMS")) {
        calls_timed++;
        if (bson_iter_as_int64(&iter) < least_ms)
            least_ms = bson_iter_as_int64(&iter);
    }
    spill_code_t code = call_server(connection, body, sequences, count, reply, error);
    if (calls_left > 0 && --calls_left == 0)
        connection->received_us = LONG_AGO_US;
    return code;
}

/* Run a command, and end its time after `calls` calls. */
static bson_t *run_for(gateway_fixture_t *fixture, const char *command, int calls)
{
    spill_client_connection_t *connection = &fixture->client->connection;
    connection->received_us = calls == 0 ? LONG_AGO_US : spill_clock_monotonic_us(NULL);
    calls_left = calls;
    bson_t *reply = gateway_run_json(fixture->client, command);
    connection->received_us = 0;
    calls_left = -1;
    return reply;
}

/* ---- fixtures -------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    gateway_setup(state);
    gateway_fixture_t *fixture = *state;
    call_server = fixture->client->connection.call;
    fixture->client->connection.call = call_for_a_time;
    calls_left = -1;
    return 0;
}

/* Three owners: with pages, plain and about to be adopted, plain. */
static void fill(gateway_fixture_t *fixture)
{
    static const char *const commands[] = {
        "{\"delete\": \"c\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}",
        "{\"insert\": \"c\", \"documents\": [{\"_id\": 1, \"f\": [0, 1, 2]}, {\"_id\": 2, \"f\": "
        "[0, 1, 2]}, {\"_id\": 3, \"f\": [0]}]}",
        "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": {\"$push\": {\"f\": "
        "{\"$each\": [3, 4, 5, 6]}}}}]}"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        bson_t *reply = gateway_run_json(fixture->client, commands[i]);
        gateway_expect(reply, "ok", "1.0");
        bson_destroy(reply);
    }
}

static uint32_t count_keys(const bson_t *document, const char *path)
{
    bson_iter_t iter, array;
    uint32_t count = 0;
    if (!bson_iter_init(&iter, document) || !bson_iter_find_descendant(&iter, path, &array) ||
        !bson_iter_recurse(&array, &iter))
        return 0;
    while (bson_iter_next(&iter))
        count++;
    return count;
}

/* The elements of all owners, as clients see them. */
static uint32_t count_elements(gateway_fixture_t *fixture)
{
    uint32_t count = 0;
    bson_t *reply = gateway_run_json(fixture->client, "{\"find\": \"c\"}");
    char path[64];
    for (int i = 0; i < OWNERS; i++) {
        bson_snprintf(path, sizeof path, "cursor.firstBatch.%d.f", i);
        count += count_keys(reply, path);
    }
    bson_destroy(reply);
    return count;
}

static int64_t number_at(const bson_t *reply, const char *path)
{
    bson_iter_t iter, found;
    return bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, path, &found)
               ? bson_iter_as_int64(&found)
               : 0;
}

/* Is it an error 50, of the command or of a statement? */
static bool has_expired(const bson_t *reply)
{
    int64_t code = number_at(reply, "code"), statement = number_at(reply, "writeErrors.0.code");
    if (code == 0 && statement == 0)
        return false;
    assert_int_equal(code + statement, 50);
    return true;
}

/* ---- tests ----------------------------------------------------------------------------------- */

enum { ELEMENTS = 7 + 3 + 1 };

#define PUSH "{\"$push\": {\"f\": {\"$each\": [8, 9]}}}"

/* The reply's n is the number of owners that got the elements. */
static void check_update(gateway_fixture_t *fixture, const char *command)
{
    bool expired = true;
    for (int calls = 0; expired; calls++) {
        assert_in_range(calls, 0, CALLS_MAX);
        fill(fixture);
        bson_t *reply = run_for(fixture, command, calls);
        expired = has_expired(reply);
        assert_int_equal(count_elements(fixture), ELEMENTS + PUSHED * number_at(reply, "n"));
        if (calls == 0)
            assert_true(expired);
        else if (!expired)
            assert_in_range(number_at(reply, "n"), 1, OWNERS);
        bson_destroy(reply);
    }
}

static void an_update_says_which_owners_it_has_changed(void **state)
{
    check_update(*state, "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": " PUSH
                         "}], \"maxTimeMS\": 60000}");
    check_update(*state, "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 2}, \"u\": " PUSH
                         "}], \"maxTimeMS\": 60000}");
    check_update(*state, "{\"update\": \"c\", \"updates\": [{\"q\": {}, \"u\": " PUSH
                         ", \"multi\": true}], \"maxTimeMS\": 60000}");
    check_update(*state, "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 1}, \"u\": " PUSH
                         "}, {\"q\": {\"_id\": 3}, \"u\": " PUSH "}], \"maxTimeMS\": 60000}");
}

/* An error means that the change was not made. */
static void a_find_and_modify_is_made_and_answered_or_not_made(void **state)
{
    static const char command[] =
        "{\"findAndModify\": \"c\", \"query\": {\"_id\": 1}, \"update\": " PUSH
        ", \"new\": true, \"maxTimeMS\": 60000}";
    gateway_fixture_t *fixture = *state;
    bool expired = true;
    for (int calls = 0; expired; calls++) {
        assert_in_range(calls, 0, CALLS_MAX);
        fill(fixture);
        bson_t *reply = run_for(fixture, command, calls);
        expired = has_expired(reply);
        assert_int_equal(count_elements(fixture), ELEMENTS + (expired ? 0 : PUSHED));
        if (!expired)
            gateway_expect(reply, "value.f", "[ 0, 1, 2, 3, 4, 5, 6, 8, 9 ]");
        bson_destroy(reply);
    }
}

static void an_array_is_never_cut_off(void **state)
{
    static const char command[] =
        "{\"find\": \"c\", \"filter\": {\"_id\": 1}, \"maxTimeMS\": 60000}";
    gateway_fixture_t *fixture = *state;
    fill(fixture);
    for (int calls = 0; calls < 2; calls++) {
        bson_t *reply = run_for(fixture, command, calls);
        assert_true(has_expired(reply));
        bson_destroy(reply);
    }
    bson_t *reply = run_for(fixture, command, -1);
    gateway_expect(reply, "cursor.firstBatch.0.f", "[ 0, 1, 2, 3, 4, 5, 6 ]");
    bson_destroy(reply);
}

/* Each call of the server gets the time that is left. */
static void the_server_gets_the_time_that_is_left(void **state)
{
    gateway_fixture_t *fixture = *state;
    fill(fixture);
    least_ms = INT64_MAX;
    calls_timed = 0;
    bson_t *reply = run_for(fixture,
                            "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": 2}, \"u\": " PUSH
                            "}], \"maxTimeMS\": 60000}",
                            -1);
    gateway_expect(reply, "n", "1");
    assert_true(calls_timed > 1);
    assert_in_range(least_ms, 1, 60000);
    bson_destroy(reply);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, gateway_teardown)
    const struct CMUnitTest tests[] = {TEST(an_update_says_which_owners_it_has_changed),
                                       TEST(a_find_and_modify_is_made_and_answered_or_not_made),
                                       TEST(an_array_is_never_cut_off),
                                       TEST(the_server_gets_the_time_that_is_left)};
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
