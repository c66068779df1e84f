#include "store/summary.h"

#include "store/embedded/embedded_codec.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static spill_definition_t definition;

static int set_up(void **state)
{
    (void)state;
    return spill_definition_preset(&definition, "reviews-bucket", "x", NULL) != SPILL_OK;
}

static void add(spill_window_stats_t *window_stats, const bson_t *element)
{
    spill_value_t value = spill_value_from_document(element);
    spill_window_stats_add(window_stats, &definition, &value);
}

static void add_whole(spill_window_stats_t *window_stats, int64_t number)
{
    bson_t element = BSON_INITIALIZER;
    BSON_APPEND_INT64(&element, "rating", number);
    add(window_stats, &element);
    bson_destroy(&element);
}

static void add_real(spill_window_stats_t *window_stats, double number)
{
    bson_t element = BSON_INITIALIZER;
    BSON_APPEND_DOUBLE(&element, "rating", number);
    add(window_stats, &element);
    bson_destroy(&element);
}

static void test_integers_stay_integers(void **state)
{
    (void)state;
    spill_window_stats_t window_stats = {0};
    spill_statistics_t all;
    add_whole(&window_stats, INT64_C(9007199254740993)); /* no double has this value */
    add_whole(&window_stats, 4);
    add_whole(&window_stats, -7);
    spill_window_stats_derive(&window_stats, 5, &all);
    assert_int_equal(all.count, 5);
    assert_int_equal(all.values, 3);
    assert_false(all.sum.real);
    assert_int_equal(all.sum.whole, INT64_C(9007199254740990));
    assert_int_equal(all.min.whole, -7);
    assert_int_equal(all.max.whole, INT64_C(9007199254740993));
}

static void test_a_sum_that_does_not_fit(void **state)
{
    (void)state;
    spill_window_stats_t window_stats = {0};
    spill_statistics_t all;
    add_whole(&window_stats, INT64_MAX);
    add_whole(&window_stats, 1);
    add_whole(&window_stats, -10); /* fits again, but not in between */
    spill_window_stats_derive(&window_stats, 3, &all);
    assert_true(all.sum.real);
    assert_true(all.sum.value == (double)INT64_MAX + 1 - 10);
    assert_false(all.max.real);
}

static void test_doubles_are_summed_from_the_left(void **state)
{
    (void)state;
    static const double values[] = {1e16, 1, 1, -1e16, 0.1};
    spill_window_stats_t window_stats = {0};
    spill_statistics_t all;
    double sum = 0;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        add_real(&window_stats, values[i]);
        sum += values[i];
    }
    spill_window_stats_derive(&window_stats, 5, &all);
    assert_memory_equal(&all.sum.value, &sum, sizeof sum);
    assert_true(all.average == sum / 5);
}

/* A value between 2^53 and 2^54 is compared exactly, not as the nearest double. */
static void test_least_and_greatest_are_compared_exactly(void **state)
{
    (void)state;
    spill_window_stats_t window_stats = {0};
    add_real(&window_stats, 9007199254740992.0);
    add_whole(&window_stats, INT64_C(9007199254740993));
    add_whole(&window_stats, INT64_C(9007199254740992)); /* equal to the first, which stays */
    assert_int_equal(window_stats.max.whole, INT64_C(9007199254740993));
    assert_true(window_stats.min.real);
}

static void test_elements_without_value(void **state)
{
    (void)state;
    spill_window_stats_t window_stats = {0}, none = {0};
    spill_statistics_t all;
    bson_t text = BSON_INITIALIZER, other = BSON_INITIALIZER;
    bson_decimal128_t decimal;
    bson_decimal128_from_string("2.5", &decimal);
    BSON_APPEND_UTF8(&text, "rating", "5");
    BSON_APPEND_DECIMAL128(&other, "rating", &decimal);
    add(&window_stats, &text);
    add(&window_stats, &other);
    add_real(&window_stats, NAN);
    add_real(&window_stats, INFINITY);
    spill_value_t number = {
        .data = (const uint8_t *)"\1\0\0\0", .size_bytes = 4, .type = BSON_TYPE_INT32};
    spill_window_stats_add(&window_stats, &definition, &number);
    assert_true(spill_window_stats_equal(&window_stats, &none));
    bson_t document = BSON_INITIALIZER;
    spill_window_stats_render(&window_stats, 5, &definition, &document);
    char *json = bson_as_relaxed_extended_json(&document, NULL);
    assert_string_equal(json, "{ \"stats\" : { \"count\" : 5, \"sum\" : 0 } }");
    bson_free(json);
    spill_window_stats_derive(&window_stats, 5, &all);
    assert_int_equal(all.values, 0);
    bson_destroy(&document);
    bson_destroy(&text);
    bson_destroy(&other);
}

static void test_parts_are_joined(void **state)
{
    (void)state;
    spill_window_stats_t left = {0}, right = {0}, none = {0};
    spill_statistics_t all = {0}, one;
    add_whole(&left, 5);
    add_whole(&left, 4);
    add_real(&right, 2.5);
    spill_window_stats_derive(&left, 3, &one);
    spill_statistics_join(&all, &one);
    assert_false(all.sum.real);
    spill_window_stats_derive(&none, 2, &one);
    spill_statistics_join(&all, &one);
    spill_window_stats_derive(&right, 1, &one);
    spill_statistics_join(&all, &one);
    assert_int_equal(all.count, 6);
    assert_int_equal(all.values, 3);
    assert_true(all.sum.value == 11.5 && all.sum.real);
    assert_true(all.min.value == 2.5 && all.max.whole == 5);
    assert_true(all.average == 11.5 / 3);
}

static void test_round_trip_in_documents_and_records(void **state)
{
    (void)state;
    spill_window_stats_t tallies[3] = {{0}};
    add_whole(&tallies[0], INT64_MIN);
    add_real(&tallies[1], -0.1);
    add_whole(&tallies[1], INT64_MAX);
    add_whole(&tallies[2], 3);
    for (size_t i = 0; i < 3; i++) {
        bson_t document = BSON_INITIALIZER;
        bson_iter_t iter;
        spill_window_stats_t back;
        spill_window_stats_append(&tallies[i], "tally", &document);
        assert_true(bson_iter_init_find(&iter, &document, "tally"));
        spill_value_t value = spill_value_from_iter(&iter);
        assert_true(spill_window_stats_read(&value, &back));
        assert_true(spill_window_stats_equal(&back, &tallies[i]));
        bson_destroy(&document);

        spill_state_t made = {.present = true,
                              .incarnation = 5,
                              .rev = 6,
                              .window_stats = tallies[i]},
                      read = {0};
        spill_buffer_t bytes = SPILL_BUFFER_INIT;
        spill_state_encode(&made, i == 0, &bytes);
        assert_true(spill_state_decode(bytes.data, bytes.size, i == 0, &read));
        assert_true(spill_window_stats_equal(&read.window_stats, &tallies[i]));
        for (size_t size = 0; size < bytes.size; size++) /* a cut record is refused */
            assert_false(spill_state_decode(bytes.data, size, i == 0, &read));
        spill_buffer_release(&bytes);
    }
}

static void test_malformed_statistics_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"5",
                                        "{}",
                                        "{\"values\": 1}",
                                        "{\"values\": 0, \"run\": 0.5, \"min\": 1, \"max\": 2}",
                                        "{\"values\": 1, \"run\": \"a\", \"min\": 1, \"max\": 2}",
                                        "{\"values\": 1, \"run\": 1, \"min\": 1, \"most\": 2}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        bson_t storage = BSON_INITIALIZER;
        spill_value_t value;
        spill_window_stats_t window_stats;
        assert_int_equal(spill_value_from_json(wrong[i], strlen(wrong[i]), &storage, &value, NULL),
                         SPILL_OK);
        assert_false(spill_window_stats_read(&value, &window_stats));
        bson_destroy(&storage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers_stay_integers),
        cmocka_unit_test(test_a_sum_that_does_not_fit),
        cmocka_unit_test(test_doubles_are_summed_from_the_left),
        cmocka_unit_test(test_least_and_greatest_are_compared_exactly),
        cmocka_unit_test(test_elements_without_value),
        cmocka_unit_test(test_parts_are_joined),
        cmocka_unit_test(test_round_trip_in_documents_and_records),
        cmocka_unit_test(test_malformed_statistics_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
