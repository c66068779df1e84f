/* Which arrays are sets: exact up to a length, by a part of the values beyond it. */
#include "tools/scan/repeats.h"

#include <bson/bson.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static spill_repeats_table_t table;

static void check(spill_repeats_t *repeats, const bson_t *array)
{
    spill_repeats_check(repeats, &table, bson_get_data(array), bson_count_keys(array));
}

static bool is_set(const char *json)
{
    spill_repeats_t repeats = {0};
    bson_t *array = bson_new_from_json((const uint8_t *)json, -1, NULL);
    assert_non_null(array);
    check(&repeats, array);
    bson_destroy(array);
    return spill_repeats_is_set(&repeats);
}

static void values_compare_as_ids(void **state)
{
    (void)state;
    assert_true(is_set("{\"0\": 1, \"1\": 2}"));
    assert_true(is_set("{\"0\": 1, \"1\": \"1\", \"2\": null}"));
    assert_true(is_set("{\"0\": {\"$oid\": \"000000000000000000000001\"}, \"1\": {\"$oid\": "
                       "\"000000000000000000000002\"}}"));
    assert_false(is_set("{\"0\": 1, \"1\": {\"$numberDouble\": \"1.0\"}}"));
    assert_false(is_set("{\"0\": {\"$numberLong\": \"1\"}, \"1\": {\"$numberDecimal\": \"1\"}}"));
    assert_false(is_set("{\"0\": \"a\", \"1\": \"b\", \"2\": {\"$symbol\": \"a\"}}"));
    assert_false(is_set("{\"0\": \"a\", \"1\": \"a\"}"));
    assert_false(is_set("{\"0\": null, \"1\": null}"));
}

static void only_scalars_that_can_be_ids(void **state)
{
    (void)state;
    assert_false(is_set("{}"));
    assert_false(is_set("{\"0\": 1}")); /* no evidence */
    assert_false(is_set("{\"0\": 1, \"1\": {\"a\": 1}}"));
    assert_false(is_set("{\"0\": 1, \"1\": [2]}"));
    assert_false(is_set("{\"0\": 1.5, \"1\": 2.5}"));
    assert_false(is_set("{\"0\": {\"$date\": 1}, \"1\": {\"$date\": 2}}"));
}

/* `length` numbers, and once more `again`, if it is not negative. */
static spill_repeats_t check_numbers(int length, int again)
{
    spill_repeats_t repeats = {0};
    bson_t array = BSON_INITIALIZER;
    for (int i = 0; i < length; i++)
        BSON_APPEND_INT32(&array, "n", i);
    if (again >= 0)
        BSON_APPEND_INT32(&array, "n", again);
    check(&repeats, &array);
    bson_destroy(&array);
    return repeats;
}

static void long_arrays_are_sampled(void **state)
{
    (void)state;
    enum { EXACT = SPILL_REPEATS_EXACT, LONG = 5 * EXACT, TRIES = 20 };
    int found = 0;
    spill_repeats_t repeats = check_numbers(EXACT, -1);
    assert_true(spill_repeats_is_set(&repeats));
    assert_false(repeats.sampled);
    for (int again = 0; again < EXACT; again += EXACT / 4)
        assert_false(spill_repeats_is_set(&(spill_repeats_t){
            .arrays = 1, .excluded = check_numbers(EXACT - 1, again % (EXACT - 1)).excluded}));
    repeats = check_numbers(LONG, -1);
    assert_true(spill_repeats_is_set(&repeats));
    assert_true(repeats.sampled);
    for (int i = 0; i < TRIES; i++)
        found += check_numbers(LONG, i).excluded;
    assert_in_range(found, 1, TRIES / 2); /* about an eighth */
    spill_repeats_table_release(&table);
}

static void tables_of_threads_are_merged(void **state)
{
    (void)state;
    spill_repeats_t one = {.arrays = 2}, two = {.arrays = 3, .sampled = true};
    spill_repeats_merge(&one, &two);
    assert_int_equal(one.arrays, 5);
    assert_true(one.sampled);
    assert_true(spill_repeats_is_set(&one));
    two.excluded = true;
    spill_repeats_merge(&one, &two);
    assert_false(spill_repeats_is_set(&one));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_compare_as_ids),
        cmocka_unit_test(only_scalars_that_can_be_ids),
        cmocka_unit_test(long_arrays_are_sampled),
        cmocka_unit_test(tables_of_threads_are_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
