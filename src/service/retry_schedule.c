/* The pauses between failed passes. */
#include "service/retry_schedule.h"

#define US_PER_S INT64_C(1000000)

void spill_retry_schedule_reset(spill_retry_schedule_t *schedule)
{
    schedule->failed = 0;
    schedule->gives_up_us = 0;
}

static int64_t least_of(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

int64_t spill_retry_schedule_failed(spill_retry_schedule_t *schedule, int64_t now_us)
{
    int64_t pause_s = 1;
    if (schedule->failed == 0)
        schedule->gives_up_us = now_us + schedule->give_up_s * US_PER_S;
    if (now_us >= schedule->gives_up_us)
        return 0;
    for (int i = 0; i < schedule->failed && pause_s < schedule->interval_s; i++)
        pause_s *= 2;
    schedule->failed++;
    int64_t left_s = (schedule->gives_up_us - now_us + US_PER_S - 1) / US_PER_S;
    return least_of(pause_s, least_of(schedule->interval_s, left_s));
}
