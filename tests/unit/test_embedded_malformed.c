/*
 * Records of an embedded store with arbitrary bytes. For each layout, one record of each kind is
 * replaced: by each of its beginnings, by copies with one byte set to 0, 1, 0x7f or 0xff (with a
 * sanitizer to one of these), and by nothing. The same happens to its key. Then every operation
 * runs. Each must return the data or an error that names a place: exercise.c checks that, and the
 * sanitizers check the rest.
 */
#include "support/effort.h"
#include "support/exercise.h"

#include "store/embedded/embedded_codec.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A case that takes longer hangs, and the alarm ends it. Sound cases take a millisecond. */
enum { SECONDS_MAX = 60 };

/* Store operations of one group on one small store. */
enum { CALLS_MAX = 200000 };

/* ---- which records --------------------------------------------------------------------------- */

static bool is_catalog(const exercise_record_t *record)
{
    return record->key_bytes > 5 && memcmp(record->key, "\0\0\0\0", 4) == 0 &&
           record->key[4] == SPILL_SYSTEM_CATALOG;
}

/* ---- damage ---------------------------------------------------------------------------------- */

typedef struct damaging {
    const exercise_store_t *store;
    const exercise_record_t *record;
    int64_t cases;
    int64_t opened;
    int64_t corrupt;
    int64_t most_calls;
    bool key; /* the key is damaged, not the value */
} damaging_t;

static void show_case(const damaging_t *damaging, const uint8_t *bytes, size_t size)
{
    fprintf(stderr, "%s, %s of record ", damaging->store->layout, damaging->key ? "key" : "value");
    for (size_t i = 0; i < damaging->record->key_bytes; i++)
        fprintf(stderr, "%02x", damaging->record->key[i]);
    fprintf(stderr, " as ");
    for (size_t i = 0; i < size; i++)
        fprintf(stderr, "%02x", bytes[i]);
    fprintf(stderr, "\n");
}

static const damaging_t *now_damaging;
static const uint8_t *now_bytes;
static size_t now_size;

/* cmocka reports a signal without the case, so print the case first. */
static void show_last_case(int number)
{
    if (now_damaging)
        show_case(now_damaging, now_bytes, now_size);
    signal(number, SIG_DFL);
    raise(number);
}

static disk_t *damaged_disk(const damaging_t *damaging, const uint8_t *bytes, size_t size)
{
    const exercise_record_t *record = damaging->record;
    disk_t *disk = exercise_disk(damaging->store);
    if (damaging->key) {
        exercise_delete(disk, record->key, record->key_bytes);
        exercise_put(disk, bytes, size, record->value, record->value_bytes);
    } else {
        exercise_put(disk, record->key, record->key_bytes, bytes, size);
    }
    return disk;
}

static void try_bytes(damaging_t *damaging, const uint8_t *bytes, size_t size)
{
    int64_t unnoticed = 0;
    bool opened = false;
    now_damaging = damaging;
    now_bytes = bytes;
    now_size = size;
    alarm(SECONDS_MAX);
    for (int group = 0; group < EXERCISE_GROUPS; group++) {
        /* If no array opens, changes and repair have no data. */
        if (!opened && is_catalog(damaging->record) && group != EXERCISE_DROP &&
            group != EXERCISE_READ)
            continue;
        exercise_result_t result;
        disk_t *disk = damaged_disk(damaging, bytes, size);
        exercise_run(disk, (exercise_group_t)group, &result);
        disk_free(disk);
        if (result.calls > CALLS_MAX) {
            show_case(damaging, bytes, size);
            fail_msg("group %d took %lld store operations", group, (long long)result.calls);
        }
        if (result.calls > damaging->most_calls)
            damaging->most_calls = result.calls;
        unnoticed += result.unnoticed;
        opened = opened || result.opened;
        damaging->opened += result.opened;
        damaging->corrupt += result.corrupt;
    }
    alarm(0);
    damaging->cases++;
    if (unnoticed > 0) {
        show_case(damaging, bytes, size);
        fail_msg("operations failed with SPILL_CORRUPT, but verify has no findings");
    }
}

/* Replace one byte by a huge number: loops and sums must cope with it. */
static void try_huge(damaging_t *damaging, const uint8_t *right, size_t size)
{
    static const uint8_t huge[][9] = {
        {0xff, 0xff, 0xff, 0xff, 0x07},                         /* 2^31 - 1, a count of bytes */
        {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10},       /* 2^53, the highest number */
        {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f}, /* 2^59 - 1, as a moment */
    };
    static const size_t sizes[] = {5, 8, 9};
    uint8_t *bytes = bson_malloc(size + sizeof huge[0]);
    size_t step = (size_t)effort(1, 3, 3), stride = (size_t)effort(1, 1, 4);
    for (size_t at = 2; at < size; at += stride)
        for (size_t i = at / stride % step; i < 3; i += step) {
            memcpy(bytes, right, at);
            memcpy(bytes + at, huge[i], sizes[i]);
            memcpy(bytes + at + sizes[i], right + at + 1, size - at - 1);
            try_bytes(damaging, bytes, size + sizes[i] - 1);
        }
    bson_free(bytes);
}

static bool holds_numbers(const exercise_record_t *record)
{
    int kind = exercise_kind_of(record);
    return kind == SPILL_RECORD_HEAD || kind == SPILL_RECORD_PAGE || kind == SPILL_RECORD_OPS;
}

static void try_all(damaging_t *damaging, const uint8_t *right, size_t size)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0xff};
    uint8_t *bytes = bson_malloc(size + 1);
    size_t step = (size_t)effort(1, 2, 4), stride = (size_t)effort(1, 1, 4);
    for (size_t cut = damaging->key ? 1 : 0; cut < size; cut++) {
        memcpy(bytes, right, size);
        try_bytes(damaging, bytes, cut);
    }
    memcpy(bytes, right, size);
    for (size_t at = 0; at < size; at += stride) {
        for (size_t i = at / stride % step; i < sizeof values; i += step) {
            bytes[at] = values[i];
            if (values[i] != right[at])
                try_bytes(damaging, bytes, size);
        }
        bytes[at] = right[at];
    }
    bytes[size] = 0; /* one byte too many */
    try_bytes(damaging, bytes, size + 1);
    bson_free(bytes);
}

/* Replace an element by readable elements of types that the layout may not allow. */
static void try_other_types(damaging_t *damaging)
{
    static const struct {
        uint8_t bytes[9];
        size_t size;
    } elements[] = {
        {{BSON_TYPE_NULL}, 1},
        {{BSON_TYPE_BOOL, 1}, 2},
        {{BSON_TYPE_INT64, 1}, 9},
        {{BSON_TYPE_UTF8, 2, 0, 0, 0, 'a', 0}, 7},
        {{BSON_TYPE_ARRAY, 5, 0, 0, 0, 0}, 6},
        {{BSON_TYPE_DOCUMENT, 5, 0, 0, 0, 0}, 6},
    };
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        try_bytes(damaging, elements[i].bytes, elements[i].size);
}

static void damage_layout(int layout, bool keys)
{
    exercise_store_t store;
    exercise_store_make(&store, layout);
    damaging_t damaging = {.store = &store, .key = keys};
    for (size_t i = 0; i < store.count; i++) {
        const exercise_record_t *record = &store.records[i];
        if (!exercise_is_new_kind(&store, i) || (is_catalog(record) && layout > 0))
            continue;
        damaging.record = record;
        try_all(&damaging, keys ? record->key : record->value,
                keys ? record->key_bytes : record->value_bytes);
        if (!keys && holds_numbers(record))
            try_huge(&damaging, record->value, record->value_bytes);
        if (!keys && exercise_kind_of(record) == SPILL_RECORD_ELEMENT)
            try_other_types(&damaging);
    }
    /* The test proves nothing if no damage was detected, or if no store opened. */
    assert_true(damaging.opened > damaging.cases);
    assert_true(damaging.corrupt > damaging.cases / 10);
    printf("%s: %lld cases, at most %lld store operations\n", store.layout,
           (long long)damaging.cases, (long long)damaging.most_calls);
    exercise_store_release(&store);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void sound_stores_have_no_findings(void **state)
{
    (void)state;
    for (int layout = 0; layout < EXERCISE_LAYOUTS; layout++) {
        exercise_store_t store;
        exercise_result_t result;
        exercise_store_make(&store, layout);
        for (int group = 0; group < EXERCISE_GROUPS; group++) {
            disk_t *disk = exercise_disk(&store);
            exercise_run(disk, (exercise_group_t)group, &result);
            disk_free(disk);
            assert_true(result.opened);
            assert_int_equal(result.corrupt, 0);
            assert_int_equal(result.findings, 0);
            assert_true(result.failed < result.operations / 2);
        }
        exercise_store_release(&store);
    }
}

static void values_of_any_bytes(void **state)
{
    (void)state;
    for (int layout = 0; layout < EXERCISE_LAYOUTS; layout++)
        damage_layout(layout, false);
}

static void keys_of_any_bytes(void **state)
{
    (void)state;
    for (int layout = 0; layout < EXERCISE_LAYOUTS; layout++)
        damage_layout(layout, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_stores_have_no_findings),
        cmocka_unit_test(keys_of_any_bytes),
        cmocka_unit_test(values_of_any_bytes),
    };
    signal(SIGALRM, show_last_case);
    signal(SIGABRT, show_last_case);
    signal(SIGSEGV, show_last_case);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
