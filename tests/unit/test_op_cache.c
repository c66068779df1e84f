/* The cache of operation windows of the embedded store. */
#include "store/embedded/leader_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static spill_record_key_t owner_of(int number)
{
    uint8_t bytes[4] = {(uint8_t)number, (uint8_t)(number >> 8), (uint8_t)(number >> 16), 1};
    spill_record_key_t key;
    spill_record_key_init(&key, 7, bytes, sizeof bytes);
    return key;
}

static void add(spill_op_cache_t *cache, spill_op_window_t *window, int64_t id, int64_t window_max)
{
    spill_op_cache_add(cache, window, &id, sizeof id, window_max);
}

static int64_t search(const spill_op_window_t *window, int64_t id, int64_t below)
{
    return spill_op_window_search(window, &id, sizeof id, below);
}

static void finds_each_operation_of_the_window(void **state)
{
    (void)state;
    enum { OPERATIONS = 1000, WINDOW = 100 };
    spill_op_cache_t cache = {0};
    spill_record_key_t owner = owner_of(1);
    spill_op_window_t *window = spill_op_cache_begin(&cache, &owner, 5, 40);
    assert_int_equal(search(window, 0, INT64_MAX), -1);
    for (int64_t id = 0; id < OPERATIONS; id++) {
        add(&cache, window, id, WINDOW);
        assert_int_equal(window->end, 41 + id);
        int64_t oldest = id < WINDOW ? 0 : id + 1 - WINDOW;
        assert_int_equal(window->from, 40 + oldest);
        for (int64_t other = 0; other <= id; other += 7)
            assert_int_equal(search(window, other, INT64_MAX), other < oldest ? -1 : 40 + other);
        assert_int_equal(search(window, OPERATIONS + id, INT64_MAX), -1);
    }
    spill_op_cache_clear(&cache);
    assert_int_equal(cache.bytes, 0);
}

static void finds_the_same_id_from_the_newest_down(void **state)
{
    (void)state;
    spill_op_cache_t cache = {0};
    spill_record_key_t owner = owner_of(1);
    spill_op_window_t *window = spill_op_cache_begin(&cache, &owner, 5, 0);
    for (int i = 0; i < 30; i++)
        add(&cache, window, i % 10, 64);
    assert_int_equal(search(window, 3, INT64_MAX), 23);
    assert_int_equal(search(window, 3, 23), 13);
    assert_int_equal(search(window, 3, 13), 3);
    assert_int_equal(search(window, 3, 3), -1);
    spill_op_cache_clear(&cache);
}

/* A smaller window drops the operations beyond it at once. */
static void window_becomes_smaller(void **state)
{
    (void)state;
    spill_op_cache_t cache = {0};
    spill_record_key_t owner = owner_of(1);
    spill_op_window_t *window = spill_op_cache_begin(&cache, &owner, 5, 0);
    for (int64_t id = 0; id < 50; id++)
        add(&cache, window, id, 64);
    add(&cache, window, 50, 10);
    assert_int_equal(window->from, 41);
    assert_int_equal(search(window, 40, INT64_MAX), -1);
    assert_int_equal(search(window, 41, INT64_MAX), 41);
    spill_op_cache_clear(&cache);
}

static void belongs_to_one_incarnation_and_end(void **state)
{
    (void)state;
    spill_op_cache_t cache = {0};
    spill_record_key_t owner = owner_of(1), other = owner_of(2);
    assert_null(spill_op_cache_find(&cache, &owner, 5, 0));
    spill_op_window_t *window = spill_op_cache_begin(&cache, &owner, 5, 0);
    add(&cache, window, 1, 64);
    assert_ptr_equal(spill_op_cache_find(&cache, &owner, 5, 1), window);
    assert_null(spill_op_cache_find(&cache, &owner, 5, 0));
    assert_null(spill_op_cache_find(&cache, &owner, 6, 1));
    assert_null(spill_op_cache_find(&cache, &other, 5, 1));
    spill_op_cache_forget(&cache, &other);
    assert_ptr_equal(spill_op_cache_find(&cache, &owner, 5, 1), window);
    spill_op_cache_forget(&cache, &owner);
    assert_null(spill_op_cache_find(&cache, &owner, 5, 1));
    spill_op_cache_clear(&cache);
}

/* Windows of 10 000 operations, many more than fit. */
static void keeps_its_bound(void **state)
{
    (void)state;
    enum { OWNERS = 100, OPERATIONS = 10000 };
    spill_op_cache_t cache = {0};
    int cached = 0;
    for (int number = 0; number < OWNERS; number++) {
        spill_record_key_t owner = owner_of(number);
        spill_op_window_t *window = spill_op_cache_begin(&cache, &owner, 5, 0);
        for (int64_t id = 0; id < OPERATIONS; id++)
            add(&cache, window, id, OPERATIONS);
        assert_true(cache.bytes <= SPILL_OP_CACHE_BYTES_MAX);
        assert_ptr_equal(spill_op_cache_find(&cache, &owner, 5, OPERATIONS), window);
    }
    for (int number = 0; number < OWNERS; number++) {
        spill_record_key_t owner = owner_of(number);
        cached += spill_op_cache_find(&cache, &owner, 5, OPERATIONS) != NULL;
    }
    assert_in_range(cached, 10, OWNERS - 1);
    spill_op_cache_clear(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_each_operation_of_the_window),
        cmocka_unit_test(finds_the_same_id_from_the_newest_down),
        cmocka_unit_test(window_becomes_smaller),
        cmocka_unit_test(belongs_to_one_incarnation_and_end),
        cmocka_unit_test(keeps_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
