/* From documents to dates: when arrays reach the threshold, and documents the size limit. */
#include "tools/scan/paths.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { OWNERS = 100, DAYS = 100 };

static const int64_t day_ms = 86400000;
static const int64_t start_ms = INT64_C(1600000000000);

static const spill_scan_limits_t limits = {
    .elements = 1000, .bytes = 1000000, .document_bytes = 200000, .paid_per_cent = 50};

/* Elements per day of that owner: 1 to 8. */
static int64_t daily(int64_t owner)
{
    return 1 + owner % 8;
}

/* Append {"at": ..., "text": ...} elements, `count` per day. */
static void append_elements(bson_t *array, int64_t owner, bool timed, bool newest_first)
{
    int64_t count = DAYS * daily(owner);
    for (int64_t i = 0; i < count; i++) {
        int64_t number = newest_first ? count - 1 - i : i;
        char key[16];
        bson_t element;
        bson_snprintf(key, sizeof key, "%d", (int)i);
        bson_append_document_begin(array, key, -1, &element);
        if (timed)
            BSON_APPEND_DATE_TIME(&element, "at", start_ms + number * day_ms / daily(owner));
        BSON_APPEND_UTF8(&element, "text",
                         "a hundred bytes or so, most of them in this text, "
                         "and some in the names");
        bson_append_document_end(array, &element);
    }
}

static bson_t *make_document(int64_t owner)
{
    bson_t *document = bson_new();
    bson_t array;
    BSON_APPEND_INT64(document, "_id", owner);
    BSON_APPEND_ARRAY_BEGIN(document, "feed", &array);
    append_elements(&array, owner, true, false);
    bson_append_array_end(document, &array);
    BSON_APPEND_ARRAY_BEGIN(document, "front", &array);
    append_elements(&array, owner, true, true);
    bson_append_array_end(document, &array);
    BSON_APPEND_ARRAY_BEGIN(document, "plain", &array);
    append_elements(&array, owner, false, false);
    bson_append_array_end(document, &array);
    return document;
}

static void walk_owners(spill_paths_t *paths, int64_t from, int64_t to)
{
    spill_walker_t *walker = spill_walker_new();
    for (int64_t owner = from; owner < to; owner++) {
        spill_walk_t result;
        bson_t *document = make_document(owner);
        spill_walk(walker, paths, bson_get_data(document), document->len, owner, &result);
        assert_null(result.damage);
        bson_destroy(document);
    }
    spill_walker_free(walker);
}

static const spill_path_t *find_path(spill_paths_t *paths, const char *name)
{
    return spill_path_child(paths, paths->root, NULL, SPILL_PATH_ARRAY, name, strlen(name));
}

/*
 * The largest owners get 8 elements a day and have 800, so each day one more reaches the threshold
 * of 1000.
 */
static void assert_dates(const spill_path_t *path)
{
    const spill_large_owner_t *largest = &path->owners.items[0];
    const spill_growth_forecast_t *growth_forecast = &largest->growth_forecast;
    assert_int_equal(largest->length, 800);
    assert_null(largest->history);
    assert_int_equal(growth_forecast->threshold.elements, 200);
    assert_true(growth_forecast->timed);
    assert_true(fabs(growth_forecast->pace.per_day - 8) < 1);
    assert_true(fabs(growth_forecast->pace.acceleration - 1) < 0.2);
    double days = (double)(growth_forecast->threshold.likely_ms - start_ms) / (double)day_ms - DAYS;
    assert_true(fabs(days - 200.0 / 8) < 3);
    assert_true(growth_forecast->threshold.earliest_ms <= growth_forecast->threshold.likely_ms);
    assert_true(growth_forecast->threshold.likely_ms <= growth_forecast->threshold.latest_ms);
    assert_true(growth_forecast->forecast);
    double expected = 8 * (double)growth_forecast->horizon_ms / (double)day_ms;
    assert_true(fabs(growth_forecast->coming.likely / expected - 1) < 0.1);
}

static void assert_forecast(spill_paths_t *paths)
{
    const spill_path_t *feed = find_path(paths, "feed");
    assert_dates(feed);
    assert_true(feed->owners.items[0].growth_forecast.rising == 1);
    assert_true(feed->owners.items[0].growth_forecast.falling == 0);
    assert_dates(find_path(paths, "front"));
    assert_true(find_path(paths, "front")->owners.items[0].growth_forecast.falling == 1);

    /* In total: 4.5 per day and owner. */
    assert_true(feed->growth_forecast.timed && feed->growth_forecast.forecast);
    assert_true(fabs(feed->growth_forecast.pace.per_day / (OWNERS * 4.42) - 1) < 0.1);
    assert_null(feed->growth);
}

static void dates_of_steady_arrays(void **state)
{
    (void)state;
    spill_paths_t paths;
    spill_paths_init(&paths, &limits);
    walk_owners(&paths, 0, OWNERS);
    spill_paths_foresee(&paths, start_ms + 200 * day_ms);
    assert_forecast(&paths);
    spill_paths_release(&paths);
}

static void merged_tables_forecast_the_same(void **state)
{
    (void)state;
    spill_paths_t paths, others;
    spill_paths_init(&paths, &limits);
    spill_paths_init(&others, &limits);
    walk_owners(&paths, 0, OWNERS / 3);
    walk_owners(&others, OWNERS / 3, OWNERS);
    spill_paths_merge(&paths, &others);
    spill_paths_release(&others);
    spill_paths_foresee(&paths, start_ms + 200 * day_ms);
    assert_forecast(&paths);
    spill_paths_release(&paths);
}

/*
 * The document is nearly full. Only the number of remaining elements is known; without times there
 * is no date.
 */
static void bytes_to_the_limit(void **state)
{
    (void)state;
    spill_paths_t paths;
    spill_scan_limits_t close = limits;
    bson_t *document = make_document(7);
    close.document_bytes = (int64_t)document->len + 20000;
    bson_destroy(document);
    spill_paths_init(&paths, &close);
    walk_owners(&paths, 0, OWNERS);
    spill_paths_foresee(&paths, start_ms + 200 * day_ms);
    const spill_large_owner_t *feed = &find_path(&paths, "feed")->owners.items[0];
    int64_t expected = 20000 / (feed->bytes / feed->length);
    assert_true(llabs(feed->growth_forecast.limit.elements - expected) <= 2);
    double days =
        (double)(feed->growth_forecast.limit.likely_ms - start_ms) / (double)day_ms - DAYS;
    assert_true(fabs(days - (double)expected / 8) < 4);
    const spill_large_owner_t *plain = &find_path(&paths, "plain")->owners.items[0];
    assert_int_equal(plain->growth_forecast.threshold.elements, 200);
    assert_true(plain->growth_forecast.limit.elements > expected);
    assert_true(plain->growth_forecast.threshold.likely_ms == SPILL_WHEN_UNKNOWN);
    assert_false(plain->growth_forecast.timed);
    assert_false(find_path(&paths, "plain")->growth_forecast.timed);
    spill_paths_release(&paths);
}

/* An array or a document that is over its limit already needs no date. */
static void limits_reached_already(void **state)
{
    (void)state;
    spill_paths_t paths;
    spill_scan_limits_t low = limits;
    low.elements = 500;
    low.document_bytes = 100;
    spill_paths_init(&paths, &low);
    walk_owners(&paths, 0, OWNERS);
    spill_paths_foresee(&paths, start_ms + 200 * day_ms);
    const spill_growth_forecast_t *growth_forecast =
        &find_path(&paths, "feed")->owners.items[0].growth_forecast;
    assert_int_equal(growth_forecast->threshold.elements, 0);
    assert_int_equal(growth_forecast->limit.elements, 0);
    assert_true(growth_forecast->limit.likely_ms == SPILL_WHEN_UNKNOWN);
    spill_paths_release(&paths);
}

/* An element of the year 9999 does not move the present to that year. */
static void the_future_is_not_now(void **state)
{
    (void)state;
    spill_growth_t growth;
    spill_history_t history;
    spill_growth_init(&growth);
    spill_history_init(&history, SPILL_GROWTH_POINTS);
    for (int64_t owner = 0; owner < 30; owner++) {
        spill_history_clear(&history);
        for (int64_t i = 0; i < 200; i++)
            spill_history_add(&history, start_ms + i * day_ms);
        if (owner == 3)
            spill_history_add(&history, INT64_C(253400000000000));
        spill_growth_add(&growth, (uint64_t)owner, &history);
    }
    spill_history_sort(&history);
    spill_growth_model_t *growth_model = spill_growth_model_new(&growth, start_ms + 205 * day_ms);
    spill_growing_t array = {.length = history.seen,
                             .bytes = 100 * history.seen,
                             .room = 1 << 20,
                             .elements_max = 230,
                             .history = &history};
    spill_growth_forecast_t growth_forecast;
    spill_growth_predict(growth_model, &array, &growth_forecast);
    assert_int_equal(growth_forecast.threshold.elements, 30);
    double days = (double)(growth_forecast.threshold.likely_ms - start_ms) / (double)day_ms - 200;
    assert_true(fabs(days - 30) < 4);
    spill_growth_model_free(growth_model);
    spill_history_release(&history);
    spill_growth_release(&growth);
    /* No element ever arrived. */
    spill_growth_init(&growth);
    assert_null(spill_growth_model_new(&growth, start_ms));
    spill_growth_release(&growth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_of_steady_arrays), cmocka_unit_test(merged_tables_forecast_the_same),
        cmocka_unit_test(bytes_to_the_limit),     cmocka_unit_test(limits_reached_already),
        cmocka_unit_test(the_future_is_not_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
