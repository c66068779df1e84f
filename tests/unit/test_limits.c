#include "store/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

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
        assert_int_equal(spill_limits_allow(&limits, cases[i].slots, cases[i].live, cases[i].bytes),
                         cases[i].allowed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(document_is_full_by_slots_or_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
