/*
 * Deadlines on an embedded store with an engine that stalls. Each call ends in time, and its code
 * says whether it may have changed anything.
 */
#include "store/embedded/embedded.h"
#include "store/embedded/kv_rocksdb.h"
#include "support/definition.h"
#include "support/embedded.h"

#include <spillway/deadline.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <stdlib.h>

/* The tests do not depend on durations: a stalled engine continues when the test says so. */
enum { SHORT_MS = 20, LONG_MS = 600000 };

/* ---- an engine that stalls ------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int64_t writes_left = INT64_MAX; /* writes until the engine stalls */
static int64_t reads_after; /* reads stall after this number of writes; 0: not by that */
static bool reads_stall;
static int stalled;
static const spill_kv_ops_t *engine;

static void await_release(bool is_write)
{
    pthread_mutex_lock(&lock);
    bool stalls = is_write ? writes_left == 0 : reads_stall;
    writes_left -= is_write && writes_left > 0 && writes_left != INT64_MAX;
    if (is_write && reads_after > 0 && --reads_after == 0)
        reads_stall = true;
    if (stalls) {
        stalled++;
        pthread_cond_broadcast(&changed);
        while (is_write ? writes_left == 0 : reads_stall)
            pthread_cond_wait(&changed, &lock);
        stalled--;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
}

static spill_code_t stalling_write(spill_kv_t *kv, const spill_batch_t *batch, bool sync,
                                   spill_error_t *error)
{
    await_release(true);
    return engine->write(kv, batch, sync, error);
}

static spill_code_t stalling_get(spill_kv_t *kv, const uint8_t *key, size_t key_bytes,
                                 spill_buffer_t *value, bool *found, spill_error_t *error)
{
    await_release(false);
    return engine->get(kv, key, key_bytes, value, found, error);
}

/* Stall at write number `at` from now on, or at every read. */
static void stall(int64_t at, bool reads)
{
    pthread_mutex_lock(&lock);
    writes_left = at;
    reads_stall = reads;
    pthread_mutex_unlock(&lock);
}

/* Stall at every read after that number of writes. */
static void stall_reads_after(int64_t writes)
{
    pthread_mutex_lock(&lock);
    reads_after = writes;
    pthread_mutex_unlock(&lock);
}

/* Let the engine continue, and wait until no call is stalled. */
static void go_on(void)
{
    pthread_mutex_lock(&lock);
    writes_left = INT64_MAX;
    reads_after = 0;
    reads_stall = false;
    pthread_cond_broadcast(&changed);
    while (stalled > 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void await_stalled(void)
{
    pthread_mutex_lock(&lock);
    while (stalled == 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* ---- fixture --------------------------------------------------------------------------------- */

typedef struct fixture {
    spill_store_t *store;
    spill_array_t *array;
    bson_t storage;
    spill_value_t owner;
} fixture_t;

static int open_fixture(void **state)
{
    static spill_kv_ops_t stalling;
    fixture_t *fixture = aligned_alloc(_Alignof(fixture_t), sizeof *fixture);
    spill_store_options_t options;
    spill_kv_t *kv = spill_kv_memory_new();
    memset(fixture, 0, sizeof *fixture);
    engine = kv->ops;
    stalling = *engine;
    stalling.write = stalling_write;
    stalling.get = stalling_get;
    kv->ops = &stalling;
    spill_store_options_init(&options);
    options.cache_bytes = 0; /* every read asks the engine */
    assert_int_equal(spill_embedded_open_kv(kv, "stalling:", &options, &fixture->store, NULL),
                     SPILL_OK);
    fixture->array = embedded_array(fixture->store, "feed", 4, 2);
    bson_init(&fixture->storage);
    fixture->owner = spill_value_from_utf8(&fixture->storage, "ada");
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    fixture_t *fixture = *state;
    go_on();
    spill_array_close(fixture->array);
    assert_int_equal(spill_store_close(fixture->store, NULL), SPILL_OK);
    bson_destroy(&fixture->storage);
    free(fixture);
    return 0;
}

static spill_code_t append_number(fixture_t *fixture, int64_t number, const char *id,
                                  spill_append_result_t *result, spill_error_t *error)
{
    spill_value_t value = {(const uint8_t *)&number, sizeof number, BSON_TYPE_INT64};
    spill_op_t op = {.id = id, .id_bytes = id ? strlen(id) : 0};
    spill_append_options_t options;
    spill_append_options_init(&options);
    options.op = id ? &op : NULL;
    return spill_array_append(fixture->array, &fixture->owner, &value, 1, &options, result, error);
}

/* Append the numbers [from, end) without a deadline. */
static void fill(fixture_t *fixture, int64_t from, int64_t end)
{
    for (int64_t i = from; i < end; i++)
        assert_int_equal(append_number(fixture, i, NULL, NULL, NULL), SPILL_OK);
}

static int64_t count_elements(fixture_t *fixture)
{
    spill_count_t count;
    assert_int_equal(spill_array_count(fixture->array, &fixture->owner, &count, NULL), SPILL_OK);
    return count.count;
}

static void assert_sound(fixture_t *fixture)
{
    spill_verify_summary_t summary;
    assert_int_equal(
        spill_array_verify(fixture->array, &fixture->owner, NULL, NULL, &summary, NULL), SPILL_OK);
    assert_int_equal(summary.findings, 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static bool note_owner(void *context, const spill_value_t *owner)
{
    (void)owner;
    ++*(int *)context;
    return true;
}

static void calls_in_time_are_as_without_a_deadline(void **state)
{
    fixture_t *fixture = *state;
    spill_array_t *again;
    spill_append_result_t result;
    spill_slice_t *slice;
    int owners = 0;
    spill_deadline_t outer = spill_deadline_begin(LONG_MS);
    for (int64_t i = 0; i < 20; i++) {
        assert_int_equal(append_number(fixture, i, NULL, &result, NULL), SPILL_OK);
        assert_int_equal(result.first, i);
        assert_int_equal(result.version, SPILL_APPEND_RESULT_VERSION);
    }
    assert_int_equal(spill_array_remove(fixture->array, &fixture->owner, 3, NULL), SPILL_OK);
    assert_int_equal(spill_array_remove(fixture->array, &fixture->owner, 3, NULL), SPILL_NOT_FOUND);
    assert_int_equal(spill_array_edit(fixture->array, &fixture->owner, 19, &fixture->owner, NULL),
                     SPILL_OK);
    assert_int_equal(spill_array_trim(fixture->array, &fixture->owner, 2, NULL), SPILL_OK);
    assert_int_equal(count_elements(fixture), 17);
    assert_int_equal(spill_array_read(fixture->array, &fixture->owner, NULL, &slice, NULL),
                     SPILL_OK);
    assert_int_equal(slice->count, 17);
    assert_true(spill_value_equal(&slice->elements[0].value, &fixture->owner));
    spill_slice_free(slice);
    assert_int_equal(spill_array_owners(fixture->array, note_owner, &owners, NULL), SPILL_OK);
    assert_int_equal(owners, 1);
    assert_sound(fixture);
    assert_int_equal(spill_array_open(fixture->store, "feed", &again, NULL), SPILL_OK);
    spill_array_close(again);
    assert_int_equal(spill_array_open(fixture->store, "other", &again, NULL), SPILL_NOT_FOUND);
    assert_int_equal(spill_array_drop_owner(fixture->array, &fixture->owner, NULL), SPILL_OK);
    spill_deadline_end(outer);
    assert_int_equal(count_elements(fixture), 0);
}

static void no_time_changes_nothing(void **state)
{
    fixture_t *fixture = *state;
    spill_error_t error;
    spill_slice_t *slice;
    spill_array_t *again;
    int owners = 0;
    fill(fixture, 0, 10);
    spill_deadline_t outer = spill_deadline_begin(0);
    assert_int_equal(append_number(fixture, 10, NULL, NULL, &error), SPILL_TIMED_OUT);
    assert_true(error.retryable);
    assert_non_null(strstr(error.message, "\"ada\""));
    assert_int_equal(spill_array_remove(fixture->array, &fixture->owner, 0, NULL), SPILL_TIMED_OUT);
    assert_int_equal(spill_array_trim(fixture->array, &fixture->owner, 5, NULL), SPILL_TIMED_OUT);
    assert_int_equal(spill_array_read(fixture->array, &fixture->owner, NULL, &slice, NULL),
                     SPILL_TIMED_OUT);
    assert_null(slice);
    assert_int_equal(spill_array_owners(fixture->array, note_owner, &owners, NULL),
                     SPILL_TIMED_OUT);
    assert_int_equal(spill_array_open(fixture->store, "feed", &again, NULL), SPILL_TIMED_OUT);
    spill_deadline_end(outer);
    assert_int_equal(count_elements(fixture), 10);
    fill(fixture, 10, 11);
}

static void an_append_that_stalls_in_the_engine_is_unknown(void **state)
{
    fixture_t *fixture = *state;
    spill_append_result_t result;
    spill_error_t error;
    spill_code_t code = SPILL_TIMED_OUT;
    stall(0, false);
    for (int64_t ms = SHORT_MS; code == SPILL_TIMED_OUT; ms *= 2) { /* until the engine has it */
        spill_deadline_t outer = spill_deadline_begin(ms);
        code = append_number(fixture, 7, "op", &result, &error);
        spill_deadline_end(outer);
    }
    assert_int_equal(code, SPILL_UNKNOWN);
    assert_int_equal(result.count, 0);
    assert_true(error.retryable);
    go_on();
    assert_int_equal(append_number(fixture, 7, "op", &result, NULL), SPILL_OK);
    assert_true(result.repeated);
    assert_int_equal(count_elements(fixture), 1);
}

static void *append_slowly(void *context)
{
    assert_int_equal(append_number(context, 100, NULL, NULL, NULL), SPILL_OK);
    return NULL;
}

/* Another thread's write stalls, and the call waits behind it: it is given up before it begins. */
static void an_append_that_waits_for_the_engine_is_not_made(void **state)
{
    fixture_t *fixture = *state;
    pthread_t thread;
    stall(0, false);
    assert_int_equal(pthread_create(&thread, NULL, append_slowly, fixture), 0);
    await_stalled();
    spill_deadline_t outer = spill_deadline_begin(SHORT_MS);
    assert_int_equal(append_number(fixture, 7, NULL, NULL, NULL), SPILL_TIMED_OUT);
    spill_deadline_end(outer);
    go_on();
    pthread_join(thread, NULL);
    fill(fixture, 8, 9); /* behind the step that was given up */
    assert_int_equal(count_elements(fixture), 2);
}

static void a_read_that_stalls_is_timed_out(void **state)
{
    fixture_t *fixture = *state;
    spill_slice_t *slice;
    spill_count_t count;
    fill(fixture, 0, 10);
    stall(INT64_MAX, true);
    spill_deadline_t outer = spill_deadline_begin(SHORT_MS);
    assert_int_equal(spill_array_read(fixture->array, &fixture->owner, NULL, &slice, NULL),
                     SPILL_TIMED_OUT);
    assert_null(slice);
    assert_int_equal(spill_array_count(fixture->array, &fixture->owner, &count, NULL),
                     SPILL_TIMED_OUT);
    assert_int_equal(count.count, 0);
    spill_deadline_end(outer);
    go_on();
    assert_int_equal(count_elements(fixture), 10);
}

typedef spill_code_t (*change_fn)(fixture_t *fixture);

static spill_code_t remove_in_page(fixture_t *fixture)
{
    return spill_array_remove(fixture->array, &fixture->owner, 1, NULL);
}

static spill_code_t trim_pages(fixture_t *fixture)
{
    return spill_array_trim(fixture->array, &fixture->owner, 5, NULL);
}

static spill_code_t drop(fixture_t *fixture)
{
    return spill_array_drop_owner(fixture->array, &fixture->owner, NULL);
}

typedef struct slow_change {
    change_fn change;
    int64_t left;
} slow_change_t;

/* Finish what a client may have left. */
static void repair(fixture_t *fixture)
{
    spill_repair_summary_t summary;
    assert_int_equal(spill_array_repair(fixture->array, NULL, false, NULL, NULL, &summary, NULL),
                     SPILL_OK);
}

/* Stall each step in turn, until the change is in time. Return how many times it was UNKNOWN. */
static int64_t stall_each_step(fixture_t *fixture, const slow_change_t *slow, bool reads,
                               int64_t deadline_ms)
{
    spill_code_t code = SPILL_UNKNOWN;
    int64_t unknown = 0;
    for (int64_t at = 0; code != SPILL_OK; at++) {
        spill_array_drop_owner(fixture->array, &fixture->owner, NULL);
        fill(fixture, 0, 10);
        if (reads)
            stall_reads_after(at + 1);
        else
            stall(at, false);
        spill_deadline_t outer = spill_deadline_begin(deadline_ms);
        code = slow->change(fixture);
        spill_deadline_end(outer);
        go_on();
        unknown += code == SPILL_UNKNOWN;
        if (code == SPILL_TIMED_OUT)
            repair(fixture);
        if (code == SPILL_TIMED_OUT)
            assert_int_equal(count_elements(fixture), 10);
        else if (code != SPILL_OK)
            assert_int_equal(code, SPILL_UNKNOWN);
        spill_code_t again = code == SPILL_OK ? SPILL_OK : slow->change(fixture);
        if (again != SPILL_OK) /* it was made late */
            assert_int_equal(again, SPILL_NOT_FOUND);
        assert_int_equal(count_elements(fixture), slow->left);
        assert_sound(fixture);
    }
    return unknown;
}

/*
 * Stall at each write of a change of several steps, or at the first read after it. If the code is
 * "timed out", nothing is changed, nor later. The same call again makes the change, and the array
 * is sound. On a busy machine a short deadline may pass before the first step has begun.
 */
static void steps_that_stall(void **state)
{
    static const slow_change_t changes[] = {{remove_in_page, 9}, {trim_pages, 5}, {drop, 0}};
    for (size_t i = 0; i < 2 * (sizeof changes / sizeof *changes); i++) {
        int64_t deadline_ms = SHORT_MS;
        while (stall_each_step(*state, &changes[i / 2], i % 2 == 1, deadline_ms) == 0) {
            deadline_ms *= 4;
            assert_true(deadline_ms < LONG_MS);
        }
    }
}

/* Keep oldest: a drop closes the tail first, and then any client may finish it. */
static void a_drop_of_the_oldest_that_stalls(void **state)
{
    static const slow_change_t change = {drop, 0};
    fixture_t *fixture = *state;
    spill_array_t *newest = fixture->array;
    fixture->array = definition_open_array(fixture->store, "feed", "other", 4, 2);
    stall_each_step(fixture, &change, false, SHORT_MS);
    stall_each_step(fixture, &change, true, SHORT_MS);
    spill_array_close(fixture->array);
    fixture->array = newest;
}

/* The earlier of two deadlines holds; the end of the inner one restores the outer one. */
static void deadlines_nest(void **state)
{
    fixture_t *fixture = *state;
    spill_deadline_t none = spill_deadline_begin(LONG_MS);
    spill_deadline_t outer = spill_deadline_begin(0);
    spill_deadline_t inner = spill_deadline_begin(LONG_MS);
    assert_int_equal(append_number(fixture, 1, NULL, NULL, NULL), SPILL_TIMED_OUT);
    spill_deadline_end(inner);
    assert_int_equal(append_number(fixture, 1, NULL, NULL, NULL), SPILL_TIMED_OUT);
    spill_deadline_end(outer);
    assert_int_equal(append_number(fixture, 1, NULL, NULL, NULL), SPILL_OK);
    spill_deadline_t same = spill_deadline_begin(-1);
    assert_int_equal(append_number(fixture, 2, NULL, NULL, NULL), SPILL_OK);
    spill_deadline_end(same);
    spill_deadline_end(none);
    assert_int_equal(count_elements(fixture), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_in_time_are_as_without_a_deadline, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(no_time_changes_nothing, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(an_append_that_stalls_in_the_engine_is_unknown,
                                        open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(an_append_that_waits_for_the_engine_is_not_made,
                                        open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(a_read_that_stalls_is_timed_out, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(steps_that_stall, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(a_drop_of_the_oldest_that_stalls, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(deadlines_nest, open_fixture, close_fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
