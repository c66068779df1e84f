/*
 * Windows and statistics through the public API: the answers must follow from a plain list of
 * elements.
 */
#include "suite.h"

#include "simulation/random.h"
#include "store/summary.h"
#include "support/fault_store.h"

#include <spillway/spillway.h>
#include <stdio.h>
#include <string.h>

enum { WINDOWS = 5, MOST = 64 };

/* The elements of one window in order: the number that made each value, or -1 if it was deleted. */
typedef struct plain {
    int seeds[MOST];
    int64_t count; /* assigned numbers */
} plain_t;

typedef struct world {
    const contract_kind_t *kind;
    spill_store_t *store;
    spill_array_t *array;
    spill_definition_t definition;
    bson_t storage;
    spill_value_t owner;
    plain_t windows[WINDOWS];
    sim_random_t random;
} world_t;

static void expect_ok(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

/* Month 0 is "2026-03". */
static void window_name(int window, char text[SPILL_WINDOW_SIZE])
{
    snprintf(text, SPILL_WINDOW_SIZE, "2026-%02d", 3 + window);
}

/* The first day of the month plus `seed` minutes. */
static int64_t time_in_window(int window, int seed)
{
    static const int64_t days[WINDOWS + 1] = {0, 31, 61, 92, 122, 153};
    return INT64_C(1772323200000) + days[window] * 86400000 + (int64_t)seed * 60000;
}

static spill_value_t make_element(int window, int seed, bson_t *storage)
{
    bson_init(storage);
    BSON_APPEND_DATE_TIME(storage, "createdAt", time_in_window(window, seed));
    BSON_APPEND_INT32(storage, "seed", seed);
    if (seed % 4 == 1)
        BSON_APPEND_DOUBLE(storage, "rating", (double)seed / 3);
    else if (seed % 4 != 0)
        BSON_APPEND_INT32(storage, "rating", seed % 9 - 4);
    return spill_value_from_document(storage);
}

static void world_open(world_t *world, const contract_kind_t *kind, uint64_t seed, int64_t part)
{
    spill_error_t error;
    *world = (world_t){.kind = kind, .store = kind->open(), .random = {seed}};
    make_bucket_definition(&world->definition, "reviews");
    world->definition.bounds.threshold = world->definition.bounds.page_capacity = part;
    expect_ok(spill_store_define(world->store, &world->definition, &error), &error);
    expect_ok(spill_array_open(world->store, "reviews", &world->array, &error), &error);
    bson_init(&world->storage);
    world->owner = spill_value_from_utf8(&world->storage, "bike");
}

static void world_close(world_t *world)
{
    spill_array_close(world->array);
    bson_destroy(&world->storage);
    world->kind->close(world->store);
}

static int random_below(world_t *world, int bound)
{
    return sim_random_below(&world->random, bound);
}

/* ---- changes --------------------------------------------------------------------------------- */

static void append(world_t *world, int count)
{
    bson_t storage[8];
    spill_value_t elements[8];
    int windows[8], seeds[8];
    spill_bucket_appended_t *appended;
    size_t groups;
    spill_error_t error;
    for (int i = 0; i < count; i++) {
        windows[i] = random_below(world, WINDOWS);
        seeds[i] = random_below(world, 1000);
        elements[i] = make_element(windows[i], seeds[i], &storage[i]);
    }
    expect_ok(spill_bucket_append(world->array, &world->owner, elements, (size_t)count, NULL,
                                  &appended, &groups, &error),
              &error);
    int64_t told = 0;
    for (size_t i = 0; i < groups; i++) {
        int window = appended[i].window[6] - '3';
        assert_int_equal(appended[i].result.first, world->windows[window].count);
        told += appended[i].result.count;
    }
    assert_int_equal(told, count);
    for (int i = 0; i < count; i++) {
        plain_t *plain = &world->windows[windows[i]];
        plain->seeds[plain->count++] = seeds[i];
        bson_destroy(&storage[i]);
    }
    bson_free(appended);
}

static void change(world_t *world, bool edit)
{
    int window = random_below(world, WINDOWS);
    plain_t *plain = &world->windows[window];
    int64_t seq = random_below(world, (int)plain->count + 1);
    bool there = seq < plain->count && plain->seeds[seq] >= 0;
    int seed = random_below(world, 1000);
    char text[SPILL_WINDOW_SIZE];
    bson_t storage, name = BSON_INITIALIZER;
    spill_error_t error;
    window_name(window, text);
    spill_value_t element = make_element(window, seed, &storage);
    spill_value_t owner = spill_bucket_name(&name, &world->owner, text);
    spill_code_t code = edit ? spill_array_edit(world->array, &owner, seq, &element, &error)
                             : spill_array_remove(world->array, &owner, seq, &error);
    assert_int_equal(code, there ? SPILL_OK : SPILL_NOT_FOUND);
    if (there)
        plain->seeds[seq] = edit ? seed : -1;
    bson_destroy(&storage);
    bson_destroy(&name);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void add_unmanaged(const world_t *world, int window, int seed,
                          spill_window_stats_t *window_stats)
{
    bson_t storage;
    spill_value_t element = make_element(window, seed, &storage);
    spill_window_stats_add(window_stats, &world->definition, &element);
    bson_destroy(&storage);
}

/* A comparison of the existing windows, one by one. */
typedef struct comparison {
    const world_t *world;
    int next; /* the expected window */
    int step;
    int64_t part;
} comparison_t;

static bool compare_window(void *context, const spill_bucket_window_t *window)
{
    comparison_t *comparison = context;
    const world_t *world = comparison->world;
    while (world->windows[comparison->next].count == 0)
        comparison->next += comparison->step;
    char text[SPILL_WINDOW_SIZE];
    window_name(comparison->next, text);
    assert_string_equal(window->window, text);
    const plain_t *plain = &world->windows[comparison->next];
    spill_statistics_t all = {0}, one;
    for (int64_t first = 0; first < plain->count; first += comparison->part) {
        spill_window_stats_t window_stats = {0};
        int64_t live = 0;
        for (int64_t i = first; i < first + comparison->part && i < plain->count; i++) {
            if (plain->seeds[i] < 0)
                continue;
            add_unmanaged(world, comparison->next, plain->seeds[i], &window_stats);
            live++;
        }
        spill_window_stats_derive(&window_stats, live, &one);
        spill_statistics_join(&all, &one);
    }
    const spill_statistics_t *got = &window->statistics;
    assert_int_equal(got->count, all.count);
    assert_int_equal(got->values, all.values);
    assert_int_equal(got->sum.real, all.sum.real);
    assert_int_equal(got->sum.whole, all.sum.whole);
    assert_memory_equal(&got->sum.value, &all.sum.value, sizeof(double));
    assert_memory_equal(&got->average, &all.average, sizeof(double));
    assert_true(got->min.value == all.min.value && got->max.value == all.max.value);
    comparison->next += comparison->step;
    return true;
}

static void compare_windows(const world_t *world, int64_t part)
{
    spill_error_t error;
    for (int order = 0; order < 2; order++) {
        comparison_t comparison = {.world = world, .step = 1, .part = part};
        if (order == 0)
            comparison =
                (comparison_t){.world = world, .next = WINDOWS - 1, .step = -1, .part = part};
        expect_ok(spill_bucket_windows(world->array, &world->owner, NULL, NULL,
                                       order == 0 ? SPILL_NEWEST_FIRST : SPILL_OLDEST_FIRST,
                                       compare_window, &comparison, &error),
                  &error);
        for (; comparison.next >= 0 && comparison.next < WINDOWS;
             comparison.next += comparison.step)
            assert_int_equal(world->windows[comparison.next].count, 0);
    }
}

/* Compare all elements in [from, to), read in small pieces by cursor. */
static void compare_read(world_t *world, bool newest_first, int64_t from, int64_t to)
{
    spill_bucket_read_options_t options;
    spill_error_t error;
    char cursor[SPILL_WINDOW_SIZE];
    spill_bucket_read_options_init(&options);
    options.order = newest_first ? SPILL_NEWEST_FIRST : SPILL_OLDEST_FIRST;
    options.from_ms = from;
    options.to_ms = to;
    int window = newest_first ? WINDOWS - 1 : 0;
    int64_t at = newest_first ? world->windows[window].count - 1 : 0;
    bool more = true;
    while (more) {
        spill_bucket_slice_t *slice;
        options.limit = 1 + random_below(world, 5);
        expect_ok(spill_bucket_read(world->array, &world->owner, &options, &slice, &error), &error);
        for (size_t i = 0; i < slice->count;) {
            const plain_t *plain = &world->windows[window];
            if (at < 0 || at >= plain->count) { /* continue in the next window */
                window += newest_first ? -1 : 1;
                assert_in_range(window, 0, WINDOWS - 1);
                at = newest_first ? world->windows[window].count - 1 : 0;
                continue;
            }
            int seed = plain->seeds[at];
            int64_t time = seed >= 0 ? time_in_window(window, seed) : 0;
            if (seed >= 0 && time >= from && time < to) {
                char text[SPILL_WINDOW_SIZE];
                bson_t storage;
                window_name(window, text);
                spill_value_t expected = make_element(window, seed, &storage);
                assert_string_equal(slice->elements[i].window, text);
                assert_int_equal(slice->elements[i].seq, at);
                assert_true(spill_value_equal(&slice->elements[i].value, &expected));
                bson_destroy(&storage);
                i++;
            }
            at += newest_first ? -1 : 1;
        }
        more = slice->more;
        assert_true(!more || slice->count > 0);
        memcpy(cursor, slice->cursor_window, sizeof cursor);
        options.cursor_window = cursor;
        options.cursor_seq = slice->cursor_seq;
        spill_bucket_slice_free(slice);
    }
    /* No element is missing after the last one that was read. */
    for (; window >= 0 && window < WINDOWS;) {
        const plain_t *plain = &world->windows[window];
        for (; at >= 0 && at < plain->count; at += newest_first ? -1 : 1) {
            int64_t time =
                plain->seeds[at] >= 0 ? time_in_window(window, plain->seeds[at]) : INT64_MAX;
            assert_false(plain->seeds[at] >= 0 && time >= from && time < to);
        }
        window += newest_first ? -1 : 1;
        if (window >= 0 && window < WINDOWS)
            at = newest_first ? world->windows[window].count - 1 : 0;
    }
}

static void compare_with_plain(world_t *world, int64_t part)
{
    compare_windows(world, part);
    compare_read(world, true, INT64_MIN, INT64_MAX);
    compare_read(world, false, INT64_MIN, INT64_MAX);
    int64_t from = time_in_window(random_below(world, WINDOWS), random_below(world, 1000));
    compare_read(world, random_below(world, 2) == 0, from,
                 time_in_window(random_below(world, WINDOWS), 500));
    spill_verify_summary_t summary;
    spill_error_t error;
    expect_ok(spill_array_verify(world->array, NULL, NULL, NULL, &summary, &error), &error);
    assert_int_equal(summary.findings, 0);
    assert_int_equal(summary.owners, 1);
}

static void statistics_and_reads_follow_from_the_elements(void **state)
{
    const contract_kind_t *kind = *state;
    static const int64_t parts[] = {1, 3, 50};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        world_t world;
        world_open(&world, kind, 7 + i, parts[i]);
        append(&world, 1);
        for (int step = 0; step < (kind->slow ? 40 : 60); step++) {
            int roll = random_below(&world, 10);
            if (roll < 5)
                append(&world, parts[i] == 1 ? 1 : 1 + random_below(&world, parts[i] == 3 ? 1 : 4));
            else
                change(&world, roll < 7);
            if (step % 20 == 19)
                compare_with_plain(&world, parts[i]);
        }
        world_close(&world);
    }
}

/* ---- single cases ---------------------------------------------------------------------------- */

static void append_one(world_t *world, const char *owner, int window, int seed)
{
    bson_t storage, name = BSON_INITIALIZER;
    size_t count;
    spill_error_t error;
    spill_value_t element = make_element(window, seed, &storage);
    spill_value_t value = spill_value_from_utf8(&name, owner);
    expect_ok(spill_bucket_append(world->array, &value, &element, 1, NULL, NULL, &count, &error),
              &error);
    bson_destroy(&storage);
    bson_destroy(&name);
}

static bool join_owner(void *context, const spill_value_t *owner)
{
    bson_string_append_printf(context, "%s ", (const char *)owner->data + 4);
    return true;
}

static bool join_window(void *context, const spill_bucket_window_t *window)
{
    bson_string_append_printf(context, "%s:%d ", window->window, (int)window->parts);
    return true;
}

static void assert_windows(const world_t *world, const char *owner, const char *from,
                           const char *to, const char *expected)
{
    bson_t name = BSON_INITIALIZER;
    bson_string_t *text = bson_string_new(NULL);
    spill_error_t error;
    spill_value_t value = spill_value_from_utf8(&name, owner);
    expect_ok(spill_bucket_windows(world->array, &value, from, to, SPILL_OLDEST_FIRST, join_window,
                                   text, &error),
              &error);
    assert_string_equal(text->str, expected);
    bson_string_free(text, true);
    bson_destroy(&name);
}

static void windows_are_listed_by_owner_and_dropped(void **state)
{
    world_t world;
    spill_error_t error;
    world_open(&world, *state, 1, 2);
    for (int window = 0; window < WINDOWS; window++) {
        append_one(&world, "bike", window, 1);
        append_one(&world, "bik", window, 2);
    }
    append_one(&world, "bike", 1, 3);
    append_one(&world, "bike", 1, 4);
    append_one(&world, "bikes", 0, 5);
    bson_string_t *owners = bson_string_new(NULL);
    expect_ok(spill_bucket_owners(world.array, join_owner, owners, &error), &error);
    assert_string_equal(owners->str, "bik bike bikes ");
    bson_string_free(owners, true);
    assert_windows(&world, "bike", NULL, NULL,
                   "2026-03:1 2026-04:2 2026-05:1 2026-06:1 2026-07:1 ");
    assert_windows(&world, "bike", "2026-04", "2026-06", "2026-04:2 2026-05:1 2026-06:1 ");
    assert_windows(&world, "bike", "2026-04-15", NULL, "2026-05:1 2026-06:1 2026-07:1 ");
    assert_windows(&world, "bike", "2026-08", NULL, "");
    assert_windows(&world, "bike", "2026-06", "2026-04", "");
    assert_windows(&world, "car", NULL, NULL, "");
    int64_t dropped;
    expect_ok(
        spill_bucket_drop_older(world.array, &world.owner, time_in_window(2, 7), &dropped, &error),
        &error);
    assert_int_equal(dropped, 2);
    assert_windows(&world, "bike", NULL, NULL, "2026-05:1 2026-06:1 2026-07:1 ");
    assert_windows(&world, "bik", NULL, "2026-03", "2026-03:1 ");
    append_one(&world, "bike", 1, 9); /* the numbers start at 0 again */
    assert_windows(&world, "bike", NULL, "2026-05", "2026-04:1 2026-05:1 ");
    expect_ok(spill_bucket_drop_before(world.array, &world.owner, NULL, &dropped, &error), &error);
    assert_int_equal(dropped, 4);
    assert_windows(&world, "bike", NULL, NULL, "");
    assert_int_equal(spill_bucket_drop_before(world.array, &world.owner, NULL, &dropped, &error),
                     SPILL_NOT_FOUND);
    assert_windows(&world, "bikes", NULL, NULL, "2026-03:1 ");
    world_close(&world);
}

/* Numbers of different types are the same owner. More windows than one list request returns. */
static void many_windows_of_one_owner(void **state)
{
    enum { YEARS = 230 };
    world_t world;
    spill_error_t error;
    world_open(&world, *state, 1, 10);
    for (int year = 0; year < YEARS; year++) {
        bson_t storage = BSON_INITIALIZER, name = BSON_INITIALIZER;
        BSON_APPEND_DATE_TIME(&storage, "createdAt", (int64_t)year * 31556952000);
        BSON_APPEND_INT32(&storage, "rating", year);
        if (year % 2)
            BSON_APPEND_INT32(&name, "", 7);
        else
            BSON_APPEND_DOUBLE(&name, "", 7.0);
        bson_iter_t iter;
        size_t count;
        bson_iter_init_find(&iter, &name, "");
        spill_value_t owner = spill_value_from_iter(&iter);
        spill_value_t element = spill_value_from_document(&storage);
        expect_ok(spill_bucket_append(world.array, &owner, &element, 1, NULL, NULL, &count, &error),
                  &error);
        bson_destroy(&storage);
        bson_destroy(&name);
    }
    bson_t number = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_int64(&number, 7);
    spill_statistics_t all;
    int64_t windows;
    expect_ok(spill_bucket_statistics(world.array, &owner, NULL, NULL, &all, &windows, &error),
              &error);
    assert_int_equal(windows, YEARS);
    assert_int_equal(all.sum.whole, YEARS * (YEARS - 1) / 2);
    assert_int_equal(all.max.whole, YEARS - 1);
    spill_bucket_read_options_t options;
    spill_bucket_slice_t *slice;
    spill_bucket_read_options_init(&options);
    options.limit = 1000;
    expect_ok(spill_bucket_read(world.array, &owner, &options, &slice, &error), &error);
    assert_int_equal(slice->count, YEARS);
    assert_false(slice->more);
    for (size_t i = 1; i < slice->count; i++)
        assert_true(strcmp(slice->elements[i - 1].window, slice->elements[i].window) > 0);
    spill_bucket_slice_free(slice);
    bson_string_t *owners = bson_string_new(NULL);
    spill_verify_summary_t summary;
    expect_ok(spill_array_verify(world.array, NULL, NULL, NULL, &summary, &error), &error);
    assert_int_equal(summary.owners, 1);
    assert_int_equal(summary.findings, 0);
    bson_string_free(owners, true);
    bson_destroy(&number);
    world_close(&world);
}

static void operations_belong_to_one_window(void **state)
{
    world_t world;
    spill_error_t error;
    world_open(&world, *state, 1, 2);
    bson_t storage[3];
    spill_value_t elements[3] = {make_element(1, 1, &storage[0]), make_element(0, 2, &storage[1]),
                                 make_element(1, 3, &storage[2])};
    spill_bucket_base_t *bases;
    spill_bucket_appended_t *appended;
    size_t count;
    expect_ok(spill_bucket_op_bases(world.array, &world.owner, elements, 3, &bases, &count, &error),
              &error);
    assert_int_equal(count, 2);
    assert_string_equal(bases[0].window, "2026-04");
    spill_bucket_append_options_t options;
    spill_bucket_append_options_init(&options);
    options.op_id = "op";
    options.op_id_bytes = 2;
    options.bases = bases;
    options.base_count = 1; /* the second window has no base: nothing is done */
    assert_int_equal(spill_bucket_append(world.array, &world.owner, elements, 3, &options,
                                         &appended, &count, &error),
                     SPILL_INVALID);
    assert_windows(&world, "bike", NULL, NULL, "");
    bson_free(appended);
    options.base_count = 2;
    for (int i = 0; i < 2; i++) {
        expect_ok(spill_bucket_append(world.array, &world.owner, elements, 3, &options, &appended,
                                      &count, &error),
                  &error);
        assert_int_equal(count, 2);
        assert_int_equal(appended[0].result.repeated, i == 1);
        assert_int_equal(appended[1].result.repeated, i == 1);
        assert_int_equal(appended[0].result.count, 2);
        bson_free(appended);
    }
    spill_statistics_t all;
    expect_ok(spill_bucket_statistics(world.array, &world.owner, NULL, NULL, &all, NULL, &error),
              &error);
    assert_int_equal(all.count, 3);
    bson_free(bases);
    for (int i = 0; i < 3; i++)
        bson_destroy(&storage[i]);
    world_close(&world);
}

static void invalid_calls_are_refused(void **state)
{
    world_t world;
    spill_error_t error;
    world_open(&world, *state, 1, 2);
    append_one(&world, "bike", 0, 1);
    bson_t storage, name = BSON_INITIALIZER;
    spill_value_t element = make_element(1, 1, &storage);
    spill_value_t owner = spill_bucket_name(&name, &world.owner, "2026-03");
    spill_append_result_t result;
    spill_append_options_t options;
    spill_append_options_init(&options);
    /* An element of April, in the window of March. */
    assert_int_equal(spill_array_append(world.array, &owner, &element, 1, NULL, &result, &error),
                     SPILL_INVALID);
    assert_int_equal(spill_array_edit(world.array, &owner, 0, &element, &error), SPILL_INVALID);
    assert_int_equal(spill_array_trim(world.array, &owner, 1, &error), SPILL_INVALID);
    bson_t *update = BCON_NEW("$set", "{", "a", BCON_INT32(1), "}");
    assert_int_equal(spill_array_update(world.array, &owner, update, &error), SPILL_INVALID);
    bson_destroy(update);
    /* An owner alone does not name a window. */
    spill_slice_t *slice;
    assert_int_equal(spill_array_read(world.array, &world.owner, NULL, &slice, &error),
                     SPILL_INVALID);
    assert_non_null(strstr(error.message, "spill_bucket_"));
    bson_destroy(&storage);
    bson_init(&storage);
    BSON_APPEND_INT32(&storage, "rating", 5);
    spill_value_t timeless = spill_value_from_document(&storage);
    size_t count;
    assert_int_equal(
        spill_bucket_append(world.array, &world.owner, &timeless, 1, NULL, NULL, &count, &error),
        SPILL_INVALID);
    assert_windows(&world, "bike", NULL, NULL, "2026-03:1 ");
    bson_destroy(&storage);
    bson_destroy(&name);
    world_close(&world);
}

/* ---- ids, filters and trims over windows ----------------------------------------------------- */

/* With ids: the id is the seed, which several elements may share. */
static void open_with_ids(world_t *world, const contract_kind_t *kind, int64_t part)
{
    spill_error_t error;
    world_open(world, kind, 1, part);
    spill_array_close(world->array);
    strcpy(world->definition.id_field, "seed");
    expect_ok(spill_store_define(world->store, &world->definition, &error), &error);
    expect_ok(spill_array_open(world->store, "reviews", &world->array, &error), &error);
}

static void assert_found(world_t *world, int id, const char *expected)
{
    char window[SPILL_WINDOW_SIZE], text[SPILL_WINDOW_SIZE + 24];
    int64_t seq;
    spill_error_t error;
    spill_value_t value = {
        .data = (const uint8_t *)&id, .size_bytes = sizeof id, .type = BSON_TYPE_INT32};
    spill_code_t code =
        spill_bucket_find_id(world->array, &world->owner, &value, window, &seq, &error);
    assert_int_equal(code, expected ? SPILL_OK : SPILL_NOT_FOUND);
    snprintf(text, sizeof text, "%s:%d", window, (int)seq);
    assert_string_equal(text, expected ? expected : ":-1");
}

static spill_code_t remove_id(world_t *world, int id, char window[SPILL_WINDOW_SIZE])
{
    int64_t seq;
    spill_error_t error;
    spill_value_t value = {
        .data = (const uint8_t *)&id, .size_bytes = sizeof id, .type = BSON_TYPE_INT32};
    return spill_bucket_remove_id(world->array, &world->owner, &value, window, &seq, &error);
}

/* The verifier and the store's own check find nothing; the owner has this number of elements. */
static void assert_sound_with(world_t *world, int64_t elements)
{
    spill_verify_summary_t summary;
    spill_statistics_t all;
    spill_error_t error;
    expect_ok(spill_array_verify(world->array, NULL, NULL, NULL, &summary, &error), &error);
    assert_int_equal(summary.findings, 0);
    expect_ok(spill_bucket_statistics(world->array, &world->owner, NULL, NULL, &all, NULL, &error),
              &error);
    assert_int_equal(all.count, elements);
}

static void find_by_id_searches_all_windows(void **state)
{
    world_t world;
    char window[SPILL_WINDOW_SIZE];
    int64_t seq;
    spill_error_t error;
    open_with_ids(&world, *state, 2);
    for (int i = 0; i < WINDOWS; i++) /* three in each window, the last in a second part */
        for (int k = 0; k < 3; k++)
            append_one(&world, "bike", i, 10 * i + k);
    append_one(&world, "bike", 2, 0); /* the same id as the first element of March */
    append_one(&world, "boat", 0, 99);
    assert_found(&world, 0, "2026-03:0");
    assert_found(&world, 2, "2026-03:2");
    assert_found(&world, 32, "2026-06:2");
    assert_found(&world, 99, NULL);
    assert_found(&world, 7, NULL);
    expect_ok(remove_id(&world, 0, window), &error);
    assert_string_equal(window, "2026-03");
    assert_found(&world, 0, "2026-05:3");
    expect_ok(remove_id(&world, 0, window), &error);
    assert_string_equal(window, "2026-05");
    assert_int_equal(remove_id(&world, 0, window), SPILL_NOT_FOUND);
    assert_string_equal(window, "");
    bson_t storage;
    int id = 41, other = 44;
    spill_value_t element = make_element(4, other, &storage);
    spill_value_t by = {
        .data = (const uint8_t *)&id, .size_bytes = sizeof id, .type = BSON_TYPE_INT32};
    expect_ok(spill_bucket_edit_id(world.array, &world.owner, &by, &element, window, &seq, &error),
              &error);
    assert_string_equal(window, "2026-07");
    assert_int_equal(seq, 1);
    assert_found(&world, 41, NULL);
    assert_found(&world, 44, "2026-07:1");
    id = 12; /* an April date: no element of July has it */
    assert_int_equal(
        spill_bucket_edit_id(world.array, &world.owner, &by, &element, window, &seq, &error),
        SPILL_INVALID);
    bson_destroy(&storage);
    expect_ok(spill_bucket_drop_before(world.array, &world.owner, "2026-05", NULL, &error), &error);
    assert_found(&world, 12, NULL);
    assert_found(&world, 22, "2026-05:2");
    assert_sound_with(&world, 9);
    world_close(&world);
}

static void remove_where_covers_all_windows(void **state)
{
    world_t world;
    int64_t removed;
    spill_error_t error;
    open_with_ids(&world, *state, 2);
    for (int i = 0; i < WINDOWS; i++)
        for (int k = 0; k < 3; k++)
            append_one(&world, "bike", i, 10 * i + k);
    bson_t *filter = BCON_NEW("seed", "{", "$gte", BCON_INT32(11), "}");
    expect_ok(spill_bucket_remove_where(world.array, &world.owner, filter, 4, &removed, &error),
              &error);
    assert_int_equal(removed, 4);
    assert_found(&world, 10, "2026-04:0");
    assert_found(&world, 21, NULL);
    assert_found(&world, 22, "2026-05:2");
    expect_ok(spill_bucket_remove_where(world.array, &world.owner, filter, 0, &removed, &error),
              &error);
    assert_int_equal(removed, 7);
    assert_sound_with(&world, 4);
    bson_destroy(filter);
    world_close(&world);
}

/*
 * Parts of two elements. In the window where a trim ends, it removes single elements from the head,
 * but only whole parts behind it.
 */
static void trim_drops_old_windows_and_parts(void **state)
{
    world_t world;
    spill_error_t error;
    open_with_ids(&world, *state, 2);
    for (int i = 0; i < WINDOWS; i++)
        for (int k = 0; k < 5; k++)
            append_one(&world, "bike", i, 10 * i + k);
    expect_ok(spill_bucket_trim_older(world.array, &world.owner, time_in_window(1, 11), &error),
              &error);
    assert_sound_with(&world, 19);
    assert_windows(&world, "bike", NULL, NULL, "2026-04:3 2026-05:3 2026-06:3 2026-07:3 ");
    assert_found(&world, 10, NULL);
    assert_found(&world, 11, "2026-04:1");
    expect_ok(spill_bucket_trim_older(world.array, &world.owner, time_in_window(1, 13), &error),
              &error);
    assert_sound_with(&world, 18); /* the second part has 12 and 13 */
    assert_found(&world, 12, "2026-04:2");
    expect_ok(spill_bucket_trim_older(world.array, &world.owner, time_in_window(1, 14), &error),
              &error);
    assert_sound_with(&world, 16);
    assert_found(&world, 14, "2026-04:4");
    expect_ok(spill_bucket_trim_older(world.array, &world.owner, time_in_window(1, 500), &error),
              &error);
    /* the last part has more elements than the trim may remove: it stays */
    assert_sound_with(&world, 16);
    append_one(&world, "bike", 1, 15);
    assert_found(&world, 15, "2026-04:5");
    expect_ok(spill_bucket_trim_keep(world.array, &world.owner, 9, &error), &error);
    assert_windows(&world, "bike", NULL, NULL, "2026-06:3 2026-07:3 ");
    assert_sound_with(&world, 9);
    assert_found(&world, 30, NULL);
    expect_ok(spill_bucket_trim_keep(world.array, &world.owner, 6, &error), &error);
    assert_sound_with(&world, 6);
    expect_ok(spill_bucket_trim_keep(world.array, &world.owner, 100, &error), &error);
    expect_ok(spill_bucket_trim_keep(world.array, &world.owner, 2, &error), &error);
    assert_windows(&world, "bike", NULL, NULL, "2026-07:3 ");
    assert_sound_with(&world, 3);
    assert_int_equal(spill_bucket_trim_keep(world.array, &world.owner, 0, &error), SPILL_INVALID);
    append_one(&world, "bike", 4, 50);
    assert_sound_with(&world, 4);
    world_close(&world);
}

static fault_t fail_all(void *context, int64_t index, const spill_request_t *request)
{
    (void)request;
    const int64_t *lives_for = context;
    return index < *lives_for ? FAULT_NONE : FAULT_FAIL;
}

/* Remove by id with a client that crashes after `calls` store operations. */
static void remove_and_crash(world_t *world, int id, int64_t calls)
{
    spill_error_t error;
    spill_store_t *mortal;
    spill_array_t *whole = world->array;
    char window[SPILL_WINDOW_SIZE];
    int64_t lives_for = INT64_MAX;
    fault_hooks_t hooks = {.decide = fail_all, .context = &lives_for};
    fault_wrap(world->store, &hooks, &mortal);
    expect_ok(spill_array_open(mortal, "reviews", &world->array, &error), &error);
    lives_for = fault_calls(mortal) + calls;
    remove_id(world, id, window);
    spill_array_close(world->array);
    spill_store_close(mortal, NULL);
    world->array = whole;
}

static int64_t count_in(world_t *world, int window)
{
    char text[SPILL_WINDOW_SIZE];
    bson_t name = BSON_INITIALIZER;
    spill_count_t count;
    spill_error_t error;
    window_name(window, text);
    spill_value_t owner = spill_bucket_name(&name, &world->owner, text);
    expect_ok(spill_array_count(world->array, &owner, &count, &error), &error);
    bson_destroy(&name);
    return count.count;
}

/* An element with a pending removal is still in its part, but no longer counted. */
static void trim_keeps_enough_beside_unfinished_removal(void **state)
{
    for (int64_t calls = 0; calls < 8; calls++) {
        world_t world;
        spill_error_t error;
        open_with_ids(&world, *state, 2);
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < 4; k++)
                append_one(&world, "bike", i, 10 * i + k);
        remove_and_crash(&world, 12, calls);
        expect_ok(spill_bucket_trim_keep(world.array, &world.owner, 4, &error), &error);
        int64_t newest = count_in(&world, 1);
        assert_true(newest <= 4);
        assert_true(newest + count_in(&world, 0) >= 4);
        world_close(&world);
    }
}

void add_bucket_tests(suite_t *suite)
{
    SUITE_ADD(suite, statistics_and_reads_follow_from_the_elements);
    SUITE_ADD(suite, windows_are_listed_by_owner_and_dropped);
    SUITE_ADD(suite, many_windows_of_one_owner);
    SUITE_ADD(suite, operations_belong_to_one_window);
    SUITE_ADD(suite, invalid_calls_are_refused);
    SUITE_ADD(suite, find_by_id_searches_all_windows);
    SUITE_ADD(suite, remove_where_covers_all_windows);
    SUITE_ADD(suite, trim_drops_old_windows_and_parts);
    SUITE_ADD(suite, trim_keeps_enough_beside_unfinished_removal);
}
