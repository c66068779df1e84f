#include "store/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static spill_op_entry_t entry_of(int number)
{
    spill_op_entry_t entry = {.ordinal = number, .seq = number * 10, .count = 1};
    entry.id_bytes = (uint8_t)snprintf((char *)entry.id, sizeof entry.id, "op-%d", number);
    return entry;
}

static void push_op(spill_ops_t *ops, int number, size_t window)
{
    spill_op_entry_t entry = entry_of(number);
    spill_ops_push(ops, &entry, window);
}

static const spill_op_entry_t *find_op(const spill_ops_t *ops, int number)
{
    spill_op_entry_t entry = entry_of(number);
    return spill_ops_find(ops, entry.id, entry.id_bytes);
}

static void window_drops_oldest_operation(void **state)
{
    (void)state;
    spill_ops_t ops = {0};
    assert_null(find_op(&ops, 0));
    for (int i = 0; i < 20; i++) {
        push_op(&ops, i, 5);
        assert_int_equal(ops.count, i < 5 ? i + 1 : 5);
    }
    for (int i = 0; i < 20; i++) {
        const spill_op_entry_t *found = find_op(&ops, i);
        assert_int_equal(found != NULL, i >= 15);
        if (found)
            assert_int_equal(found->seq, i * 10);
    }
    push_op(&ops, 20, 2); /* a smaller window from now on */
    assert_int_equal(ops.count, 2);
    assert_non_null(find_op(&ops, 19));
    push_op(&ops, 21, 4);
    assert_int_equal(ops.count, 3);
    spill_ops_release(&ops);
    assert_int_equal(ops.count, 0);
}

static void ids_are_compared_in_full(void **state)
{
    (void)state;
    spill_ops_t ops = {0};
    push_op(&ops, 1, 5);
    assert_null(spill_ops_find(&ops, "op-", 3));
    assert_null(spill_ops_find(&ops, "op-11", 5));
    assert_non_null(spill_ops_find(&ops, "op-1", 4));
    spill_ops_release(&ops);
}

static void copy_is_independent(void **state)
{
    (void)state;
    spill_ops_t ops = {0}, copy = {0};
    spill_ops_copy(&ops, &copy);
    assert_int_equal(copy.count, 0);
    for (int i = 0; i < 9; i++)
        push_op(&ops, i, 100);
    spill_ops_copy(&ops, &copy);
    spill_ops_release(&ops);
    for (int i = 0; i < 9; i++)
        assert_int_equal(find_op(&copy, i)->ordinal, i);
    spill_ops_release(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(window_drops_oldest_operation),
        cmocka_unit_test(ids_are_compared_in_full),
        cmocka_unit_test(copy_is_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
