/* The probe reports a slow operation while it runs, and forgets it after a second. */
#include "tools/throttle.h"

#include "support/deadline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct work {
    atomic_int done;
    atomic_bool waits, fails;
} work_t;

static bool operation(void *context)
{
    work_t *work = context;
    deadline_t deadline = deadline_begin();
    while (atomic_load(&work->waits))
        deadline_pause(&deadline, "the test lets the operation continue");
    atomic_fetch_add(&work->done, 1);
    return !atomic_load(&work->fails);
}

/* Wait until the operation has ended `times` more times. */
static void let_run(work_t *work, int times)
{
    deadline_t deadline = deadline_begin();
    int from = atomic_load(&work->done);
    while (atomic_load(&work->done) < from + times)
        deadline_pause(&deadline, "the probe repeats its operation");
}

static void operation_in_progress_counts(void **state)
{
    (void)state;
    work_t work = {0};
    spill_probe_t probe;
    spill_error_t error;
    assert_int_equal(spill_probe_start(&probe, operation, &work, &error), SPILL_OK);
    let_run(&work, 3);
    atomic_store(&work.waits, true);
    deadline_t deadline = deadline_begin();
    while (spill_probe_latency(&probe) < 0.3) /* no operation that ended took so long */
        deadline_pause(&deadline, "the operation in progress counts");
    int done = atomic_load(&work.done);
    atomic_store(&work.waits, false);
    let_run(&work, 1);
    assert_true(atomic_load(&work.done) > done);
    deadline = deadline_begin();
    while (spill_probe_latency(&probe) >= 0.3) /* the probe forgets it after a second */
        deadline_pause(&deadline, "the probe forgets a slow operation");
    spill_probe_stop(&probe);
    spill_probe_stop(&probe);
}

static void failure_is_reported(void **state)
{
    (void)state;
    work_t work = {.fails = true};
    spill_probe_t probe;
    spill_error_t error;
    assert_int_equal(spill_probe_start(&probe, operation, &work, &error), SPILL_OK);
    deadline_t deadline = deadline_begin();
    while (spill_probe_latency(&probe) >= 0)
        deadline_pause(&deadline, "the probe reports that the operation fails");
    atomic_store(&work.fails, false);
    deadline = deadline_begin();
    while (spill_probe_latency(&probe) < 0)
        deadline_pause(&deadline, "the probe reports that the operation succeeds again");
    spill_probe_stop(&probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operation_in_progress_counts),
        cmocka_unit_test(failure_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
