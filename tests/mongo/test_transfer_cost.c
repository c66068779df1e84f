/*
 * The requests that copy and convert make for small owners: many owners share one. An owner with
 * pages is copied alone, between the others; to referenced elements in batches.
 */
#include "mongo/counted_pair.h"
#include "store/store.h"
#include "support/server.h"
#include "tools/definition_jobs.h"
#include "tools/migrate/planned.h"
#include "tools/migrate/staged.h"

#include <spillway/spillway.h>
#include <spillway/verify.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 300, LONG = 150, LONG_ELEMENTS = 30, ELEMENTS = 2 * (OWNERS - 1) + LONG_ELEMENTS };

/* For 300 owners; without groups it is about 18 for each. */
enum { TRIPS_MAX = 200 };

/* One owner that is converted to referenced elements; with a page capacity of 100 it takes 181. */
enum { REFERENCED = 3000, REFERENCED_TRIPS_MAX = 77 };

/* Stage 2 of a migration, of which one owner of two batches takes so many requests. It was 24 with
 * a read for each step. */
enum { STAGED = 1500, STAGED_TRIPS_MAX = 21 };

/* Two elements each, and another field in the head; one owner has pages. */
static void fill(spill_store_t *store)
{
    spill_definition_t definition;
    spill_array_t *array;
    spill_error_t error;
    counted_pair_must(spill_definition_preset(&definition, "feed-recent", "feed", &error), &error);
    definition.bounds.threshold = definition.bounds.page_capacity = 5;
    definition.largest = definition.bounds;
    counted_pair_must(spill_store_define(store, &definition, &error), &error);
    counted_pair_must(spill_array_open(store, "feed", &array, &error), &error);
    for (int i = 0; i < OWNERS; i++) {
        bson_t storage, *update = BCON_NEW("$set", "{", "number", BCON_INT32(i), "}");
        spill_value_t owner = counted_pair_owner(i, &storage);
        spill_value_t two[] = {owner, owner};
        spill_append_options_t options;
        spill_append_options_init(&options);
        options.update = update;
        counted_pair_must(spill_array_append(array, &owner, two, 2, &options, NULL, &error),
                          &error);
        for (int k = 2; i == LONG && k < LONG_ELEMENTS; k++)
            counted_pair_must(spill_array_append(array, &owner, &owner, 1, NULL, NULL, &error),
                              &error);
        bson_destroy(update);
        bson_destroy(&storage);
    }
    spill_array_close(array);
}

static int set_up(void **state)
{
    counted_pair_open(state);
    const counted_pair_t *pair = *state;
    fill(pair->stores[0]);
    return 0;
}

/* The heads' other fields are copied too, and are compared by a second copy. */
static void test_copy(void **state)
{
    const counted_pair_t *pair = *state;
    const spill_copy_options_t options = {0};
    spill_error_t error;
    for (int run = 0; run < 2; run++) {
        spill_copy_result_t result = {0};
        int64_t before = counted_pair_requests(pair);
        counted_pair_must(
            spill_copy(pair->stores[0], pair->stores[1], "feed", &options, &result, &error),
            &error);
        int64_t trips = counted_pair_requests(pair) - before;
        assert_int_equal(result.owners, OWNERS);
        assert_int_equal(result.elements, run == 0 ? ELEMENTS : 0);
        assert_int_equal(result.before, run == 0 ? 0 : ELEMENTS);
        assert_int_equal(result.verified, ELEMENTS);
        assert_int_equal(result.differences, 0);
        print_message("copy, run %d: %lld requests\n", run, (long long)trips);
        assert_in_range(trips, 1, TRIPS_MAX);
    }
    counted_pair_check(pair->stores[1], "feed", OWNERS);
}

/* A difference is found, and nothing is changed. */
static void test_differences(void **state)
{
    const counted_pair_t *pair = *state;
    const spill_copy_options_t options = {0};
    spill_copy_result_t result = {0};
    spill_array_t *array;
    spill_error_t error;
    bson_t storage;
    counted_pair_must(
        spill_copy(pair->stores[0], pair->stores[1], "feed", &options, &result, &error), &error);
    counted_pair_must(spill_array_open(pair->stores[1], "feed", &array, &error), &error);
    spill_value_t owner = counted_pair_owner(7, &storage),
                  value = spill_value_from_utf8(&storage, "other");
    counted_pair_must(spill_array_edit(array, &owner, 1, &value, &error), &error);
    bson_destroy(&storage);
    owner = counted_pair_owner(8, &storage);
    bson_t *update = BCON_NEW("$set", "{", "number", BCON_INT32(-1), "}");
    counted_pair_must(spill_array_update(array, &owner, update, &error), &error);
    bson_destroy(update);
    bson_destroy(&storage);
    owner = counted_pair_owner(9, &storage);
    counted_pair_must(spill_array_append(array, &owner, &owner, 1, NULL, NULL, &error), &error);
    bson_destroy(&storage);
    spill_array_close(array);
    result = (spill_copy_result_t){0};
    counted_pair_must(
        spill_copy(pair->stores[0], pair->stores[1], "feed", &options, &result, &error), &error);
    assert_int_equal(result.differences, 2); /* the field is set again */
    assert_int_equal(result.ahead, 1);
    assert_int_equal(result.elements, 0);
}

static void test_convert(void **state)
{
    const counted_pair_t *pair = *state;
    spill_store_t *store = pair->stores[0];
    const spill_keep_t keep = SPILL_KEEP_OLDEST;
    spill_definition_t from, to;
    spill_copy_result_t result = {0};
    spill_error_t error;
    counted_pair_must(spill_store_definition(store, "feed", &from, &error), &error);
    counted_pair_must(
        spill_convert_definition(&from, "log", SPILL_LAYOUT_OUTLIER, &keep, &to, &error), &error);
    const spill_copy_options_t options = {.as = "log", .definition = &to};
    int64_t before = counted_pair_requests(pair);
    counted_pair_must(spill_convert(store, "feed", &options, &result, &error), &error);
    int64_t trips = counted_pair_requests(pair) - before;
    assert_int_equal(result.elements, ELEMENTS);
    assert_int_equal(result.verified, ELEMENTS);
    print_message("convert: %lld requests\n", (long long)trips);
    assert_in_range(trips, 1, TRIPS_MAX);
    counted_pair_check(store, "log", OWNERS);
}

/* An array whose elements are documents. */
static void append_documents(spill_array_t *array, int number, int count)
{
    enum { TOGETHER = 500 };
    spill_error_t error;
    bson_t storage;
    spill_value_t owner = counted_pair_owner(number, &storage);
    for (int i = 0; i < count; i += TOGETHER) {
        spill_value_t some[TOGETHER];
        bson_t *documents[TOGETHER];
        for (int k = 0; k < TOGETHER; k++) {
            documents[k] = BCON_NEW("rating", BCON_INT32(i + k));
            some[k] = (spill_value_t){.data = bson_get_data(documents[k]),
                                      .size_bytes = documents[k]->len,
                                      .type = BSON_TYPE_DOCUMENT};
        }
        counted_pair_must(spill_array_append(array, &owner, some, TOGETHER, NULL, NULL, &error),
                          &error);
        for (int k = 0; k < TOGETHER; k++)
            bson_destroy(documents[k]);
    }
    bson_destroy(&storage);
}

static void fill_long(spill_store_t *store)
{
    spill_definition_t definition;
    spill_array_t *array;
    spill_error_t error;
    counted_pair_must(spill_definition_preset(&definition, "feed-recent", "long", &error), &error);
    snprintf(definition.collection, SPILL_NAME_SIZE, "longOwners");
    snprintf(definition.page_collection, SPILL_NAME_SIZE, "longPages");
    counted_pair_must(spill_store_define(store, &definition, &error), &error);
    counted_pair_must(spill_array_open(store, "long", &array, &error), &error);
    append_documents(array, 0, REFERENCED);
    spill_array_close(array);
}

/* Convert the array, with the preset's page capacity or another one, and return the requests. */
static int64_t convert_long(const counted_pair_t *pair, const char *as, spill_layout_t layout,
                            int64_t page_capacity)
{
    spill_store_t *store = pair->stores[0];
    spill_definition_t from, to;
    spill_copy_result_t result = {0};
    spill_error_t error;
    counted_pair_must(spill_store_definition(store, "long", &from, &error), &error);
    counted_pair_must(spill_convert_definition(&from, as, layout, NULL, &to, &error), &error);
    const spill_copy_options_t options = {
        .as = as, .definition = &to, .bounds = {.page_capacity = page_capacity}};
    int64_t before = counted_pair_requests(pair);
    counted_pair_must(spill_convert(store, "long", &options, &result, &error), &error);
    int64_t requests = counted_pair_requests(pair) - before;
    print_message("%s: %lld requests\n", as, (long long)requests);
    assert_int_equal(result.elements, REFERENCED);
    assert_int_equal(result.verified, REFERENCED);
    assert_int_equal(result.differences, 0);
    counted_pair_check(store, as, 1);
    return requests;
}

/* The page capacity decides how many elements share the requests of a batch. */
static void test_convert_to_referenced(void **state)
{
    fill_long(((const counted_pair_t *)*state)->stores[0]);
    int64_t small = convert_long(*state, "small", SPILL_LAYOUT_REFERENCE, 100);
    int64_t preset = convert_long(*state, "preset", SPILL_LAYOUT_REFERENCE, 0);
    int64_t subset = convert_long(*state, "subset", SPILL_LAYOUT_SUBSET, 0);
    assert_in_range(preset, 1, REFERENCED_TRIPS_MAX);
    assert_in_range(subset, 1, REFERENCED_TRIPS_MAX);
    assert_true(preset < small);
}

/* Migrate so many owners in two stages, and return the requests of the second one. */
static int64_t catch_up(const counted_pair_t *pair, int side, const char *preset, int owners)
{
    spill_store_t *store = pair->stores[side];
    spill_planned_t planned;
    spill_definition_t definition;
    const spill_migrate_options_t options = {.threads = 1};
    spill_catch_up_result_t result = {0};
    spill_array_t *original;
    spill_error_t error;
    char users[SPILL_NAME_SIZE];
    store->defer_room = INT64_MAX; /* spills end with their appends */
    snprintf(users, sizeof users, "%sUsers", preset);
    counted_pair_must(spill_definition_preset(&definition, preset, preset, &error), &error);
    snprintf(definition.collection, SPILL_NAME_SIZE, "%sHeads", preset);
    snprintf(definition.page_collection, SPILL_NAME_SIZE, "%sElements", preset);
    if (definition.layout == SPILL_LAYOUT_SUBSET)
        snprintf(definition.sort_field, SPILL_NAME_SIZE, "rating");
    spill_planned_init(&planned, &definition, users, "activities");
    const spill_staged_t staged = {.store = store, .uri = pair->uris[side], .planned = &planned};
    counted_pair_must(spill_staged_begin(&staged, &error), &error);
    counted_pair_must(spill_array_open(store, planned.original.name, &original, &error), &error);
    for (int i = 0; i < owners; i++)
        append_documents(original, i, STAGED);
    int64_t before = counted_pair_requests(pair);
    counted_pair_must(
        spill_catch_up(store, planned.original.name, preset, &options, &result, &error), &error);
    int64_t requests = counted_pair_requests(pair) - before;
    assert_int_equal(result.failed, 0);
    assert_int_equal(result.copied.elements, (int64_t)owners * STAGED);
    assert_int_equal(result.copied.verified, (int64_t)owners * STAGED);
    counted_pair_check(store, preset, owners);
    spill_array_close(original);
    return requests;
}

/*
 * The head that was counted begins the read of the original, which ends with the check of its
 * pages; the elements are compared by one answer; and the heads of the original are read together
 * at the end.
 */
static void test_catch_up(void **state)
{
    enum { FEW = 1, MANY = 6 };
    static const char *const presets[] = {"reviews-separate", "reviews-subset"};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        int64_t few = catch_up(*state, 0, presets[i], FEW);
        int64_t many = catch_up(*state, 1, presets[i], MANY);
        int64_t each = (many - few) / (MANY - FEW);
        print_message("stage 2 to %s: %lld requests for %d owners, %lld for %d\n", presets[i],
                      (long long)few, FEW, (long long)many, MANY);
        assert_in_range(each, 1, STAGED_TRIPS_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_copy, set_up, counted_pair_close),
        cmocka_unit_test_setup_teardown(test_differences, set_up, counted_pair_close),
        cmocka_unit_test_setup_teardown(test_convert, set_up, counted_pair_close),
        cmocka_unit_test_setup_teardown(test_convert_to_referenced, set_up, counted_pair_close),
        cmocka_unit_test_setup_teardown(test_catch_up, counted_pair_open, counted_pair_close),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
