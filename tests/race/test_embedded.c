/* The embedded store under many threads, on the engine in memory. */
#include "appenders.h"
#include "support/embedded.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void race_on(spill_durability_t durability, spill_keep_t keep, void (*disturb)(void *))
{
    disk_t *disk = disk_new();
    spill_store_t *store = embedded_on_disk(disk, durability);
    race_settings_t settings = {
        .keep = keep, .threads = 6, .appends = 120, .disturb = disturb, .context = disk};
    run_race(store, &settings);
    spill_counters_t counters;
    spill_store_counters(store, &counters);
    assert_true(counters.commits > 0);
    assert_int_equal(counters.syncs, durability == SPILL_DURABILITY_FSYNC ? counters.commits : 0);
    assert_true(counters.spills > 0);
    assert_true(counters.bytes_written > settings.threads * settings.appends * 16);
    embedded_close(store);
    disk_free(disk);
}

static void race(spill_keep_t keep, void (*disturb)(void *))
{
    race_on(SPILL_DURABILITY_FSYNC, keep, disturb);
    race_on(SPILL_DURABILITY_LOG, keep, disturb);
}

static void fail_writes(void *disk)
{
    disk_fail_writes(disk, 3, 2, SPILL_NO_SPACE);
}

static void lose_answers(void *disk)
{
    disk_fail_writes(disk, 2, 1, SPILL_UNKNOWN);
}

static void newest(void **state)
{
    (void)state;
    race(SPILL_KEEP_NEWEST, NULL);
}

static void oldest(void **state)
{
    (void)state;
    race(SPILL_KEEP_OLDEST, NULL);
}

static void newest_while_writes_fail(void **state)
{
    (void)state;
    race(SPILL_KEEP_NEWEST, fail_writes);
}

static void oldest_while_writes_fail(void **state)
{
    (void)state;
    race(SPILL_KEEP_OLDEST, fail_writes);
}

static void newest_while_answers_are_lost(void **state)
{
    (void)state;
    race(SPILL_KEEP_NEWEST, lose_answers);
}

static void oldest_while_answers_are_lost(void **state)
{
    (void)state;
    race(SPILL_KEEP_OLDEST, lose_answers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newest),
        cmocka_unit_test(oldest),
        cmocka_unit_test(newest_while_writes_fail),
        cmocka_unit_test(oldest_while_writes_fail),
        cmocka_unit_test(newest_while_answers_are_lost),
        cmocka_unit_test(oldest_while_answers_are_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
