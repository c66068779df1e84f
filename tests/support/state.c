#include "support/state.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

void assert_same_numbers(const spill_state_t *left, const spill_state_t *right)
{
    assert_int_equal(left->present, right->present);
    assert_int_equal(left->first, right->first);
    assert_int_equal(left->live, right->live);
    assert_int_equal(left->op_count, right->op_count);
    assert_int_equal(left->deleted.count, right->deleted.count);
    assert_true(spill_seqs_equal(&left->deleted, &right->deleted));
    assert_int_equal(left->gaps, right->gaps);
}

void assert_same_state(const spill_state_t *left, const spill_state_t *right)
{
    assert_same_numbers(left, right);
    if (!left->present)
        return;
    assert_int_equal(left->incarnation, right->incarnation);
    assert_int_equal(left->rev, right->rev);
    assert_int_equal(left->live_bytes, right->live_bytes);
    assert_int_equal(left->sealed, right->sealed);
    assert_int_equal(left->closed, right->closed);
    assert_int_equal(left->pages, right->pages);
    assert_int_equal(left->removed, right->removed);
    assert_int_equal(left->watermark, right->watermark);
    assert_int_equal(left->total, right->total);
    assert_int_equal(left->fields_bytes, right->fields_bytes);
    assert_int_equal(left->intent, right->intent);
    assert_int_equal(left->intent_seq, right->intent_seq);
    assert_int_equal(left->intent_page, right->intent_page);
    assert_int_equal(left->intent_edit, right->intent_edit);
    assert_int_equal(left->intent_source_rev, right->intent_source_rev);
    assert_true(spill_sum_equal(&left->intent_value, &right->intent_value));
    assert_true(spill_sum_equal(&left->sum, &right->sum));
    assert_true(spill_top_equal(&left->top, &right->top));
    assert_int_equal(left->page, right->page);
    assert_true(spill_window_stats_equal(&left->window_stats, &right->window_stats));
    assert_int_equal(left->source_rev, right->source_rev);
}
