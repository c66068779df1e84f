/* The parts of a document's state: sets of numbers, remembered operations, runs of elements. */
#include "store/content.h"
#include "store/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- sets of numbers ------------------------------------------------------------------------- */

#define UNIVERSE 40

/* Compare a set with the same set as flags. */
static void assert_same(const spill_seqs_t *seqs, const bool *flags)
{
    size_t below = 0;
    for (int64_t seq = 0; seq < UNIVERSE; seq++) {
        assert_int_equal(spill_seqs_contains(seqs, seq), flags[seq]);
        assert_int_equal(spill_seqs_count_below(seqs, seq), below);
        below += flags[seq];
    }
    assert_int_equal(seqs->count, below);
    for (size_t i = 1; i < seqs->run_count; i++)
        assert_true(seqs->runs[i - 1].end < seqs->runs[i].first);
}

/* Check the numbers that are not in the set. */
static void assert_passes(const spill_seqs_t *seqs, const bool *flags)
{
    for (int64_t seq = 0; seq < UNIVERSE; seq++) {
        int64_t up = seq, down = seq;
        while (up < UNIVERSE && flags[up])
            up++;
        while (down >= 0 && flags[down])
            down--;
        assert_int_equal(spill_seqs_pass(seqs, seq), up);
        assert_int_equal(spill_seqs_pass_down(seqs, seq), down);
        int64_t passed = 0;
        for (int64_t absent = up; absent < UNIVERSE && passed < 5; absent++)
            if (!flags[absent])
                assert_int_equal(spill_seqs_absent(seqs, seq, passed++), absent);
    }
}

static void sets_behave_as_sets(void **state)
{
    (void)state;
    spill_seqs_t seqs = {0}, copy = {0};
    bool flags[UNIVERSE] = {false};
    assert_same(&seqs, flags);
    uint32_t random = 1;
    for (int i = 0; i < 2000; i++) {
        random = random * 1664525u + 1013904223u;
        int64_t seq = (random >> 8) % UNIVERSE;
        if (random % 16 == 0) {
            spill_seqs_drop_below(&seqs, seq);
            memset(flags, 0, (size_t)seq);
        } else if (random % 16 == 1) {
            spill_seqs_keep_below(&seqs, seq);
            memset(flags + seq, 0, (size_t)(UNIVERSE - seq));
        } else if (random % 16 == 2) {
            int64_t end = seq + (random >> 4) % 8;
            end = end < UNIVERSE ? end : UNIVERSE;
            spill_seqs_insert_run(&seqs, seq, end);
            memset(flags + seq, 1, (size_t)(end - seq));
        } else {
            spill_seqs_insert(&seqs, seq);
            flags[seq] = true;
        }
        assert_passes(&seqs, flags);
        assert_same(&seqs, flags);
        spill_seqs_copy(&seqs, &copy);
        assert_same(&copy, flags);
    }
    spill_seqs_release(&seqs);
    spill_seqs_release(&copy);
    assert_int_equal(seqs.count, 0);
}

static void slots_are_live_or_deleted(void **state)
{
    (void)state;
    spill_state_t document = {.first = 100, .live = 7};
    assert_int_equal(spill_state_slots(&document), 7);
    assert_int_equal(spill_state_end(&document), 107);
    spill_seqs_insert(&document.deleted, 103);
    spill_seqs_insert(&document.deleted, 107);
    assert_int_equal(spill_state_slots(&document), 9);
    assert_int_equal(spill_state_end(&document), 109);
    spill_state_release(&document);
    assert_int_equal(document.first, 0);
}

static void copy_of_state_is_independent(void **state)
{
    (void)state;
    spill_state_t document = {.present = true, .rev = 5, .intent = true, .intent_page = 3},
                  copy = {0};
    spill_seqs_insert(&document.deleted, 2);
    spill_state_copy(&document, &copy);
    spill_seqs_insert(&document.deleted, 4);
    assert_int_equal(copy.deleted.count, 1);
    assert_true(copy.intent);
    assert_int_equal(copy.intent_page, 3);
    spill_state_copy(&document, &copy);
    spill_state_release(&document);
    assert_int_equal(copy.deleted.count, 2);
    assert_true(spill_seqs_contains(&copy.deleted, 4));
    spill_state_release(&copy);
}

/* ---- remembered operations ------------------------------------------------------------------- */

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

static void copy_of_ops_is_independent(void **state)
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

/* ---- runs of elements ------------------------------------------------------------------------ */

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

static void copy_of_run_is_independent(void **state)
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

/*
 * Every document of few numbers. Strays are the deleted numbers that the array, if it grew, would
 * reach only later: without them, the number after the last slot is that of the next element.
 */
static void strays_are_dropped(void **state)
{
    (void)state;
    enum { NUMBERS = 7, FIRST = 3 };
    for (unsigned set = 0; set < 1U << NUMBERS; set++) {
        for (int64_t live = 0; live < NUMBERS; live++) {
            spill_state_t document = {.present = true, .first = FIRST, .live = live};
            for (int64_t i = 0; i < NUMBERS; i++)
                if (set >> i & 1U)
                    spill_seqs_insert(&document.deleted, FIRST + i);
            size_t before = document.deleted.count;
            int64_t last = spill_seqs_absent(&document.deleted, FIRST, live > 0 ? live - 1 : 0);
            bool any = spill_state_drop_strays(&document);
            assert_int_equal(any, document.deleted.count < before);
            int64_t end = spill_state_end(&document);
            for (int64_t i = 0; i < NUMBERS; i++) {
                bool was = set >> i & 1U;
                assert_int_equal(spill_seqs_contains(&document.deleted, FIRST + i),
                                 was && FIRST + i < end);
            }
            assert_int_equal(spill_seqs_absent(&document.deleted, FIRST, live), end);
            if (live > 0) /* no element has another number */
                assert_int_equal(spill_seqs_absent(&document.deleted, FIRST, live - 1), last);
            assert_false(spill_state_drop_strays(&document));
            spill_state_release(&document);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_behave_as_sets),
        cmocka_unit_test(slots_are_live_or_deleted),
        cmocka_unit_test(copy_of_state_is_independent),
        cmocka_unit_test(window_drops_oldest_operation),
        cmocka_unit_test(ids_are_compared_in_full),
        cmocka_unit_test(copy_of_ops_is_independent),
        cmocka_unit_test(growing_run_keeps_its_elements),
        cmocka_unit_test(copy_of_run_is_independent),
        cmocka_unit_test(next_limit_follows_seen_sizes),
        cmocka_unit_test(strays_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
