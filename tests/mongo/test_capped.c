/*
 * Many threads of two clients append to one capped head, and edit and remove its elements. Every
 * number must be assigned once. The remaining elements must be the newest ones, and each must be
 * the element that got its number when it was appended.
 */
#include "support/server.h"

#include <spillway/spillway.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { CLIENTS = 2, THREADS = 6, APPENDS = 80, CAP = 20, NUMBERS = 2 * THREADS * APPENDS };

typedef struct race {
    char *uri;
    spill_store_t *stores[CLIENTS];
    spill_array_t *arrays[CLIENTS];
    bson_t storage;
    spill_value_t owner;
    atomic_llong labels[NUMBERS]; /* of the element with each number; 0: not assigned yet */
    atomic_int given;
    atomic_int removed;
    atomic_int wrong;
} race_t;

typedef struct worker {
    race_t *race;
    int number;
} worker_t;

static int64_t label_of(int worker, int number, size_t element)
{
    return 1 + (int64_t)worker * 100000 + number * 10 + (int64_t)element;
}

static void record_label(race_t *race, int64_t seq, int64_t label)
{
    if (seq < 0 || seq >= NUMBERS || atomic_exchange(&race->labels[seq], label) != 0)
        atomic_fetch_add(&race->wrong, 1);
    atomic_fetch_add(&race->given, 1);
}

/* Append one or two elements with an operation id, and retry until it is acknowledged. */
static int64_t append(race_t *race, spill_array_t *array, int worker, int number)
{
    int64_t labels[2];
    spill_value_t elements[2];
    size_t count = number % 5 == 0 ? 2 : 1;
    char id[32];
    spill_op_t op = {.id = id};
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    for (size_t i = 0; i < count; i++) {
        labels[i] = label_of(worker, number, i);
        elements[i] = (spill_value_t){.data = (const uint8_t *)&labels[i],
                                      .size_bytes = sizeof labels[i],
                                      .type = BSON_TYPE_INT64};
    }
    op.id_bytes = (size_t)snprintf(id, sizeof id, "%d/%d", worker, number);
    spill_append_options_init(&options);
    options.op = &op;
    spill_code_t code = spill_array_op_base(array, &race->owner, &op.base, &error);
    if (code == SPILL_OK)
        code = spill_array_append(array, &race->owner, elements, count, &options, &result, &error);
    if (code != SPILL_OK) {
        print_error("append: %s: %s\n", spill_code_name(code), error.message);
        atomic_fetch_add(&race->wrong, 1);
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        record_label(race, result.first + (int64_t)i, labels[i]);
    return result.first;
}

/* Edit or remove an element that may have been dropped already. An edit writes the same value. */
static void change(race_t *race, spill_array_t *array, int worker, int number, int64_t seq)
{
    int64_t label = label_of(worker, number, 0);
    spill_value_t element = {
        .data = (const uint8_t *)&label, .size_bytes = sizeof label, .type = BSON_TYPE_INT64};
    spill_error_t error;
    bool removes = number % 8 == 3;
    spill_code_t code = removes ? spill_array_remove(array, &race->owner, seq, &error)
                                : spill_array_edit(array, &race->owner, seq, &element, &error);
    if (code != SPILL_OK && code != SPILL_NOT_FOUND) {
        print_error("change: %s: %s\n", spill_code_name(code), error.message);
        atomic_fetch_add(&race->wrong, 1);
    }
    if (removes && code == SPILL_OK)
        atomic_fetch_add(&race->removed, 1);
}

static void *append_and_change(void *argument)
{
    const worker_t *worker = argument;
    race_t *race = worker->race;
    spill_array_t *array = race->arrays[worker->number % CLIENTS];
    for (int i = 0; i < APPENDS; i++) {
        int64_t seq = append(race, array, worker->number, i);
        if (i % 4 == 3)
            change(race, array, worker->number, i, seq);
    }
    return NULL;
}

static void open_race(race_t *race, spill_array_order_t order)
{
    spill_definition_t definition;
    spill_error_t error;
    race->uri = server_new_database(NULL);
    spill_definition_init(&definition, "last");
    spill_definition_set_layout(&definition, SPILL_LAYOUT_CAPPED);
    definition.bounds.threshold = CAP;
    definition.op_window = THREADS * APPENDS; /* a thread may be delayed after it got its base */
    definition.order = order;
    for (int i = 0; i < CLIENTS; i++) {
        race->stores[i] = server_open(race->uri);
        if (i == 0)
            assert_int_equal(spill_store_define(race->stores[i], &definition, &error), SPILL_OK);
        assert_int_equal(spill_array_open(race->stores[i], "last", &race->arrays[i], &error),
                         SPILL_OK);
    }
    bson_init(&race->storage);
    race->owner = spill_value_from_utf8(&race->storage, "ada");
}

static void close_race(race_t *race)
{
    for (int i = 0; i < CLIENTS; i++) {
        spill_array_close(race->arrays[i]);
        server_close(race->stores[i]);
    }
    bson_destroy(&race->storage);
    server_drop(race->uri);
    bson_free(race->uri);
}

/* The remaining elements must be the newest ones, under their own numbers. */
static void check_rest(race_t *race)
{
    spill_read_options_t options;
    spill_verify_summary_t summary;
    spill_slice_t *slice;
    spill_count_t count;
    spill_error_t error;
    int64_t given = atomic_load(&race->given);
    spill_read_options_init(&options);
    options.limit = 2 * CAP;
    assert_int_equal(spill_array_read(race->arrays[0], &race->owner, &options, &slice, &error),
                     SPILL_OK);
    assert_int_equal(spill_array_count(race->arrays[0], &race->owner, &count, &error), SPILL_OK);
    assert_int_equal(count.next, given);
    assert_int_equal(count.count, slice->count);
    assert_in_range(slice->count, 1, CAP);
    for (size_t i = 0; i < slice->count; i++) {
        const spill_element_t *element = &slice->elements[i];
        int64_t label;
        assert_int_equal(element->value.size_bytes, sizeof label);
        memcpy(&label, element->value.data, sizeof label);
        assert_int_equal(label, atomic_load(&race->labels[element->seq]));
    }
    assert_true(slice->elements[0].seq >= given - 1 - atomic_load(&race->removed));
    for (int64_t seq = 0; seq < given; seq++)
        assert_true(atomic_load(&race->labels[seq]) != 0);
    spill_slice_free(slice);
    assert_int_equal(
        spill_array_verify(race->arrays[0], &race->owner, NULL, NULL, &summary, &error), SPILL_OK);
    assert_int_equal(summary.findings, 0);
}

static void run_race(spill_array_order_t order)
{
    static race_t race;
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    memset(&race, 0, sizeof race);
    open_race(&race, order);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){.race = &race, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, append_and_change, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&race.wrong), 0);
    check_rest(&race);
    close_race(&race);
}

static void many_threads(void **state)
{
    (void)state;
    run_race(SPILL_ARRAY_OLDEST_FIRST);
}

static void many_threads_at_front(void **state)
{
    (void)state;
    run_race(SPILL_ARRAY_NEWEST_FIRST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads),
        cmocka_unit_test(many_threads_at_front),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
