/*
 * The requests that copy and convert make for small owners: many owners share one. An owner with
 * pages is copied alone, between the others.
 */
#include "mongo/counted_pair.h"
#include "support/server.h"
#include "tools/definition_jobs.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_copy, set_up, counted_pair_close),
        cmocka_unit_test_setup_teardown(test_differences, set_up, counted_pair_close),
        cmocka_unit_test_setup_teardown(test_convert, set_up, counted_pair_close),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
