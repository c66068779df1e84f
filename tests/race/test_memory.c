/* The embedded store in memory under many threads. */
#include "appenders.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void race(spill_keep_t keep)
{
    spill_store_t *store;
    spill_error_t error;
    assert_int_equal(spill_store_open("memory:", NULL, &store, &error), SPILL_OK);
    race_settings_t settings = {.keep = keep, .threads = 6, .appends = 120};
    run_race(store, &settings);
    assert_int_equal(spill_store_close(store, &error), SPILL_OK);
}

static void newest(void **state)
{
    (void)state;
    race(SPILL_KEEP_NEWEST);
}

static void oldest(void **state)
{
    (void)state;
    race(SPILL_KEEP_OLDEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(newest), cmocka_unit_test(oldest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
