#include "store/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Element i has i % 7 bytes with value i. */
static spill_value_t sample_element(size_t i, uint8_t *bytes)
{
    memset(bytes, (int)i, 7);
    return (spill_value_t){
        .data = bytes, .size_bytes = (uint32_t)(i % 7), .type = (uint8_t)(1 + i % 5)};
}

static void assert_samples(const spill_run_t *run, size_t count)
{
    assert_int_equal(run->count, count);
    int64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[7];
        spill_value_t expected = sample_element(i, bytes);
        spill_element_t element = spill_run_element(run, i);
        assert_int_equal(element.seq, 1000 + i);
        assert_int_equal(element.value.type, expected.type);
        assert_int_equal(element.value.size_bytes, expected.size_bytes);
        if (expected.size_bytes > 0)
            assert_memory_equal(element.value.data, bytes, expected.size_bytes);
        total += expected.size_bytes;
    }
    assert_int_equal(spill_run_bytes(run), total);
}

static void fill(spill_run_t *run, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[7];
        spill_value_t value = sample_element(i, bytes);
        spill_run_add(run, 1000 + (int64_t)i, &value);
    }
}

static void growing_run_keeps_its_elements(void **state)
{
    (void)state;
    spill_run_t run = {0};
    assert_samples(&run, 0);
    fill(&run, 300);
    assert_samples(&run, 300);
    spill_run_clear(&run);
    assert_samples(&run, 0);
    fill(&run, 5);
    assert_samples(&run, 5);
    spill_run_release(&run);
    assert_null(run.entries);
    assert_samples(&run, 0);
}

static void copy_is_independent(void **state)
{
    (void)state;
    spill_run_t run = {0}, copy = {0};
    spill_run_copy(&run, &copy);
    assert_samples(&copy, 0);
    fill(&run, 100);
    spill_run_copy(&run, &copy);
    spill_run_release(&run);
    assert_samples(&copy, 100);
    fill(&run, 3);
    spill_run_copy(&run, &copy);
    assert_samples(&copy, 3);
    spill_run_release(&run);
    spill_run_release(&copy);
}

static void next_limit_follows_seen_sizes(void **state)
{
    (void)state;
    assert_int_equal(spill_run_next_limit(4, 200, 1000, 0, 0), 32); /* no size known yet */
    /* small elements: a few more */
    assert_int_equal(spill_run_next_limit(4, 200, 100000, 4, 40), 32);
    /* at most doubled per read */
    assert_int_equal(spill_run_next_limit(32, 200, 100000, 9, 9), 200);
    assert_int_equal(spill_run_next_limit(200, 200, 1000, 10, 2990), 4);
    assert_int_equal(spill_run_next_limit(200, 200, 1000, 1, 5000), 1); /* at least one */
    assert_int_equal(spill_run_next_limit(1, 200, 1000, 1, 900), 2);    /* grows again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growing_run_keeps_its_elements),
        cmocka_unit_test(copy_is_independent),
        cmocka_unit_test(next_limit_follows_seen_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
