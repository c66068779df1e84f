/* Times of elements in bounded memory, the sample of owners, and how an array grew. */
#include "tools/scan/growth.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MINUTE = 60000, POINTS = 64 };

/* Element i of `count` arrived at minute i; the array may be newest-first. */
static spill_history_t minutes_in(size_t most, int64_t count, bool newest_first)
{
    spill_history_t history;
    spill_history_init(&history, most);
    for (int64_t i = 0; i < count; i++)
        spill_history_add(&history, MINUTE * (newest_first ? count - 1 - i : i));
    spill_history_sort(&history);
    return history;
}

static spill_history_t minutes(int64_t count, bool newest_first)
{
    return minutes_in(POINTS, count, newest_first);
}

static void few_are_exact(void **state)
{
    (void)state;
    for (int64_t count = 0; count <= POINTS; count++) {
        spill_history_t history = minutes(count, count % 2 == 0);
        assert_int_equal(history.stride, 1);
        for (int64_t i = 0; i < count; i++) {
            assert_true(spill_history_before(&history, (double)(i * MINUTE)) == (double)i);
            assert_true(spill_history_before(&history, (double)(i * MINUTE + 1)) ==
                        (double)(i + 1));
        }
        spill_history_release(&history);
    }
}

static void many_are_near(void **state)
{
    (void)state;
    for (int64_t count = POINTS + 1; count < 200000; count = count * 3 / 2) {
        for (int newest_first = 0; newest_first < 2; newest_first++) {
            spill_history_t history = minutes(count, newest_first);
            assert_true(history.count <= POINTS && history.count >= POINTS / 2);
            assert_int_equal(history.seen, count);
            assert_int_equal(history.oldest, 0);
            assert_int_equal(history.newest, (count - 1) * MINUTE);
            assert_int_equal(newest_first ? history.falling : history.rising, count - 1);
            for (int64_t i = 0; i < count; i += count / 50 + 1) {
                double before = spill_history_before(&history, (double)(i * MINUTE));
                assert_true(fabs(before - (double)i) <= 2 * (double)history.stride);
            }
            assert_true(spill_history_before(&history, 1e18) == (double)count);
            spill_history_release(&history);
        }
    }
}

/*
 * One element of 1970 and one of 9999 among the elements of one day must not reduce that day to a
 * single point.
 */
static void strays_do_no_harm(void **state)
{
    (void)state;
    spill_history_t history;
    int64_t day = INT64_C(1600000000000);
    spill_history_init(&history, POINTS);
    for (int64_t i = 0; i < 1440; i++)
        spill_history_add(&history, i == 700   ? 0
                                    : i == 800 ? INT64_C(253400000000000)
                                               : day + i * MINUTE);
    spill_history_sort(&history);
    double noon = spill_history_before(&history, (double)(day + 720 * MINUTE));
    assert_true(fabs(noon - 720) <= 2 * (double)history.stride);
    spill_history_release(&history);
}

static void cleared_history_is_empty(void **state)
{
    (void)state;
    spill_history_t history = minutes(1000, false);
    spill_history_clear(&history);
    assert_int_equal(history.seen, 0);
    spill_history_add(&history, 5);
    assert_int_equal(history.stride, 1);
    assert_int_equal(history.oldest, 5);
    assert_int_equal(history.rising, 0);
    spill_history_release(&history);
}

/* Merging arrays of very different lengths weights each by its elements. */
static void merged_weigh_by_elements(void **state)
{
    (void)state;
    spill_history_t all;
    int64_t early = 0, late = 0;
    spill_history_init(&all, 512);
    for (int64_t i = 0; i < 3000; i++) {
        int64_t length = i % 100 == 0 ? 5000 : 1 + i % 3; /* the long arrays arrived late */
        spill_history_t history;
        spill_history_init(&history, POINTS);
        for (int64_t j = 0; j < length; j++)
            spill_history_add(&history, (length == 5000 ? 100000 : 0) + j % 1000);
        *(length == 5000 ? &late : &early) += length;
        spill_history_merge(&all, &history);
        spill_history_release(&history);
    }
    spill_history_sort(&all);
    assert_int_equal(all.seen, early + late);
    assert_true(all.count <= 512);
    double part = spill_history_before(&all, 50000) / (double)all.seen;
    assert_true(fabs(part - (double)early / (double)(early + late)) < 0.02);
    spill_history_release(&all);
}

static void copy_is_independent(void **state)
{
    (void)state;
    spill_history_t copy, history = minutes(100, false);
    spill_history_copy(&history, &copy);
    spill_history_release(&history);
    assert_true(fabs(spill_history_before(&copy, 50 * MINUTE) - 50) <= 4);
    spill_history_release(&copy);
    spill_history_init(&history, POINTS);
    spill_history_copy(&history, &copy);
    assert_int_equal(copy.count, 0);
    spill_history_release(&copy);
    spill_history_release(&history);
}

/* ---- the sample ------------------------------------------------------------------------------ */

static void add_owners(spill_growth_t *growth, int64_t from, int64_t to, int64_t step)
{
    for (int64_t i = from; i != to; i += step) {
        spill_history_t history = minutes(i % 2 ? 10 : 20 + i % 7, false);
        spill_growth_add(growth, (uint64_t)i, &history);
        spill_history_release(&history);
    }
}

static int by_hash(const void *left, const void *right)
{
    uint64_t a = ((const spill_growth_owner_t *)left)->hash;
    uint64_t b = ((const spill_growth_owner_t *)right)->hash;
    return (a > b) - (a < b);
}

/* The sample has the same owners for any order and any number of threads. */
static void the_sample_is_fair(void **state)
{
    (void)state;
    spill_growth_t up, down, half, other;
    spill_growth_init(&up);
    spill_growth_init(&down);
    spill_growth_init(&half);
    spill_growth_init(&other);
    add_owners(&up, 0, 5000, 1);
    add_owners(&down, 4999, -1, -1);
    add_owners(&half, 0, 2000, 1);
    add_owners(&other, 2000, 5000, 1);
    spill_growth_merge(&half, &other);
    assert_int_equal(up.all.seen, half.all.seen);
    spill_growth_t *all[] = {&up, &down, &half};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(all[i]->owner_count, SPILL_GROWTH_OWNERS);
        qsort(all[i]->owners, SPILL_GROWTH_OWNERS, sizeof *all[i]->owners, by_hash);
    }
    int64_t lengths = 0;
    for (size_t i = 0; i < SPILL_GROWTH_OWNERS; i++) {
        assert_true(up.owners[i].hash == down.owners[i].hash);
        assert_true(up.owners[i].hash == half.owners[i].hash);
        assert_true(up.owners[i].history.seen >= SPILL_GROWTH_LENGTH_MIN);
        lengths += up.owners[i].history.seen;
    }
    /* Lengths are 20 .. 26, evenly distributed: the mean of 256 of them is within 5 sigma of 23. */
    assert_true(fabs((double)lengths / SPILL_GROWTH_OWNERS - 23) < 5 * 2.0 / 16);
    spill_growth_release(&other);
    for (size_t i = 0; i < 3; i++)
        spill_growth_release(all[i]);
}

/* ---- pace ------------------------------------------------------------------------------------ */

static void pace_of_steady_array(void **state)
{
    (void)state;
    spill_history_t history = minutes_in(256, 10000, false);
    spill_pace_t pace = spill_history_pace(&history, 10000 * MINUTE);
    assert_true(fabs(pace.per_day / 1440 - 1) < 0.05);
    assert_true(fabs(pace.acceleration - 1) < 0.05);
    assert_true(fabs(pace.burst - 0.5) < 0.05);
    spill_history_release(&history);
}

static void pace_of_uneven_arrays(void **state)
{
    (void)state;
    spill_history_t history;
    spill_history_init(&history, 256);
    for (int64_t i = 0; i < 1000; i++) /* half of them in one minute, near the end */
        spill_history_add(&history, i < 500 ? i * MINUTE : 499 * MINUTE + (i - 500) * 100);
    spill_history_sort(&history);
    spill_pace_t pace = spill_history_pace(&history, 500 * MINUTE);
    assert_true(pace.burst < 0.01);
    assert_true(pace.acceleration > 3);
    /* At twice that time, no element has arrived for a while. */
    pace = spill_history_pace(&history, 1000 * MINUTE);
    assert_true(pace.per_day == 0);
    assert_true(pace.acceleration == 0);
    spill_history_clear(&history);
    spill_history_add(&history, 5);
    pace = spill_history_pace(&history, 10);
    assert_true(pace.per_day == 0 && pace.acceleration == 0 && pace.burst == 0);
    spill_history_release(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_are_exact),
        cmocka_unit_test(many_are_near),
        cmocka_unit_test(strays_do_no_harm),
        cmocka_unit_test(cleared_history_is_empty),
        cmocka_unit_test(merged_weigh_by_elements),
        cmocka_unit_test(copy_is_independent),
        cmocka_unit_test(the_sample_is_fair),
        cmocka_unit_test(pace_of_steady_array),
        cmocka_unit_test(pace_of_uneven_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
