/*
 * Deadlines on a server behind a proxy that stalls: the request, the answer, or everything. Each
 * call ends in time, and its code says whether it may have changed anything.
 */
#include "support/deadline.h"
#include "support/proxy.h"
#include "support/server.h"

#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <stdlib.h>

/* The tests do not depend on durations: a stalled proxy continues when the test says so. */
enum { SHORT_MS = 50, LONG_MS = 600000 };

typedef struct fixture {
    char *uri;
    proxy_t *proxy;
    spill_store_t *straight; /* not through the proxy */
    spill_store_t *store;
    spill_array_t *array;
    spill_array_t *seen; /* the same array, not through the proxy */
    bson_t storage;
    spill_value_t owner;
} fixture_t;

static int open_fixture(void **state)
{
    fixture_t *fixture = aligned_alloc(_Alignof(fixture_t), sizeof *fixture);
    spill_definition_t definition;
    memset(fixture, 0, sizeof *fixture);
    fixture->uri = server_new_database(NULL);
    fixture->proxy = proxy_start(server_uri());
    char *through = proxy_uri(fixture->proxy, fixture->uri);
    fixture->straight = server_open(fixture->uri);
    fixture->store = server_open(through);
    bson_free(through);
    assert_int_equal(spill_definition_preset(&definition, "feed-recent", "feed", NULL), SPILL_OK);
    definition.bounds.threshold = 4;
    definition.bounds.page_capacity = 2;
    assert_int_equal(spill_store_define(fixture->straight, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(fixture->store, "feed", &fixture->array, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(fixture->straight, "feed", &fixture->seen, NULL), SPILL_OK);
    bson_init(&fixture->storage);
    fixture->owner = spill_value_from_utf8(&fixture->storage, "ada");
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    fixture_t *fixture = *state;
    proxy_hold(fixture->proxy, PROXY_HOLD_NOTHING, 0);
    spill_array_close(fixture->array);
    spill_array_close(fixture->seen);
    server_close(fixture->store);
    server_close(fixture->straight);
    proxy_stop(fixture->proxy);
    server_drop(fixture->uri);
    bson_destroy(&fixture->storage);
    bson_free(fixture->uri);
    free(fixture);
    return 0;
}

static spill_code_t append_number(fixture_t *fixture, spill_array_t *array, int64_t number,
                                  const char *id, spill_append_result_t *result)
{
    spill_value_t value = {(const uint8_t *)&number, sizeof number, BSON_TYPE_INT64};
    spill_op_t op = {.id = id, .id_bytes = id ? strlen(id) : 0};
    spill_append_options_t options;
    spill_append_options_init(&options);
    options.op = id ? &op : NULL;
    return spill_array_append(array, &fixture->owner, &value, 1, &options, result, NULL);
}

static void fill(fixture_t *fixture, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(append_number(fixture, fixture->seen, i, NULL, NULL), SPILL_OK);
}

static int64_t count_elements(fixture_t *fixture)
{
    spill_count_t count;
    assert_int_equal(spill_array_count(fixture->seen, &fixture->owner, &count, NULL), SPILL_OK);
    return count.count;
}

/* Append through the proxy, which holds something, with longer deadlines until it is not too early.
 */
static spill_code_t append_stalled(fixture_t *fixture, const char *id)
{
    spill_code_t code = SPILL_TIMED_OUT;
    spill_append_result_t result;
    for (int64_t ms = SHORT_MS; code == SPILL_TIMED_OUT; ms *= 2) {
        spill_deadline_t outer = spill_deadline_begin(ms);
        code = append_number(fixture, fixture->array, 7, id, &result);
        spill_deadline_end(outer);
    }
    return code;
}

/* The request has not left the proxy yet: it may still reach the server. */
static void a_request_that_stalls_is_unknown(void **state)
{
    fixture_t *fixture = *state;
    spill_append_result_t result;
    assert_int_equal(append_number(fixture, fixture->array, 6, NULL, &result), SPILL_OK);
    proxy_hold(fixture->proxy, PROXY_HOLD_REQUESTS, 0);
    assert_int_equal(append_stalled(fixture, "op"), SPILL_UNKNOWN);
    assert_int_equal(count_elements(fixture), 1);
    proxy_hold(fixture->proxy, PROXY_HOLD_NOTHING, 0);
    assert_int_equal(append_number(fixture, fixture->array, 7, "op", &result), SPILL_OK);
    deadline_t deadline = deadline_begin();
    while (count_elements(fixture) < 2)
        deadline_pause(&deadline, "the append arrives");
    assert_int_equal(count_elements(fixture), 2);
}

static void an_answer_that_stalls_is_unknown(void **state)
{
    fixture_t *fixture = *state;
    spill_append_result_t result;
    assert_int_equal(append_number(fixture, fixture->array, 6, NULL, &result), SPILL_OK);
    proxy_hold(fixture->proxy, PROXY_HOLD_REPLIES, 0);
    assert_int_equal(append_stalled(fixture, "op"), SPILL_UNKNOWN);
    deadline_t deadline = deadline_begin();
    while (count_elements(fixture) < 2)
        deadline_pause(&deadline, "the server makes the append");
    proxy_hold(fixture->proxy, PROXY_HOLD_NOTHING, 0);
    assert_int_equal(append_number(fixture, fixture->array, 7, "op", &result), SPILL_OK);
    assert_true(result.repeated);
    assert_int_equal(count_elements(fixture), 2);
}

static void a_read_that_stalls_is_timed_out(void **state)
{
    static const proxy_hold_t holds[] = {PROXY_HOLD_REQUESTS, PROXY_HOLD_REPLIES, PROXY_HOLD_ALL};
    fixture_t *fixture = *state;
    spill_slice_t *slice;
    spill_array_t *again;
    fill(fixture, 10);
    for (size_t i = 0; i < sizeof holds / sizeof *holds; i++) {
        proxy_hold(fixture->proxy, holds[i], 0);
        spill_deadline_t outer = spill_deadline_begin(SHORT_MS);
        assert_int_equal(spill_array_read(fixture->array, &fixture->owner, NULL, &slice, NULL),
                         SPILL_TIMED_OUT);
        assert_null(slice);
        assert_int_equal(spill_array_open(fixture->store, "feed", &again, NULL), SPILL_TIMED_OUT);
        spill_deadline_end(outer);
        proxy_hold(fixture->proxy, PROXY_HOLD_NOTHING, 0);
    }
}

/* No connection is open, and the server accepts one but says nothing: nothing is sent. */
static void a_server_that_says_nothing(void **state)
{
    fixture_t *fixture = *state;
    spill_append_result_t result;
    proxy_hold(fixture->proxy, PROXY_HOLD_ALL, 0);
    spill_deadline_t outer = spill_deadline_begin(SHORT_MS);
    spill_code_t code = append_number(fixture, fixture->array, 1, "op", &result);
    spill_deadline_end(outer);
    assert_true(code == SPILL_TIMED_OUT || code == SPILL_UNKNOWN);
    assert_int_equal(count_elements(fixture), 0);
    proxy_hold(fixture->proxy, PROXY_HOLD_NOTHING, 0);
    outer = spill_deadline_begin(LONG_MS);
    assert_int_equal(append_number(fixture, fixture->array, 1, "op", &result), SPILL_OK);
    spill_deadline_end(outer);
    assert_int_equal(count_elements(fixture), 1);
}

typedef spill_code_t (*change_fn)(fixture_t *fixture, spill_array_t *array);

static spill_code_t remove_in_page(fixture_t *fixture, spill_array_t *array)
{
    return spill_array_remove(array, &fixture->owner, 1, NULL);
}

static spill_code_t trim_pages(fixture_t *fixture, spill_array_t *array)
{
    return spill_array_trim(array, &fixture->owner, 5, NULL);
}

/*
 * Hold the requests, and then the answers, from the first, the second, ... request of a change on.
 * If the code is "timed out", nothing is changed. The same call again makes the change.
 */
static void steps_that_stall(void **state)
{
    static const struct {
        change_fn change;
        int64_t left;
    } changes[] = {{remove_in_page, 9}, {trim_pages, 5}};
    fixture_t *fixture = *state;
    for (int i = 0; i < 4; i++) {
        change_fn change = changes[i / 2].change;
        proxy_hold_t hold = i % 2 == 0 ? PROXY_HOLD_REQUESTS : PROXY_HOLD_REPLIES;
        spill_code_t code = SPILL_UNKNOWN;
        int unknown = 0;
        for (int64_t pass = 0; code != SPILL_OK; pass++) {
            spill_verify_summary_t summary;
            spill_array_drop_owner(fixture->seen, &fixture->owner, NULL);
            fill(fixture, 10);
            proxy_hold(fixture->proxy, hold, pass);
            spill_deadline_t outer = spill_deadline_begin(SHORT_MS * (pass + 1));
            code = change(fixture, fixture->array);
            spill_deadline_end(outer);
            unknown += code == SPILL_UNKNOWN;
            if (code == SPILL_TIMED_OUT)
                assert_int_equal(count_elements(fixture), 10);
            else if (code != SPILL_OK)
                assert_int_equal(code, SPILL_UNKNOWN);
            proxy_hold(fixture->proxy, PROXY_HOLD_NOTHING, 0);
            spill_code_t again = code == SPILL_OK ? SPILL_OK : change(fixture, fixture->seen);
            if (again != SPILL_OK) /* it was made late */
                assert_int_equal(again, SPILL_NOT_FOUND);
            assert_int_equal(count_elements(fixture), changes[i / 2].left);
            assert_int_equal(
                spill_array_verify(fixture->seen, &fixture->owner, NULL, NULL, &summary, NULL),
                SPILL_OK);
            assert_int_equal(summary.findings, 0);
        }
        assert_true(unknown > 0);
    }
}

int main(void)
{
    server_uri();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_request_that_stalls_is_unknown, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(an_answer_that_stalls_is_unknown, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(a_read_that_stalls_is_timed_out, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(a_server_that_says_nothing, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(steps_that_stall, open_fixture, close_fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
