#include "appenders.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS_MAX = 16, SHARED_OWNER = 0 };

typedef struct race {
    const race_settings_t *settings;
    spill_array_t *array;
    atomic_llong shared; /* acknowledged appends to the shared owner */
    atomic_llong retries;
} race_t;

typedef struct worker {
    race_t *race;
    int number;
    const char *problem;
    char message[SPILL_ERROR_MESSAGE_SIZE + 32];
} worker_t;

static spill_value_t owner_value(bson_t *storage, int owner)
{
    char name[32];
    snprintf(name, sizeof name, "owner-%d", owner);
    return spill_value_from_utf8(storage, name);
}

/* An element names the thread that appended it and the count of that thread's appends. */
static int64_t element_label(int thread, int number)
{
    return (int64_t)thread * 1000000 + number;
}

/* Append with an operation id, and retry until the append succeeds. */
static spill_code_t append(race_t *race, int thread, int owner, int number, spill_error_t *error)
{
    char id[32];
    bson_t names = BSON_INITIALIZER;
    bson_t numbers = BSON_INITIALIZER;
    spill_value_t name = owner_value(&names, owner);
    spill_value_t element = spill_value_from_int64(&numbers, element_label(thread, number));
    spill_append_options_t options;
    spill_append_result_t result;
    spill_op_t op = {.id = id};
    op.id_bytes = (size_t)snprintf(id, sizeof id, "%d/%d/%d", thread, owner, number);
    spill_append_options_init(&options);
    options.op = &op;
    spill_code_t code = spill_array_op_base(race->array, &name, &op.base, error);
    for (int tries = 0; code == SPILL_OK && tries < 1000; tries++) {
        code = spill_array_append(race->array, &name, &element, 1, &options, &result, error);
        if (code != SPILL_NO_SPACE && code != SPILL_UNKNOWN && code != SPILL_CONFLICT)
            break;
        atomic_fetch_add(&race->retries, 1);
        code = SPILL_OK;
    }
    bson_destroy(&names);
    bson_destroy(&numbers);
    return code;
}

/* A page has no gaps: its numbers descend by one from the newest. */
static spill_code_t read_newest(race_t *race, int owner, const char **problem, spill_error_t *error)
{
    bson_t names = BSON_INITIALIZER;
    spill_value_t name = owner_value(&names, owner);
    spill_read_options_t options;
    spill_slice_t *slice = NULL;
    spill_read_options_init(&options);
    spill_code_t code = spill_array_read(race->array, &name, &options, &slice, error);
    for (size_t i = 1; code == SPILL_OK && i < slice->count; i++)
        if (slice->elements[i].seq != slice->elements[i - 1].seq - 1)
            *problem = "a page has a gap";
    spill_slice_free(slice);
    bson_destroy(&names);
    return code;
}

static spill_code_t run_one_operation(worker_t *worker, int number, spill_error_t *error)
{
    race_t *race = worker->race;
    spill_code_t code = append(race, worker->number, SHARED_OWNER, number, error);
    if (code != SPILL_OK)
        return code;
    atomic_fetch_add(&race->shared, 1);
    code = append(race, worker->number, 1 + worker->number, number, error);
    if (code == SPILL_OK && number % 5 == 0)
        code = read_newest(race, SHARED_OWNER, &worker->problem, error);
    if (code == SPILL_OK && number % 7 == 0 && race->settings->disturb)
        race->settings->disturb(race->settings->context);
    return code;
}

static void *run_operations(void *argument)
{
    worker_t *worker = argument;
    spill_error_t error = {.message = ""};
    for (int i = 0; i < worker->race->settings->appends && !worker->problem; i++) {
        spill_code_t code = run_one_operation(worker, i, &error);
        if (code == SPILL_OK)
            continue;
        snprintf(worker->message, sizeof worker->message, "%s: %s", spill_code_name(code),
                 error.message);
        worker->problem = worker->message;
    }
    return NULL;
}

/* ---- after the race -------------------------------------------------------------------------- */

static spill_slice_t *read_all(race_t *race, int owner)
{
    bson_t names = BSON_INITIALIZER;
    spill_value_t name = owner_value(&names, owner);
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_read_options_init(&options);
    options.order = SPILL_OLDEST_FIRST;
    options.limit = INT64_MAX;
    assert_int_equal(spill_array_read(race->array, &name, &options, &slice, NULL), SPILL_OK);
    bson_destroy(&names);
    return slice;
}

/* Each thread's elements exist once, in the thread's order. */
static void check_owner(race_t *race, int owner, int64_t expected)
{
    int next[THREADS_MAX] = {0};
    spill_slice_t *slice = read_all(race, owner);
    assert_int_equal(slice->count, expected);
    for (size_t i = 0; i < slice->count; i++) {
        int64_t found;
        assert_int_equal(slice->elements[i].seq, i);
        memcpy(&found, slice->elements[i].value.data, sizeof found);
        found = (int64_t)BSON_UINT64_FROM_LE((uint64_t)found);
        int thread = (int)(found / 1000000);
        assert_in_range(thread, 0, THREADS_MAX - 1);
        assert_int_equal(found, element_label(thread, next[thread]++));
    }
    spill_slice_free(slice);
}

static void print_finding(void *context, const spill_finding_t *finding)
{
    (void)context;
    print_message("page %d, I%d: %s\n", (int)finding->page, finding->invariant, finding->text);
}

static void check_all(race_t *race)
{
    int threads = race->settings->threads;
    spill_verify_summary_t summary;
    check_owner(race, SHARED_OWNER, atomic_load(&race->shared));
    for (int i = 0; i < threads; i++)
        check_owner(race, 1 + i, race->settings->appends);
    assert_int_equal(spill_array_verify(race->array, NULL, print_finding, NULL, &summary, NULL),
                     SPILL_OK);
    assert_int_equal(summary.findings, 0);
    assert_int_equal(summary.owners, 1 + threads);
    assert_int_equal(summary.elements,
                     atomic_load(&race->shared) + (int64_t)threads * race->settings->appends);
}

void run_race(spill_store_t *store, const race_settings_t *settings)
{
    spill_definition_t definition;
    spill_error_t error;
    pthread_t threads[THREADS_MAX];
    worker_t workers[THREADS_MAX];
    race_t race = {.settings = settings};
    assert_in_range(settings->threads, 1, THREADS_MAX);
    spill_definition_init(&definition, settings->keep == SPILL_KEEP_NEWEST ? "newest" : "oldest");
    definition.keep = settings->keep;
    definition.bounds.threshold = 6;
    definition.bounds.page_capacity = 4;
    definition.op_window = 1000;
    definition.bounds.head_bytes_max = definition.bounds.page_bytes_max = 1 << 20;
    spill_code_t code = spill_store_define(store, &definition, &error);
    if (code != SPILL_OK)
        fail_msg("%s", error.message);
    assert_int_equal(spill_array_open(store, definition.name, &race.array, &error), SPILL_OK);
    for (int i = 0; i < settings->threads; i++) {
        workers[i] = (worker_t){.race = &race, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_operations, &workers[i]), 0);
    }
    for (int i = 0; i < settings->threads; i++) {
        pthread_join(threads[i], NULL);
        if (workers[i].problem)
            fail_msg("thread %d: %s", i, workers[i].problem);
    }
    check_all(&race);
    spill_array_close(race.array);
}
