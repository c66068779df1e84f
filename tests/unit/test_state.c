#include "store/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

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

static void copy_is_independent(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_behave_as_sets),
        cmocka_unit_test(slots_are_live_or_deleted),
        cmocka_unit_test(copy_is_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
