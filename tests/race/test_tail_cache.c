/*
 * Writers append numbered elements to a few owners, and readers read the newest of them, on a store
 * whose cache has room for some of the owners only. A read must show every element that was
 * acknowledged before it began, and no gap.
 */
#include "store/embedded/embedded.h"
#include "support/effort.h"
#include "support/embedded.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>

enum { OWNERS = 6, WRITERS = 3, READERS = 4, PADDING = 300, CACHE_BYTES = 96 * 1024 };

typedef struct race {
    disk_t *disk;
    spill_array_t *array;
    int appends;                       /* of each writer */
    bool disturbed;                    /* some writes fail */
    atomic_llong acknowledged[OWNERS]; /* the end of what was acknowledged */
    atomic_int writing;
    atomic_int problems;
} race_t;

typedef struct worker {
    race_t *race;
    int number;
} worker_t;

static spill_value_t owner_value(bson_t *storage, int owner)
{
    char name[32];
    snprintf(name, sizeof name, "owner-%d", owner);
    return spill_value_from_utf8(storage, name);
}

static void raise_to(atomic_llong *value, int64_t least)
{
    long long now = atomic_load(value);
    while (now < least && !atomic_compare_exchange_weak(value, &now, least))
        ;
}

static void report(race_t *race, const char *what, int64_t number)
{
    print_error("%s: %lld\n", what, (long long)number);
    atomic_fetch_add(&race->problems, 1);
}

static void *write_elements(void *context)
{
    const worker_t *worker = context;
    race_t *race = worker->race;
    static const char padding[PADDING] = "";
    for (int i = 0; i < race->appends; i++) {
        int owner = (i + worker->number) % OWNERS;
        bson_t names = BSON_INITIALIZER;
        bson_t *document = BCON_NEW("n", BCON_INT32(i));
        BSON_APPEND_BINARY(document, "padding", BSON_SUBTYPE_BINARY, (const uint8_t *)padding,
                           (uint32_t)(i % PADDING));
        spill_value_t name = owner_value(&names, owner);
        spill_value_t element = {.data = bson_get_data(document),
                                 .size_bytes = document->len,
                                 .type = BSON_TYPE_DOCUMENT};
        spill_append_result_t result;
        spill_error_t error;
        if (race->disturbed && i % 20 == worker->number)
            disk_fail_writes(race->disk, 1, 1, SPILL_NO_SPACE);
        spill_code_t code =
            spill_array_append(race->array, &name, &element, 1, NULL, &result, &error);
        if (code == SPILL_OK)
            raise_to(&race->acknowledged[owner], result.first + 1);
        else if (!race->disturbed || code != SPILL_NO_SPACE)
            report(race, error.message, i);
        bson_destroy(document);
        bson_destroy(&names);
    }
    atomic_fetch_sub(&race->writing, 1);
    return NULL;
}

static void check_slice(race_t *race, const spill_slice_t *slice, int64_t end, int64_t limit)
{
    int64_t newest = slice->count > 0 ? slice->elements[0].seq : -1;
    if (newest + 1 < end)
        report(race, "an acknowledged element is missing", end - 1);
    if ((int64_t)slice->count != (newest + 1 < limit ? newest + 1 : limit))
        report(race, "the read is short", (int64_t)slice->count);
    for (size_t i = 1; i < slice->count; i++)
        if (slice->elements[i].seq != newest - (int64_t)i)
            report(race, "a gap", slice->elements[i].seq);
}

static void *read_newest(void *context)
{
    const worker_t *worker = context;
    race_t *race = worker->race;
    for (int i = 0; atomic_load(&race->writing) > 0; i++) {
        int owner = (i * 5 + worker->number) % OWNERS;
        bson_t names = BSON_INITIALIZER;
        spill_value_t name = owner_value(&names, owner);
        spill_read_options_t options;
        spill_slice_t *slice;
        spill_error_t error;
        spill_read_options_init(&options);
        options.limit = i % 7 == 0 ? 50 : 10;
        int64_t end = atomic_load(&race->acknowledged[owner]);
        if (spill_array_read(race->array, &name, &options, &slice, &error) != SPILL_OK) {
            report(race, error.message, i);
        } else {
            check_slice(race, slice, end, options.limit);
            if (slice->count > 0)
                raise_to(&race->acknowledged[owner], slice->elements[0].seq + 1); /* it was shown */
        }
        spill_slice_free(slice);
        bson_destroy(&names);
    }
    return NULL;
}

static void run_threads(race_t *race)
{
    pthread_t threads[WRITERS + READERS];
    worker_t workers[WRITERS + READERS];
    atomic_store(&race->writing, WRITERS);
    for (int i = 0; i < WRITERS + READERS; i++) {
        workers[i] = (worker_t){race, i};
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i < WRITERS ? write_elements : read_newest, &workers[i]),
                         0);
    }
    for (int i = 0; i < WRITERS + READERS; i++)
        pthread_join(threads[i], NULL);
}

static void race_on(const char *preset, spill_durability_t durability, bool disturbed)
{
    race_t race = {.disk = disk_new(), .disturbed = disturbed};
    race.appends = (int)effort(20000, 1500, 600);
    spill_store_options_t options;
    spill_definition_t definition;
    spill_store_t *store;
    spill_error_t error;
    spill_store_options_init(&options);
    options.durability = durability;
    options.cache_bytes = CACHE_BYTES;
    assert_int_equal(
        spill_embedded_open_kv(disk_open(race.disk), "memory", &options, &store, &error), SPILL_OK);
    assert_int_equal(spill_definition_preset(&definition, preset, "feed", &error), SPILL_OK);
    definition.bounds.threshold = 60;
    definition.bounds.page_capacity = 30;
    assert_int_equal(spill_store_define(store, &definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(store, "feed", &race.array, &error), SPILL_OK);
    run_threads(&race);
    assert_int_equal(race.problems, 0);
    spill_counters_t counters;
    spill_store_counters(store, &counters);
    assert_true(counters.tail_hits > 0);
    assert_true(counters.tail_misses > 0);
    assert_true(counters.tail_bytes <= CACHE_BYTES / 2);
    spill_array_close(race.array);
    embedded_close(store);
    disk_free(race.disk);
}

static void newest(void **state)
{
    (void)state;
    race_on("feed-recent", SPILL_DURABILITY_LOG, false);
    race_on("feed-recent", SPILL_DURABILITY_FSYNC, false);
}

static void oldest(void **state)
{
    (void)state;
    race_on("feed", SPILL_DURABILITY_LOG, false);
}

static void newest_while_writes_fail(void **state)
{
    (void)state;
    race_on("feed-recent", SPILL_DURABILITY_LOG, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newest),
        cmocka_unit_test(oldest),
        cmocka_unit_test(newest_while_writes_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
