/*
 * Migrations in two stages (staged.h): the k-th store call fails in each possible way, on the
 * model store and the embedded store.
 */
#include "model/staged.h"
#include "support/effort.h"
#include "support/embedded.h"
#include "support/model_store.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bool survives_failed_call(bool memory, size_t goal, int64_t at, fault_t fault, bool undo)
{
    disk_t *disk = memory ? NULL : disk_new();
    spill_store_t *store = NULL;
    if (memory)
        store = model_store_open();
    else
        store = embedded_on_disk(disk, SPILL_DURABILITY_LOG);
    bool reached = staged_survives(&staged_goals[goal], store, at, fault, undo);
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
    if (disk)
        disk_free(disk);
    return reached;
}

static void every_call(bool memory)
{
    const int64_t step = effort(1, 61, 193); /* each fault costs a complete run */
    for (size_t g = 0; g < STAGED_GOALS; g++)
        for (int i = 2 * FAULT_FAIL; i < 2 * FAULT_COUNT; i++) {
            int64_t k = (int64_t)(5 * g + 7 * (size_t)i) % step;
            while (survives_failed_call(memory, g, k, (fault_t)(i / 2), i % 2 == 0))
                k += step;
        }
}

/*
 * A run fails after it dropped the last original array and before it dropped the definition. The
 * copies must not be mistaken for dropped arrays.
 */
static void every_call_of_a_finish_fails(void **state)
{
    (void)state;
    int64_t at = 0;
    while (survives_failed_call(true, STAGED_GOALS - 1, at, FAULT_FAIL, false))
        at += effort(1, 3, 9);
}

typedef void (*scenario_fn)(const staged_goal_t *goal, spill_store_t *store);

static void run_with_stores(scenario_fn scenario, size_t goals)
{
    for (size_t g = 0; g < goals; g++) {
        spill_store_t *store = model_store_open();
        scenario(&staged_goals[g], store);
        assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
    }
}

static void rest_of_original_is_dropped(void **state)
{
    (void)state;
    /* in a bucket the edit may move to another window */
    run_with_stores(staged_original_is_dropped, 5);
}

static void appends_beside_a_finish_are_kept(void **state)
{
    (void)state;
    run_with_stores(staged_writer_continues, STAGED_GOALS);
}

static void lost_original_does_not_drop_copies(void **state)
{
    (void)state;
    run_with_stores(staged_original_vanishes, STAGED_GOALS);
}

/* The layouts in which a drop has a step before it drops the head. */
static void interrupted_drop_is_completed(void **state)
{
    (void)state;
    run_with_stores(staged_drop_is_broken_off, 2);
}

static void another_plan_undoes_nothing(void **state)
{
    (void)state;
    run_with_stores(staged_definition_is_another, 1);
}

static void another_operator_finishes_meanwhile(void **state)
{
    (void)state;
    for (size_t g = 0; g < STAGED_GOALS; g++) {
        bool met = true;
        for (int64_t at = 0; met; at += effort(1, 5, 17)) {
            spill_store_t *store = model_store_open();
            met = staged_meets_another(&staged_goals[g], store, at);
            assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
        }
    }
}

static void every_call_on_the_memory_store(void **state)
{
    (void)state;
    every_call(true);
}

static void every_call_on_the_embedded_store(void **state)
{
    (void)state;
    every_call(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rest_of_original_is_dropped),
        cmocka_unit_test(appends_beside_a_finish_are_kept),
        cmocka_unit_test(lost_original_does_not_drop_copies),
        cmocka_unit_test(interrupted_drop_is_completed),
        cmocka_unit_test(another_plan_undoes_nothing),
        cmocka_unit_test(another_operator_finishes_meanwhile),
        cmocka_unit_test(every_call_of_a_finish_fails),
        cmocka_unit_test(every_call_on_the_memory_store),
        cmocka_unit_test(every_call_on_the_embedded_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
