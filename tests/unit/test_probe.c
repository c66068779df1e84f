/* The probe sees what takes long while it takes, and forgets it after a second. */
#include "tools/probe.h"

#include "util/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct work {
    atomic_int done;
    atomic_bool waits, fails;
} work_t;

static bool operation(void *context)
{
    work_t *work = context;
    while (atomic_load(&work->waits))
        usleep(1000);
    atomic_fetch_add(&work->done, 1);
    return !atomic_load(&work->fails);
}

/* Until it was done so many times more. */
static void let_run(work_t *work, int times)
{
    int from = atomic_load(&work->done);
    while (atomic_load(&work->done) < from + times)
        usleep(1000);
}

static void what_is_under_way_counts(void **state)
{
    (void)state;
    work_t work = {0};
    spill_probe_t probe;
    spill_error_t error;
    assert_int_equal(spill_probe_start(&probe, operation, &work, &error), SPILL_OK);
    let_run(&work, 3);
    atomic_store(&work.waits, true);
    while (spill_probe_latency(&probe) < 0.3) /* none has ended with that */
        usleep(1000);
    int done = atomic_load(&work.done);
    atomic_store(&work.waits, false);
    let_run(&work, 1);
    assert_true(atomic_load(&work.done) > done);
    while (spill_probe_latency(&probe) >= 0.3) /* after a second it is forgotten */
        usleep(1000);
    spill_probe_stop(&probe);
    spill_probe_stop(&probe);
}

static void a_failure_is_told(void **state)
{
    (void)state;
    work_t work = {.fails = true};
    spill_probe_t probe;
    spill_error_t error;
    assert_int_equal(spill_probe_start(&probe, operation, &work, &error), SPILL_OK);
    while (spill_probe_latency(&probe) >= 0)
        usleep(1000);
    atomic_store(&work.fails, false);
    while (spill_probe_latency(&probe) < 0)
        usleep(1000);
    spill_probe_stop(&probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_under_way_counts),
        cmocka_unit_test(a_failure_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
