/*
 * When a job that repeats passes tries again after failed ones, and when it gives up. The time to
 * give up counts from the first failure of a row, so a long interval between good passes does not
 * shorten it.
 */
#ifndef SPILL_SERVICE_RETRY_SCHEDULE_H
#define SPILL_SERVICE_RETRY_SCHEDULE_H

#include <stdint.h>

/* Set the first two. Times are microseconds since 1970. */
typedef struct spill_retry_schedule {
    int64_t interval_s;  /* the longest pause; at least 1 */
    int64_t give_up_s;   /* how long passes may fail in a row; 0: the first failure ends it */
    int failed;          /* passes in a row */
    int64_t gives_up_us; /* a pass that fails at this time or later is the last; 0: none failed */
} spill_retry_schedule_t;

/* A pass ended well: the next failure begins a new row. */
void spill_retry_schedule_reset(spill_retry_schedule_t *schedule);

/*
 * Count a pass that failed at now_us. Returns the seconds to wait for the next one, or 0 to give
 * up. The pauses are 1, 2, 4 ... seconds, at most the interval, and none goes past the time to give
 * up.
 */
int64_t spill_retry_schedule_failed(spill_retry_schedule_t *schedule, int64_t now_us);

#endif
