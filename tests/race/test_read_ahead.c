/*
 * Writers append numbered elements to some owners. More threads than there are passes walk over all
 * owners, and read each one. A read must show every element that was acknowledged, or shown, before
 * it began. Verify finds nothing meanwhile.
 */
#include "store/embedded/embedded.h"
#include "support/effort.h"
#include "support/embedded.h"

#include <spillway/verify.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 40, WRITERS = 2, WALKERS = SPILL_PASSES_MAX + 1, THREADS = WRITERS + WALKERS };

typedef struct race {
    spill_array_t *array;
    int appends;                       /* of each writer */
    atomic_llong acknowledged[OWNERS]; /* the end of what was acknowledged or shown */
    atomic_int writing;
    atomic_int problems;
} race_t;

typedef struct worker {
    race_t *race;
    int number;
} worker_t;

static void report(race_t *race, const char *what, int64_t number)
{
    print_error("%s: %lld\n", what, (long long)number);
    atomic_fetch_add(&race->problems, 1);
}

static void raise_to(atomic_llong *value, int64_t least)
{
    long long now = atomic_load(value);
    while (now < least && !atomic_compare_exchange_weak(value, &now, least))
        ;
}

static void *append_elements(void *context)
{
    const worker_t *worker = context;
    race_t *race = worker->race;
    for (int i = 0; i < race->appends; i++) {
        int owner = (i * 7 + worker->number) % OWNERS;
        char name[32];
        bson_t storage = BSON_INITIALIZER, element = BSON_INITIALIZER;
        snprintf(name, sizeof name, "owner-%d", owner);
        BSON_APPEND_INT32(&element, "n", i);
        spill_value_t value = spill_value_from_document(&element);
        spill_value_t of = spill_value_from_utf8(&storage, name);
        spill_append_result_t result;
        spill_error_t error;
        if (spill_array_append(race->array, &of, &value, 1, NULL, &result, &error) == SPILL_OK)
            raise_to(&race->acknowledged[owner], result.first + 1);
        else
            report(race, error.message, i);
        bson_destroy(&element);
        bson_destroy(&storage);
    }
    atomic_fetch_sub(&race->writing, 1);
    return NULL;
}

/* Read the owner from its head, and count it. */
static bool read_owner(void *context, const spill_value_t *owner)
{
    race_t *race = context;
    int number = (int)strtol((const char *)owner->data + 4 + strlen("owner-"), NULL, 10);
    int64_t end = atomic_load(&race->acknowledged[number]);
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    spill_count_t count;
    spill_read_options_init(&options);
    options.limit = 5;
    if (spill_array_read(race->array, owner, &options, &slice, &error) != SPILL_OK) {
        report(race, error.message, number);
        return false;
    }
    int64_t shown = slice->count > 0 ? slice->elements[0].seq + 1 : 0;
    spill_slice_free(slice);
    if (shown < end)
        report(race, "an acknowledged element is missing", end - 1);
    raise_to(&race->acknowledged[number], shown);
    if (spill_array_count(race->array, owner, &count, &error) != SPILL_OK || count.count < shown)
        report(race, "the count is old", count.count);
    return true;
}

static void *walk(void *context)
{
    const worker_t *worker = context;
    race_t *race = worker->race;
    bool verifies = worker->number % 3 == 0;
    do {
        spill_verify_summary_t summary = {.findings = 0};
        spill_error_t error;
        spill_code_t code =
            verifies ? spill_array_verify(race->array, NULL, NULL, NULL, &summary, &error)
                     : spill_array_owners(race->array, read_owner, race, &error);
        if (code != SPILL_OK || summary.findings > 0)
            report(race, code != SPILL_OK ? error.message : "findings", summary.findings);
    } while (atomic_load(&race->writing) > 0);
    return NULL;
}

static void race_on(const char *preset)
{
    race_t race = {.appends = (int)effort(20000, 2000, 300)};
    disk_t *disk = disk_new();
    spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_LOG);
    spill_definition_t definition;
    spill_error_t error;
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    assert_int_equal(spill_definition_preset(&definition, preset, "feed", &error), SPILL_OK);
    definition.bounds.threshold = 10;
    definition.bounds.page_capacity = 10;
    assert_int_equal(spill_store_define(store, &definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(store, "feed", &race.array, &error), SPILL_OK);
    atomic_store(&race.writing, WRITERS);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){&race, i};
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < WRITERS ? append_elements : walk, &workers[i]),
            0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(race.problems, 0);
    spill_array_close(race.array);
    embedded_close(store);
    disk_free(disk);
}

static void newest(void **state)
{
    (void)state;
    race_on("feed-recent");
}

static void oldest(void **state)
{
    (void)state;
    race_on("feed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newest),
        cmocka_unit_test(oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
