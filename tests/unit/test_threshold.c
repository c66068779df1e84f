/* Threshold arithmetic. */
#include <spillway/definition.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_the_two_examples(void **state)
{
    (void)state;
    assert_int_equal(spill_threshold(200 * 1024, 200), 1000);
    assert_int_equal(spill_threshold(200 * 1000, 200), 1000);
    assert_int_equal(spill_threshold(200 * 1024, 2 * 1024), 100);
    assert_int_equal(spill_threshold(200 * 1000, 2 * 1000), 100);
}

static void test_rounding(void **state)
{
    (void)state;
    assert_int_equal(spill_threshold(7, 1), 7);
    assert_int_equal(spill_threshold(99, 1), 99);
    assert_int_equal(spill_threshold(109, 1), 100);
    assert_int_equal(spill_threshold(119, 1), 110);
    assert_int_equal(spill_threshold(98765, 1), 98000);
    assert_int_equal(spill_threshold(INT64_MAX, 1), INT64_C(9200000000000000000));
}

static void test_at_least_one(void **state)
{
    (void)state;
    assert_int_equal(spill_threshold(100, 101), 1);
    assert_int_equal(spill_threshold(0, 100), 1);
    assert_int_equal(spill_threshold(-5, 100), 1);
    assert_int_equal(spill_threshold(50, 0), 50);
    assert_int_equal(spill_threshold(50, -1), 50);
}

/*
 * Never above the elements that fit; never below nine tenths of them once the number has two
 * digits.
 */
static void test_bounds_of_the_result(void **state)
{
    (void)state;
    for (int64_t target = 1; target < 3000000; target = target * 11 / 10 + 1) {
        for (int64_t element = 1; element < 5000; element = element * 13 / 10 + 1) {
            int64_t fits = target / element;
            int64_t threshold = spill_threshold(target, element);
            assert_true(threshold >= 1);
            assert_true(threshold <= (fits > 0 ? fits : 1));
            assert_true(threshold * 10 >= fits * 9);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_two_examples),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_at_least_one),
        cmocka_unit_test(test_bounds_of_the_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
