/* The parts of a benchmark: medians with intervals, percentiles, threads, elements. */
#include "tools/bench/samples.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>
#include <cmocka.h>

static void assert_near(double value, double expected)
{
    assert_true(fabs(value - expected) < 1e-9);
}

/* The numbers 1 to count in no order. */
static spill_samples_t numbers(size_t count)
{
    spill_samples_t samples = {0};
    for (size_t i = 0; i < count; i++)
        spill_samples_add(&samples, (double)((i * 7919) % count + 1));
    return samples;
}

/* Ranks and confidence of the binomial distribution: tables of sign-test intervals. */
static void intervals_are_of_the_sign_test(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        double median, low, high, confidence;
    } cases[] = {{1, 1, 1, 1, 0},
                 {2, 1.5, 1, 2, 0.5},
                 {5, 3, 1, 5, 0.9375},
                 {6, 3.5, 1, 6, 0.96875},
                 {8, 4.5, 1, 8, 0.9921875},
                 {9, 5, 2, 8, 0.9609375},
                 {15, 8, 4, 12, 0.96484375},
                 {20, 10.5, 6, 15, 0.958610534668}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        spill_samples_t samples = numbers(cases[i].count);
        spill_median_t median = spill_samples_median(&samples);
        assert_near(median.median, cases[i].median);
        assert_near(median.low, cases[i].low);
        assert_near(median.high, cases[i].high);
        assert_near(median.confidence, cases[i].confidence);
        spill_samples_release(&samples);
    }
    spill_samples_t none = {0};
    assert_near(spill_samples_median(&none).median, 0);
}

static void percentiles_are_the_nearest_rank(void **state)
{
    (void)state;
    spill_samples_t samples = numbers(1000), none = {0};
    assert_near(spill_samples_percentile(&samples, 0), 1);
    assert_near(spill_samples_percentile(&samples, 500), 500);
    assert_near(spill_samples_percentile(&samples, 990), 990);
    assert_near(spill_samples_percentile(&samples, 1000), 1000);
    assert_near(spill_samples_percentile(&none, 500), 0);
    spill_samples_release(&samples);
    samples = numbers(3);
    assert_near(spill_samples_percentile(&samples, 500), 2);
    assert_near(spill_samples_percentile(&samples, 990), 3);
    spill_samples_release(&samples);
}

static void count_up(void *context, int thread, int count)
{
    atomic_int *counts = context;
    atomic_fetch_add(&counts[thread], count);
}

static void every_thread_works_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 5; threads += 2) {
        atomic_int counts[5] = {0};
        spill_error_t error;
        double seconds = -1;
        assert_int_equal(spill_crew_run(count_up, counts, threads, 7, &seconds, &error), SPILL_OK);
        assert_true(seconds >= 0);
        for (int i = 0; i < 5; i++)
            assert_int_equal(atomic_load(&counts[i]), i < threads ? 7 : 0);
    }
}

static void elements_are_of_their_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {SPILL_BENCH_ELEMENT_MIN, 200, 1000, SPILL_BENCH_ELEMENT_MAX};
    uint8_t *bytes = bson_malloc(SPILL_BENCH_ELEMENT_MAX);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint64_t number = 0; number < 40; number++) {
            bson_t element;
            bson_iter_t at;
            spill_bench_element(bytes, sizes[i], number);
            assert_true(bson_init_static(&element, bytes, sizes[i]));
            assert_true(bson_validate(&element, BSON_VALIDATE_UTF8, NULL));
            assert_true(bson_iter_init_find(&at, &element, "at"));
            assert_int_equal(bson_iter_date_time(&at),
                             INT64_C(1600000000000) + (int64_t)number * 1000);
        }
    bson_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_are_of_the_sign_test),
        cmocka_unit_test(percentiles_are_the_nearest_rank),
        cmocka_unit_test(every_thread_works_once),
        cmocka_unit_test(elements_are_of_their_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
