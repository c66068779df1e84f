/* Quantiles of a sketch, compared with the quantiles of the sorted values. */
#include "tools/scan/sketch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <bson/bson.h>
#include <cmocka.h>

enum { VALUES = 20000 };

static uint64_t state = 88172645463325252U;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int compare_numbers(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void check_against_sorted(uint64_t *values, size_t count, const spill_sketch_t *sketch)
{
    static const uint64_t ranks[] = {1, 10, 100, 250, 500, 900, 990, 999, 1000};
    uint64_t sum = 0;
    qsort(values, count, sizeof *values, compare_numbers);
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    assert_int_equal(sketch->count, count);
    assert_true(sketch->sum == sum);
    assert_true(sketch->min == values[0] && sketch->max == values[count - 1]);
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        size_t rank = (count * ranks[i] + 999) / 1000;
        double exact = (double)values[rank - 1];
        double told = (double)spill_sketch_quantile(sketch, ranks[i]);
        double error = told > exact ? told - exact : exact - told;
        assert_true(error <= exact * SPILL_SKETCH_ERROR);
        if (exact < 128 || ranks[i] == 1000)
            assert_true(told == exact);
    }
}

static uint64_t random_values(int shape)
{
    uint64_t random = next_random();
    switch (shape) {
    case 0:
        return random % 100;
    case 1:
        return random % 1000000;
    case 2: /* a long tail */
        return 1000000000 / (random % 1000000 + 1);
    case 3:
        return random >> (random % 50 + 14);
    default: /* constant except for a few */
        return random % 1000 == 0 ? 5000 : 1536;
    }
}

static void quantiles_are_within_the_error(void **context)
{
    (void)context;
    uint64_t *values = calloc(VALUES, sizeof *values);
    for (int shape = 0; shape < 5; shape++) {
        spill_sketch_t sketch;
        spill_sketch_init(&sketch);
        for (size_t i = 0; i < VALUES; i++) {
            values[i] = random_values(shape);
            spill_sketch_add(&sketch, values[i], 1);
        }
        check_against_sorted(values, VALUES, &sketch);
        spill_sketch_release(&sketch);
    }
    free(values);
}

static void parts_merge_to_the_whole(void **context)
{
    (void)context;
    spill_sketch_t whole, parts[3];
    spill_sketch_init(&whole);
    for (int i = 0; i < 3; i++)
        spill_sketch_init(&parts[i]);
    for (int i = 0; i < 10000; i++) {
        uint64_t value = random_values(i % 5);
        spill_sketch_add(&whole, value, 2);
        spill_sketch_add(&parts[i % 2], value, 2); /* the third part is empty */
    }
    spill_sketch_merge(&parts[2], &parts[0]);
    spill_sketch_merge(&parts[2], &parts[1]);
    assert_true(parts[2].count == whole.count && parts[2].sum == whole.sum);
    assert_true(parts[2].min == whole.min && parts[2].max == whole.max);
    for (uint64_t rank = 0; rank <= 1000; rank++)
        assert_true(spill_sketch_quantile(&parts[2], rank) == spill_sketch_quantile(&whole, rank));
    spill_sketch_release(&whole);
    for (int i = 0; i < 3; i++)
        spill_sketch_release(&parts[i]);
}

static void extremes_are_exact(void **context)
{
    (void)context;
    spill_sketch_t sketch;
    spill_sketch_init(&sketch);
    assert_int_equal(spill_sketch_quantile(&sketch, 500), 0);
    spill_sketch_add(&sketch, 0, 1);
    assert_int_equal(spill_sketch_quantile(&sketch, 500), 0);
    spill_sketch_add(&sketch, UINT64_MAX, 1);
    assert_true(spill_sketch_quantile(&sketch, 1000) == UINT64_MAX);
    assert_true(sketch.capacity * sizeof *sketch.buckets <= 32768);
    spill_sketch_release(&sketch);
}

/* Every value is counted in its bin. */
static void bins_have_all_values(void **context)
{
    (void)context;
    static uint64_t values[VALUES];
    spill_sketch_t sketch;
    spill_sketch_bin_t *bins;
    spill_sketch_init(&sketch);
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = next_random() >> (next_random() % 40 + 24);
        spill_sketch_add(&sketch, values[i], 1);
    }
    qsort(values, VALUES, sizeof *values, compare_numbers);
    size_t count = spill_sketch_histogram(&sketch, &bins), at = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t end = spill_sketch_bin_end(bins[i].least), found = 0;
        assert_true(i == 0 || bins[i].least >= spill_sketch_bin_end(bins[i - 1].least));
        assert_true(bins[i].least < 8 ? end == bins[i].least + 1
                                      : end <= bins[i].least + bins[i].least / 4);
        for (; at < VALUES && values[at] < end; at++)
            found += values[at] >= bins[i].least;
        assert_true(found == bins[i].count && found > 0);
    }
    assert_int_equal(at, VALUES);
    bson_free(bins);
    spill_sketch_release(&sketch);
    assert_int_equal(spill_sketch_histogram(&sketch, &bins), 0);
    bson_free(bins);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_within_the_error),
        cmocka_unit_test(parts_merge_to_the_whole),
        cmocka_unit_test(extremes_are_exact),
        cmocka_unit_test(bins_have_all_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
