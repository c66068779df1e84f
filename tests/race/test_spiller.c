/*
 * Spills that appends leave to a thread of the store: a store in memory that defers them. A CUT
 * that is sent within spill_array_append is a spill that the append performed itself.
 */
#include "appenders.h"

#include "layout/spiller.h"
#include "store/store.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>

enum { THRESHOLD = 2, CAPACITY = 3, DUE = THRESHOLD + CAPACITY, QUEUE = 1024 };

static const spill_store_ops_t *memory;
static spill_store_ops_t deferring;
static _Thread_local bool appends;
static atomic_int own_cuts, other_cuts, warnings;
static atomic_bool broken;                               /* no page can be written */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: other threads' spills wait */

static spill_code_t call(spill_store_t *store, const spill_request_t *request,
                         spill_response_t *response, spill_error_t *error)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    if (request->kind == SPILL_REQUEST_PUT_PAGE && !appends) {
        pthread_mutex_lock(&gate);
        pthread_mutex_unlock(&gate);
    }
    if (request->kind == SPILL_REQUEST_PUT_PAGE && atomic_load(&broken)) {
        snprintf(error->message, sizeof error->message, "broken");
        return error->code = SPILL_IO;
    }
    pthread_mutex_lock(&one_at_a_time);
    spill_code_t code = memory->call(store, request, response, error);
    pthread_mutex_unlock(&one_at_a_time);
    if (request->kind == SPILL_REQUEST_CUT)
        atomic_fetch_add(appends ? &own_cuts : &other_cuts, 1);
    return code;
}

static void count_warning(void *context, spill_log_level_t level, const char *message)
{
    (void)context;
    (void)message;
    if (level == SPILL_LOG_WARNING)
        atomic_fetch_add(&warnings, 1);
}

static spill_store_t *open_store(void)
{
    spill_store_t *store;
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.log = count_warning;
    assert_int_equal(spill_store_open("memory:", &options, &store, NULL), SPILL_OK);
    memory = store->ops;
    deferring = *memory;
    deferring.defers_spills = true;
    deferring.call = call;
    store->ops = &deferring;
    store->defer_room = 0;
    atomic_store(&own_cuts, 0);
    atomic_store(&other_cuts, 0);
    atomic_store(&warnings, 0);
    atomic_store(&broken, false);
    return store;
}

/* spill_store_close ends the thread; the memory store frees itself by its own table. */
static void close_store(spill_store_t *store)
{
    spill_error_t error;
    deferring.close = memory->close;
    assert_int_equal(spill_store_close(store, &error), SPILL_OK);
}

static spill_array_t *open_array(spill_store_t *store)
{
    spill_definition_t definition;
    spill_array_t *array;
    spill_error_t error;
    spill_definition_init(&definition, "feed");
    definition.bounds.threshold = THRESHOLD;
    definition.bounds.page_capacity = CAPACITY;
    assert_int_equal(spill_store_define(store, &definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(store, "feed", &array, &error), SPILL_OK);
    return array;
}

static void append(spill_array_t *array, int owner, int count)
{
    bson_t names = BSON_INITIALIZER, numbers = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_int64(&names, owner);
    spill_value_t element = spill_value_from_int64(&numbers, 7);
    spill_append_result_t result;
    spill_error_t error;
    appends = true;
    for (int i = 0; i < count; i++)
        if (spill_array_append(array, &name, &element, 1, NULL, &result, &error) != SPILL_OK)
            fail_msg("%s", error.message);
    appends = false;
    bson_destroy(&names);
    bson_destroy(&numbers);
}

static spill_count_t count_of(spill_array_t *array, int owner)
{
    bson_t names = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_int64(&names, owner);
    spill_count_t count;
    assert_int_equal(spill_array_count(array, &name, &count, NULL), SPILL_OK);
    bson_destroy(&names);
    return count;
}

/* The append that makes a spill due returns; at the latest, closing the array has spilled. */
static void append_leaves_spill_to_thread(void **state)
{
    (void)state;
    spill_store_t *store = open_store();
    spill_array_t *array = open_array(store);
    append(array, 0, DUE);
    spill_array_close(array);
    assert_int_equal(atomic_load(&own_cuts), 0);
    assert_int_equal(atomic_load(&other_cuts), 1);
    array = open_array(store);
    assert_int_equal(count_of(array, 0).pages, 1);
    assert_int_equal(count_of(array, 0).head, THRESHOLD);
    spill_array_close(array);
    close_store(store);
}

/* A queue that is full leaves further spills to their appends. Nothing is lost. */
static void queue_is_bounded(void **state)
{
    (void)state;
    spill_store_t *store = open_store();
    spill_array_t *array = open_array(store);
    pthread_mutex_lock(&gate);
    for (int i = 0; i < QUEUE + 10; i++) /* the thread holds one, the queue the rest */
        append(array, i, DUE);
    pthread_mutex_unlock(&gate);
    assert_in_range(atomic_load(&own_cuts), 9, 10);
    spill_array_close(array);
    array = open_array(store);
    for (int i = 0; i < QUEUE + 10; i++)
        assert_int_equal(count_of(array, i).pages, 1);
    spill_array_close(array);
    close_store(store);
}

/* ---- the memory of the queue ----------------------------------------------------------------- */

enum { HEADS = 40, HEAD_BYTES = 512 * 1024, HEADS_BYTES_MAX = 8 * 1024 * 1024 };

static atomic_int due_calls, due_heads;

/* spill_due_fn: count what the queue has kept. */
static spill_code_t count_due(spill_owner_t *owner, spill_response_t *head, spill_error_t *error)
{
    (void)owner;
    (void)error;
    atomic_fetch_add(&due_heads, head->run.count > 0);
    atomic_fetch_add(&due_calls, 1);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return SPILL_OK;
}

/* Queue the spill of an owner, with a head of HEAD_BYTES. Has the queue kept the head? */
static bool defer_with_head(spill_array_t *array, int number)
{
    static uint8_t bytes[HEAD_BYTES];
    spill_store_t *store = array->store;
    bson_t names = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_int64(&names, number);
    spill_value_t element = {.data = bytes, .size_bytes = HEAD_BYTES, .type = BSON_TYPE_DOCUMENT};
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_owner_t owner = {0};
    head.shows_read = true;
    spill_run_add(&head.run, 0, &element);
    assert_int_equal(spill_owner_init(&owner, array, &name, NULL), SPILL_OK);
    assert_true(store->defer_spill(&owner, &head));
    bool kept = head.run.count == 0;
    spill_owner_release(&owner);
    spill_response_release(&head);
    bson_destroy(&names);
    return kept;
}

/* The queue keeps heads of 8 MiB; the other owners stay in the queue without their heads. */
static void heads_in_queue_are_bounded(void **state)
{
    (void)state;
    spill_store_t *store = open_store();
    int kept = 0;
    atomic_store(&due_calls, 0);
    atomic_store(&due_heads, 0);
    spill_spiller_attach(store, count_due);
    spill_array_t *array = open_array(store);
    pthread_mutex_lock(&gate);
    assert_true(defer_with_head(array, 0));
    while (atomic_load(&due_calls) == 0) /* the thread holds it, no longer in the queue */
        sched_yield();
    for (int i = 1; i <= HEADS; i++) {
        bool keeps = defer_with_head(array, i);
        assert_int_equal(keeps, i <= HEADS_BYTES_MAX / HEAD_BYTES);
        kept += keeps;
    }
    pthread_mutex_unlock(&gate);
    spill_array_close(array);
    assert_int_equal(atomic_load(&due_calls), 1 + HEADS);
    assert_int_equal(atomic_load(&due_heads), 1 + kept);
    close_store(store);
}

/* ---- other spills ---------------------------------------------------------------------------- */

/* The head has room for one element more when its spill is due. */
static void head_with_little_room_is_spilled_by_append(void **state)
{
    (void)state;
    spill_store_t *store = open_store();
    spill_array_t *array = open_array(store);
    store->defer_room = 2;
    append(array, 0, DUE);
    assert_int_equal(atomic_load(&own_cuts), 1);
    store->defer_room = 1;
    append(array, 1, DUE);
    spill_array_close(array);
    assert_int_equal(atomic_load(&own_cuts), 1);
    assert_int_equal(atomic_load(&other_cuts), 1);
    close_store(store);
}

/* A spill that fails is logged. An append to the full head performs it. */
static void failed_spill_is_made_by_append(void **state)
{
    (void)state;
    spill_store_t *store = open_store();
    spill_array_t *array = open_array(store);
    atomic_store(&broken, true);
    append(array, 0, DUE);
    append(array, 1, DUE);
    spill_array_close(array);
    assert_true(atomic_load(&warnings) >= 1);
    array = open_array(store);
    assert_int_equal(count_of(array, 0).pages, 0);
    atomic_store(&broken, false);
    append(array, 0, CAPACITY - 1); /* the spill leaves room for them, so no other one is due */
    append(array, 1, CAPACITY - 1);
    assert_int_equal(atomic_load(&own_cuts), 2);
    for (int i = 0; i < 2; i++) {
        spill_count_t count = count_of(array, i);
        assert_int_equal(count.pages, 1);
        assert_int_equal(count.count, DUE + CAPACITY - 1);
    }
    spill_array_close(array);
    close_store(store);
}

/* A late spill would leave a page without a head. */
static void drop_removes_spill_from_queue(void **state)
{
    (void)state;
    spill_store_t *store = open_store();
    spill_array_t *array = open_array(store), *other = open_array(store);
    spill_error_t error;
    bson_t names = BSON_INITIALIZER;
    spill_verify_summary_t summary;
    pthread_mutex_lock(&gate);
    append(array, 0, DUE); /* the thread waits at the gate with it */
    append(array, 1, DUE);
    spill_value_t name = spill_value_from_int64(&names, 1);
    assert_int_equal(spill_array_drop_owner(other, &name, &error), SPILL_OK);
    pthread_mutex_unlock(&gate);
    spill_array_close(array);
    assert_int_equal(atomic_load(&other_cuts), 1); /* of owner 0 */
    assert_int_equal(spill_array_verify(other, NULL, NULL, NULL, &summary, &error), SPILL_OK);
    assert_int_equal(summary.owners, 1);
    assert_int_equal(summary.findings, 0);
    spill_array_close(other);
    bson_destroy(&names);
    close_store(store);
}

static void race(void **state)
{
    (void)state;
    spill_store_t *store = open_store();
    race_settings_t settings = {.keep = SPILL_KEEP_NEWEST, .threads = 8, .appends = 100};
    run_race(store, &settings);
    assert_true(atomic_load(&own_cuts) + atomic_load(&other_cuts) > 0);
    close_store(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_leaves_spill_to_thread),
        cmocka_unit_test(queue_is_bounded),
        cmocka_unit_test(heads_in_queue_are_bounded),
        cmocka_unit_test(head_with_little_room_is_spilled_by_append),
        cmocka_unit_test(failed_spill_is_made_by_append),
        cmocka_unit_test(drop_removes_spill_from_queue),
        cmocka_unit_test(race),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
