/* The pauses after failed passes, and when a job gives up. */
#include "service/retry_schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000)

static void test_pauses_double_up_to_the_interval(void **state)
{
    (void)state;
    static const int64_t pauses[] = {1, 2, 4, 8, 10, 10};
    spill_retry_schedule_t schedule = {.interval_s = 10, .give_up_s = 900};
    int64_t now_us = 50 * SECOND;
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        assert_int_equal(spill_retry_schedule_failed(&schedule, now_us), pauses[i]);
        assert_int_equal(schedule.gives_up_us, 950 * SECOND);
        now_us += pauses[i] * SECOND;
    }
    spill_retry_schedule_reset(&schedule);
    assert_int_equal(schedule.gives_up_us, 0);
    assert_int_equal(spill_retry_schedule_failed(&schedule, now_us), 1);
}

/* The interval is longer than the time to give up: the last good pass was an hour ago. */
static void test_the_time_counts_from_the_first_failure(void **state)
{
    (void)state;
    spill_retry_schedule_t schedule = {.interval_s = 3600, .give_up_s = 60};
    spill_retry_schedule_reset(&schedule);
    assert_int_equal(spill_retry_schedule_failed(&schedule, 3600 * SECOND), 1);
    assert_int_equal(schedule.gives_up_us, 3660 * SECOND);
    assert_int_equal(spill_retry_schedule_failed(&schedule, 3659 * SECOND), 1);
    assert_int_equal(spill_retry_schedule_failed(&schedule, 3660 * SECOND), 0);
}

/* The last pass begins when the time to give up is over, not a whole pause later. */
static void test_no_pause_goes_past_the_end(void **state)
{
    (void)state;
    spill_retry_schedule_t schedule = {.interval_s = 60, .give_up_s = 10};
    int64_t now_us = 7, passes = 0, pause_s;
    while ((pause_s = spill_retry_schedule_failed(&schedule, now_us)) > 0) {
        now_us += pause_s * SECOND;
        passes++;
    }
    assert_int_equal(now_us, 10 * SECOND + 7); /* after 1, 2, 4 and 3 seconds */
    assert_int_equal(passes, 4);
}

static void test_the_first_failure_may_be_the_last(void **state)
{
    (void)state;
    spill_retry_schedule_t schedule = {.interval_s = 60, .give_up_s = 0};
    assert_int_equal(spill_retry_schedule_failed(&schedule, SECOND), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses_double_up_to_the_interval),
        cmocka_unit_test(test_the_time_counts_from_the_first_failure),
        cmocka_unit_test(test_no_pause_goes_past_the_end),
        cmocka_unit_test(test_the_first_failure_may_be_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
