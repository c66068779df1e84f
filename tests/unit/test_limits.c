/* Limits of documents, and the threshold for a size. */
#include "store/content.h"

#include <spillway/definition.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* ---- limits ---------------------------------------------------------------------------------- */

static void document_is_full_by_slots_or_bytes(void **state)
{
    (void)state;
    static const struct {
        int64_t slots, live, bytes;
        bool allowed;
    } cases[] = {
        {0, 0, 0, true},
        {10, 10, 1000, true},
        {11, 10, 1000, false}, /* one slot belongs to a removed element */
        {11, 11, 10, false},
        {10, 10, 1001, false},
        {2, 2, 1001, false},
        {1, 1, 1001, true}, /* a single element may exceed the byte bound ... */
        {5, 1, 1001, true},
        {11, 1, 100, false}, /* ... but not the bound on slots */
        {1, 1, SPILL_DOCUMENT_BYTES_MAX, true},
        {1, 1, SPILL_DOCUMENT_BYTES_MAX + 1, false},
        {0, 0, 1001, false},
    };
    const spill_limits_t limits = {.slots_max = 10, .bytes_max = 1000};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(spill_limits_fit(&limits, cases[i].slots, cases[i].live, cases[i].bytes),
                         cases[i].allowed);
}

/* ---- threshold ------------------------------------------------------------------------------- */

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
        cmocka_unit_test(document_is_full_by_slots_or_bytes),
        cmocka_unit_test(test_the_two_examples),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_at_least_one),
        cmocka_unit_test(test_bounds_of_the_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
