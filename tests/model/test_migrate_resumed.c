/* A migration begins again where an interrupted run ended (resumed.h). */
#include "model/resumed.h"
#include "support/embedded.h"
#include "support/model_store.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { OWNERS = 400 };

typedef void (*run_fn)(spill_store_t *store, int owners);

static void run_with(run_fn run, bool memory)
{
    disk_t *disk = memory ? NULL : disk_new();
    spill_store_t *store =
        memory ? model_store_open() : embedded_on_disk(disk, SPILL_DURABILITY_LOG);
    run(store, OWNERS);
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
    if (disk)
        disk_free(disk);
}

static void in_place(void **state)
{
    (void)state;
    run_with(resumed_in_place, true);
    run_with(resumed_in_place, false);
}

static void other_bounds(void **state)
{
    (void)state;
    run_with(resumed_with_other_bounds, true);
}

static void skipped(void **state)
{
    (void)state;
    run_with(resumed_before_a_skipped_owner, true);
}

static void undone(void **state)
{
    (void)state;
    run_with(resumed_after_an_undo, true);
}

static void second_stage(void **state)
{
    (void)state;
    run_with(resumed_second_stage, true);
    run_with(resumed_second_stage, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_place), cmocka_unit_test(other_bounds), cmocka_unit_test(skipped),
        cmocka_unit_test(undone),   cmocka_unit_test(second_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
