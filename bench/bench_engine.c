/*
 * The embedded store compared with the bare engine. Each figure is the median of the ratios of
 * several rounds, in which the two sides take turns. docs/internals/benchmarks/embedded.md
 * describes the comparisons and their bars.
 *
 *   bench_engine [--quick] [--dir FOLDER] [--only NAME]
 */
#include "measure.h"
#include "raw.h"

#include <spillway/spillway.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOT_THREADS = 8, PAGE = 20, LOG_OWNERS = 8, NEAR = 100 };

/* Owners whose newest elements are cached, and caches large enough for them. */
enum { CACHED_OWNERS = 10000, CACHED_LENGTH = 40, LARGE_CACHE = 256 * 1024 * 1024 };

typedef struct bench {
    measure_report_t report;
    const char *parent;
    bool quick;
} bench_t;

/* ---- Spillway's side ------------------------------------------------------------------------- */

typedef struct ours {
    char *folder;
    spill_store_t *store;
    spill_array_t *array;
    int owners; /* a thread uses owner thread % owners; a single thread uses all in turn */
    uint64_t number;
    int64_t length; /* of owner 0 */
} ours_t;

/* `cache_bytes` 0: the default. */
static void ours_open_cached(ours_t *ours, const bench_t *bench, bool sync, int owners,
                             int64_t cache_bytes)
{
    spill_error_t error;
    spill_store_options_t options;
    spill_definition_t definition;
    spill_store_options_init(&options);
    options.durability = sync ? SPILL_DURABILITY_FSYNC : SPILL_DURABILITY_LOG;
    if (cache_bytes > 0)
        options.cache_bytes = cache_bytes;
    *ours = (ours_t){.folder = measure_folder(bench->parent), .owners = owners};
    measure_check(spill_store_open(ours->folder, &options, &ours->store, &error), &error);
    measure_check(spill_definition_preset(&definition, "feed-recent", "feed", &error), &error);
    measure_check(spill_store_define(ours->store, &definition, &error), &error);
    measure_check(spill_array_open(ours->store, "feed", &ours->array, &error), &error);
}

static void ours_open(ours_t *ours, const bench_t *bench, bool sync, int owners)
{
    ours_open_cached(ours, bench, sync, owners, 0);
}

static void ours_close(ours_t *ours)
{
    spill_error_t error;
    spill_array_close(ours->array);
    measure_check(spill_store_close(ours->store, &error), &error);
    measure_remove_folder(ours->folder);
}

static spill_value_t owner_value(bson_t *storage, int owner)
{
    char name[16];
    snprintf(name, sizeof name, "%08d", owner);
    return spill_value_from_utf8(storage, name);
}

static void ours_append(ours_t *ours, int owner, uint64_t number)
{
    uint8_t bytes[ELEMENT_BYTES];
    bson_t storage = BSON_INITIALIZER;
    spill_error_t error;
    spill_append_result_t result;
    measure_element(bytes, number);
    spill_value_t name = owner_value(&storage, owner);
    spill_value_t element = {
        .data = bytes, .size_bytes = ELEMENT_BYTES, .type = BSON_TYPE_DOCUMENT};
    measure_check(spill_array_append(ours->array, &name, &element, 1, NULL, &result, &error),
                  &error);
    bson_destroy(&storage);
}

static void ours_appends(void *context, int thread, int count)
{
    ours_t *ours = context;
    for (int i = 0; i < count; i++)
        ours_append(ours, thread % ours->owners, (uint64_t)i);
}

static void ours_appends_in_turn(void *context, int thread, int count)
{
    ours_t *ours = context;
    (void)thread;
    for (int i = 0; i < count; i++)
        ours_append(ours, i % ours->owners, ours->number++);
}

static void ours_fill(ours_t *ours, int owner, int count)
{
    enum { BATCH = 500 };
    static uint8_t bytes[BATCH][ELEMENT_BYTES];
    spill_value_t elements[BATCH];
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = owner_value(&storage, owner);
    for (int done = 0; done < count; done += BATCH) {
        spill_error_t error;
        spill_append_result_t result;
        for (int i = 0; i < BATCH; i++) {
            measure_element(bytes[i], (uint64_t)done + (uint64_t)i);
            elements[i] = (spill_value_t){
                .data = bytes[i], .size_bytes = ELEMENT_BYTES, .type = BSON_TYPE_DOCUMENT};
        }
        measure_check(
            spill_array_append(ours->array, &name, elements, BATCH, NULL, &result, &error), &error);
    }
    bson_destroy(&storage);
}

/* Read PAGE elements below `before`; INT64_MAX: the newest. */
static void ours_page(ours_t *ours, int owner, int64_t before)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = owner_value(&storage, owner);
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    spill_read_options_init(&options);
    options.limit = PAGE;
    options.before = before;
    measure_check(spill_array_read(ours->array, &name, &options, &slice, &error), &error);
    if (slice->count != PAGE)
        measure_stop("a page has %zu elements", slice->count);
    spill_slice_free(slice);
    bson_destroy(&storage);
}

/* Read a page of the newest head that is below the cached elements. */
static void ours_near_pages(void *context, int thread, int count)
{
    ours_t *ours = context;
    (void)thread;
    for (int i = 0; i < count; i++)
        ours_page(ours, 0, ours->length - NEAR);
}

static void ours_newest_pages(void *context, int thread, int count)
{
    (void)thread;
    for (int i = 0; i < count; i++)
        ours_page(context, 0, INT64_MAX);
}

/* ---- the bare engine ------------------------------------------------------------------------- */

typedef struct bare {
    char *folder;
    raw_t *raw;
    int owners;
    int next;
} bare_t;

static void bare_open(bare_t *bare, const bench_t *bench, bool sync, int owners)
{
    *bare = (bare_t){.folder = measure_folder(bench->parent), .owners = owners};
    bare->raw = raw_open(bare->folder, sync);
}

static void bare_close(bare_t *bare)
{
    raw_close(bare->raw);
    measure_remove_folder(bare->folder);
}

static void bare_appends(void *context, int thread, int count)
{
    bare_t *bare = context;
    for (int i = 0; i < count; i++)
        raw_append_locked(bare->raw, thread % bare->owners);
}

static void bare_appends_in_turn(void *context, int thread, int count)
{
    bare_t *bare = context;
    (void)thread;
    for (int i = 0; i < count; i++)
        raw_append(bare->raw, i % bare->owners);
}

static void bare_newest_pages(void *context, int thread, int count)
{
    bare_t *bare = context;
    (void)thread;
    for (int i = 0; i < count; i++)
        raw_newest_page(bare->raw, 0, PAGE);
}

/* ---- the figures ----------------------------------------------------------------------------- */

typedef struct appends {
    const char *name;
    const char *what;
    double bar;
    int threads;
    int count, quick_count; /* appends by one thread in one round */
    bool sync;
    int owners;
} appends_t;

static const appends_t appends[] = {
    {"append", "log durability, 1 thread; bare engine", 0.90, 1, 50000, 20000, false, LOG_OWNERS},
    {"durable", "fsync, 8 threads, 8 owners; bare engine", 0.90, HOT_THREADS, 1000, 200, true,
     HOT_THREADS},
    {"durable-hot", "fsync, 8 threads, one owner; bare engine, locked", 3.0, HOT_THREADS, 400, 100,
     true, 1},
};

static void bench_appends(bench_t *bench, const appends_t *kind, int rounds)
{
    if (!measure_wanted(&bench->report, kind->name))
        return;
    ours_t ours;
    bare_t bare;
    ours_open(&ours, bench, kind->sync, kind->owners);
    bare_open(&bare, bench, kind->sync, kind->owners);
    bool in_turn = kind->threads == 1;
    int count = bench->quick ? kind->quick_count : kind->count;
    measure_figure_t figure = {
        .name = kind->name,
        .what = kind->what,
        .bar = kind->bar,
        .threads = kind->threads,
        .rounds = rounds,
        .ours = {in_turn ? ours_appends_in_turn : ours_appends, &ours, count},
        .other = {in_turn ? bare_appends_in_turn : bare_appends, &bare, count}};
    measure_figure(&bench->report, &figure);
    ours_close(&ours);
    bare_close(&bare);
}

/* ---- sets ------------------------------------------------------------------------------------ */

enum { SET_LENGTH = 64000 };

typedef struct set {
    ours_t ours;
    bare_t bare;
    int64_t next, bare_next;
} set_t;

/* The elements are ids, which an array keeps once. */
static void ours_open_set(ours_t *ours, const bench_t *bench, bool sync)
{
    spill_error_t error;
    spill_definition_t definition;
    ours_open(ours, bench, sync, 1);
    spill_array_close(ours->array);
    measure_check(spill_definition_preset(&definition, "feed-recent", "feed", &error), &error);
    strcpy(definition.id_field, ".");
    definition.unique = true;
    measure_check(spill_store_define(ours->store, &definition, &error), &error);
    measure_check(spill_array_open(ours->store, "feed", &ours->array, &error), &error);
}

/* The i-th id, in an order that is not that of the keys. */
static int64_t set_id(int64_t i)
{
    return (int64_t)((uint64_t)i * UINT64_C(0x9E3779B97F4A7C15) >> 1);
}

static void ours_adds(void *context, int thread, int count)
{
    set_t *set = context;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = owner_value(&storage, 0);
    (void)thread;
    for (int i = 0; i < count; i++) {
        spill_error_t error;
        spill_append_result_t result;
        int64_t id = set_id(set->next++);
        spill_value_t element = {
            .data = (const uint8_t *)&id, .size_bytes = sizeof id, .type = BSON_TYPE_INT64};
        measure_check(
            spill_array_append(set->ours.array, &owner, &element, 1, NULL, &result, &error),
            &error);
        if (result.duplicates > 0)
            measure_stop("a new id was there");
    }
    bson_destroy(&storage);
}

static void bare_adds(void *context, int thread, int count)
{
    set_t *set = context;
    (void)thread;
    for (int i = 0; i < count; i++)
        raw_add(set->bare.raw, 0, set_id(set->bare_next++));
}

/* Adds to a set of 64 000 ids, and the bare engine with the same check. */
static void bench_set(bench_t *bench, int rounds)
{
    if (!measure_wanted(&bench->report, "set"))
        return;
    set_t set = {.next = 0};
    ours_open_set(&set.ours, bench, false);
    bare_open(&set.bare, bench, false, 1);
    int length = measure_count(SET_LENGTH, 1000);
    ours_adds(&set, 0, length);
    bare_adds(&set, 0, length);
    int count = bench->quick ? 10000 : 20000;
    measure_figure_t figure = {.name = "set",
                               .what = "adds to a set of 64 000 ids; bare engine, the same check",
                               .bar = 0.80,
                               .threads = 1,
                               .rounds = rounds,
                               .ours = {ours_adds, &set, count},
                               .other = {bare_adds, &set, count}};
    measure_figure(&bench->report, &figure);
    ours_close(&set.ours);
    bare_close(&set.bare);
}

/*
 * Threads that each append batches of new elements to an owner of their own, at once: the engine
 * writes the batches of many threads together. With and without the check that each id is new.
 */
enum { GROUP_THREADS = 32, GROUP_BATCH = 50 };

typedef struct group {
    ours_t *ours;
    atomic_llong next; /* id */
} group_t;

static void group_appends(void *context, int thread, int count)
{
    group_t *group = context;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = owner_value(&storage, thread);
    for (int i = 0; i < count; i++) {
        spill_error_t error;
        spill_append_result_t result;
        spill_value_t elements[GROUP_BATCH];
        int64_t ids[GROUP_BATCH];
        for (int j = 0; j < GROUP_BATCH; j++) {
            ids[j] = set_id(atomic_fetch_add(&group->next, 1));
            elements[j] = (spill_value_t){.data = (const uint8_t *)&ids[j],
                                          .size_bytes = sizeof ids[j],
                                          .type = BSON_TYPE_INT64};
        }
        measure_check(spill_array_append(group->ours->array, &owner, elements, GROUP_BATCH, NULL,
                                         &result, &error),
                      &error);
        if (result.duplicates > 0)
            measure_stop("a new id was there");
    }
    bson_destroy(&storage);
}

static void bench_set_group(bench_t *bench, int rounds)
{
    if (!measure_wanted(&bench->report, "set-group"))
        return;
    ours_t with, without;
    ours_open_set(&with, bench, true);
    ours_open(&without, bench, true, GROUP_THREADS);
    group_t checked = {.ours = &with}, unchecked = {.ours = &without};
    int count = bench->quick ? 20 : 50;
    measure_figure_t figure = {.name = "set-group",
                               .what = "fsync, 32 threads, 50 new ids an append; without ids",
                               .threads = GROUP_THREADS,
                               .rounds = rounds,
                               .ours = {group_appends, &checked, count},
                               .other = {group_appends, &unchecked, count}};
    measure_figure(&bench->report, &figure);
    ours_close(&with);
    ours_close(&without);
}

/* ---- updates of other fields ----------------------------------------------------------------- */

enum { SHARING = 50 };

/* Definitions whose arrays are in the documents of the same collection. */
static void define_sharing(const ours_t *ours)
{
    const spill_definition_t *feed = spill_array_get_definition(ours->array);
    for (int i = 0; i < SHARING; i++) {
        spill_error_t error;
        spill_definition_t definition;
        char name[16];
        snprintf(name, sizeof name, "sharing%d", i);
        spill_definition_init(&definition, name);
        strcpy(definition.collection, feed->collection);
        snprintf(definition.array, sizeof definition.array, "%sItems", name);
        snprintf(definition.page_collection, sizeof definition.page_collection, "%sPages", name);
        snprintf(definition.count_field, sizeof definition.count_field, "%sCount", name);
        snprintf(definition.overflow_field, sizeof definition.overflow_field, "%sMore", name);
        snprintf(definition.pages_field, sizeof definition.pages_field, "%sPageCount", name);
        measure_check(spill_store_define(ours->store, &definition, &error), &error);
    }
}

static void updates(void *context, int thread, int count)
{
    ours_t *ours = context;
    bson_t *update = BCON_NEW("$set", "{", "name", "Ada", "city", "London", "}");
    (void)thread;
    for (int i = 0; i < count; i++) {
        bson_t storage = BSON_INITIALIZER;
        spill_error_t error;
        spill_value_t owner = owner_value(&storage, i % ours->owners);
        measure_check(spill_array_update(ours->array, &owner, update, &error), &error);
        bson_destroy(&storage);
    }
    bson_destroy(update);
}

static void bench_sharing(bench_t *bench, int rounds)
{
    if (!measure_wanted(&bench->report, "update-sharing"))
        return;
    ours_t shared, alone;
    ours_open(&shared, bench, false, LOG_OWNERS);
    ours_open(&alone, bench, false, LOG_OWNERS);
    define_sharing(&shared);
    ours_appends_in_turn(&shared, 0, LOG_OWNERS);
    ours_appends_in_turn(&alone, 0, LOG_OWNERS);
    int count = bench->quick ? 5000 : 20000;
    measure_figure_t figure = {.name = "update-sharing",
                               .what = "update, 50 definitions share the documents; none does",
                               .threads = 1,
                               .rounds = rounds,
                               .ours = {updates, &shared, count},
                               .other = {updates, &alone, count}};
    measure_figure(&bench->report, &figure);
    ours_close(&shared);
    ours_close(&alone);
}

/* ---- appends with operation ids -------------------------------------------------------------- */

/* One thread appends to LOG_OWNERS owners in turn. */
typedef struct with_ids {
    ours_t ours;
    int64_t counts[LOG_OWNERS]; /* of operations */
} with_ids_t;

/*
 * The base of each operation is as old as the window allows, as in an import of records with ids:
 * the store must then know every id of the window.
 */
static void appends_with_ids(void *context, int thread, int count)
{
    with_ids_t *with = context;
    int64_t reach = spill_array_get_definition(with->ours.array)->op_window - 1;
    uint8_t bytes[ELEMENT_BYTES];
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    spill_op_t op = {.id = &with->ours.number, .id_bytes = sizeof with->ours.number};
    (void)thread;
    spill_append_options_init(&options);
    options.op = &op;
    for (int i = 0; i < count; i++) {
        int owner = i % LOG_OWNERS;
        bson_t storage = BSON_INITIALIZER;
        measure_element(bytes, ++with->ours.number);
        spill_value_t name = owner_value(&storage, owner);
        spill_value_t element = {
            .data = bytes, .size_bytes = ELEMENT_BYTES, .type = BSON_TYPE_DOCUMENT};
        op.base = with->counts[owner] > reach ? with->counts[owner] - reach : 0;
        measure_check(
            spill_array_append(with->ours.array, &name, &element, 1, &options, &result, &error),
            &error);
        with->counts[owner] = result.op_base;
        bson_destroy(&storage);
    }
}

static void bench_ids(bench_t *bench, const char *name, int32_t op_window, int rounds)
{
    if (!measure_wanted(&bench->report, name))
        return;
    with_ids_t with = {.counts = {0}};
    ours_t without;
    spill_error_t error;
    ours_open(&with.ours, bench, false, LOG_OWNERS);
    ours_open(&without, bench, false, LOG_OWNERS);
    spill_definition_t definition = *spill_array_get_definition(with.ours.array);
    definition.op_window = op_window;
    definition.bounds.head_bytes_max *= 4; /* room for a large window */
    definition.bounds.page_bytes_max *= 4;
    measure_check(spill_store_define(with.ours.store, &definition, &error), &error);
    spill_array_close(with.ours.array);
    measure_check(spill_array_open(with.ours.store, "feed", &with.ours.array, &error), &error);
    int count = bench->quick ? 20000 : 50000;
    measure_figure_t figure = {.name = name,
                               .what = "append with an operation id; without",
                               .bar = 0.85,
                               .threads = 1,
                               .rounds = rounds,
                               .ours = {appends_with_ids, &with, count},
                               .other = {ours_appends_in_turn, &without, count}};
    measure_figure(&bench->report, &figure);
    ours_close(&with.ours);
    ours_close(&without);
}

/* ---- pages and appends of long arrays -------------------------------------------------------- */

typedef struct deep {
    ours_t *ours;
    int64_t length;
    uint64_t random;
} deep_t;

static void deep_pages(void *context, int thread, int count)
{
    deep_t *deep = context;
    (void)thread;
    for (int i = 0; i < count; i++) {
        deep->random = deep->random * UINT64_C(6364136223846793005) + 1442695040888963407;
        int64_t span = deep->length - 10000;
        ours_page(deep->ours, 0, PAGE + (int64_t)((deep->random >> 33) % (uint64_t)span));
    }
}

/* Read the same page each time: this compares the code paths, not the disk. */
static void one_deep_page(void *context, int thread, int count)
{
    deep_t *deep = context;
    (void)thread;
    for (int i = 0; i < count; i++)
        ours_page(deep->ours, 0, deep->length / 3);
}

static void long_appends(void *context, int thread, int count)
{
    ours_t *ours = context;
    (void)thread;
    for (int i = 0; i < count; i++)
        ours_append(ours, 0, (uint64_t)i);
}

/* Append to owners of 1000 elements in turn, so that their length changes little. */
static void short_appends(void *context, int thread, int count)
{
    ours_t *ours = context;
    (void)thread;
    for (int i = 0; i < count; i++)
        ours_append(ours, 1 + (int)(ours->number++ % (uint64_t)ours->owners), (uint64_t)i);
}

static void bench_long(bench_t *bench, int rounds)
{
    measure_report_t *report = &bench->report;
    if (!measure_wanted(report, "newest-page") && !measure_wanted(report, "deep-page") &&
        !measure_wanted(report, "deep-anywhere") && !measure_wanted(report, "append-long"))
        return;
    int length = measure_count(bench->quick ? 100000 : 1000000, 12000);
    int count = bench->quick ? 2000 : 10000;
    ours_t ours;
    bare_t bare;
    ours_open(&ours, bench, false, 50);
    bare_open(&bare, bench, false, 1);
    ours_fill(&ours, 0, length);
    ours.length = length;
    bare_appends_in_turn(&bare, 0, length);
    deep_t deep = {.ours = &ours, .length = length, .random = 1};
    measure_side_t near_ours = {ours_near_pages, &ours, count};
    measure_figure_t newest = {.name = "newest-page",
                               .what = "newest page of 20, bare engine: the same iteration",
                               .bar = 0.70,
                               .threads = 1,
                               .rounds = rounds,
                               .ours = {ours_newest_pages, &ours, count},
                               .other = {bare_newest_pages, &bare, count}};
    measure_figure_t one = {.name = "deep-page",
                            .what = "a page of 20 deep in the array, against one in the head",
                            .bar = 3.0,
                            .at_most = true,
                            .threads = 1,
                            .rounds = rounds,
                            .ours = {one_deep_page, &deep, count},
                            .other = near_ours};
    measure_figure_t any = {.name = "deep-anywhere",
                            .what = "the same, a random page each time, most in no cache",
                            .at_most = true,
                            .threads = 1,
                            .rounds = rounds,
                            .ours = {deep_pages, &deep, count / 5},
                            .other = {ours_near_pages, &ours, count / 5}};
    if (measure_wanted(report, newest.name))
        measure_figure(report, &newest);
    if (measure_wanted(report, one.name))
        measure_figure(report, &one);
    if (measure_wanted(report, any.name))
        measure_figure(report, &any);
    for (int i = 1; i <= ours.owners; i++)
        ours_fill(&ours, i, measure_count(1000, 100));
    measure_figure_t append = {.name = "append-long",
                               .what = "an append at the full length, against one at 1000",
                               .bar = 1.15,
                               .at_most = true,
                               .threads = 1,
                               .rounds = rounds,
                               .ours = {long_appends, &ours, count / 2},
                               .other = {short_appends, &ours, count / 2}};
    if (measure_wanted(report, append.name))
        measure_figure(report, &append);
    ours_close(&ours);
    bare_close(&bare);
}

/* ---- the newest pages of many owners --------------------------------------------------------- */

static int cached_owners(void)
{
    return measure_count(CACHED_OWNERS, 200);
}

/* An owner in random order. */
static int next_owner(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int)((*random >> 33) % (uint64_t)cached_owners());
}

static void newest_pages_anywhere(void *context, int thread, int count)
{
    uint64_t random = (uint64_t)thread;
    for (int i = 0; i < count; i++)
        ours_page(context, next_owner(&random), INT64_MAX);
}

/* Read the first elements instead, which are not cached. */
static void first_pages_anywhere(void *context, int thread, int count)
{
    uint64_t random = (uint64_t)thread;
    for (int i = 0; i < count; i++)
        ours_page(context, next_owner(&random), PAGE);
}

/* Of ten operations of a thread, one is an append and nine read a page. */
static void feed(ours_t *ours, int thread, int count, int64_t before)
{
    uint64_t random = (uint64_t)thread;
    for (int i = 0; i < count; i++) {
        int owner = next_owner(&random);
        if (i % 10 == 0)
            ours_append(ours, owner, (uint64_t)i);
        else
            ours_page(ours, owner, before);
    }
}

static void feed_newest(void *context, int thread, int count)
{
    feed(context, thread, count, INT64_MAX);
}

static void feed_first(void *context, int thread, int count)
{
    feed(context, thread, count, PAGE);
}

static void bench_cached(bench_t *bench, int rounds)
{
    measure_report_t *report = &bench->report;
    if (!measure_wanted(report, "newest-cached") && !measure_wanted(report, "feed"))
        return;
    ours_t ours;
    ours_open_cached(&ours, bench, false, cached_owners(), LARGE_CACHE);
    ours_appends_in_turn(&ours, 0, cached_owners() * CACHED_LENGTH);
    for (int owner = 0; owner < cached_owners(); owner++)
        ours_page(&ours, owner, INT64_MAX);
    int count = bench->quick ? 20000 : 100000;
    measure_figure_t cached = {.name = "newest-cached",
                               .what = "newest 20 of any of 10 000 owners, cached; not cached",
                               .bar = 3.0,
                               .us_max = 1.5,
                               .threads = 1,
                               .rounds = rounds,
                               .ours = {newest_pages_anywhere, &ours, count},
                               .other = {first_pages_anywhere, &ours, count / 10}};
    measure_figure_t fed = {.name = "feed",
                            .what = "8 threads, 9 of these reads for each append; not cached",
                            .threads = HOT_THREADS,
                            .rounds = rounds,
                            .ours = {feed_newest, &ours, count / 10},
                            .other = {feed_first, &ours, count / 10}};
    if (measure_wanted(report, cached.name))
        measure_figure(report, &cached);
    if (measure_wanted(report, fed.name))
        measure_figure(report, &fed);
    ours_close(&ours);
}

int main(int argc, char **argv)
{
    bench_t bench = {.parent = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            bench.quick = true;
        else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc)
            bench.parent = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            bench.report.only = argv[++i];
        else
            measure_stop("usage: bench_engine [--quick] [--dir FOLDER] [--only NAME]");
    }
    int rounds = bench.quick ? 5 : 15;
    measure_print_header();
    for (size_t i = 0; i < sizeof appends / sizeof *appends; i++)
        bench_appends(&bench, &appends[i], rounds);
    bench_ids(&bench, "append-id-64", 64, rounds);
    bench_ids(&bench, "append-id-10000", 10000, rounds);
    bench_set(&bench, rounds);
    bench_set_group(&bench, rounds);
    bench_sharing(&bench, rounds);
    bench_long(&bench, rounds);
    bench_cached(&bench, rounds);
    return bench.report.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
