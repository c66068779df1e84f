/* The clock of real time (a spill_clock_t), the clock of durations and waits, and times as text. */
#ifndef SPILL_UTIL_CLOCK_H
#define SPILL_UTIL_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Microseconds since 1970, by the system's clock. `context` is not used. */
int64_t spill_clock_now_us(void *context);

/* Pause this thread at least for the duration; below 1, return at once. */
void spill_clock_sleep_us(void *context, int64_t duration_us);

/*
 * Microseconds of CLOCK_MONOTONIC, for durations and waits: a change of the system's time does not
 * move that clock. `context` is not used.
 */
int64_t spill_clock_monotonic_us(void *context);

/* The same in whole seconds. */
int64_t spill_clock_monotonic_s(void);

/* The end of a wait as a time of CLOCK_MONOTONIC: at `us`, or `wait_us` from now. */
struct timespec spill_clock_at_us(int64_t us);
struct timespec spill_clock_after_us(int64_t wait_us);

/* Initialize a condition. Its pthread_cond_timedwait then takes such a time. */
void spill_clock_condition_init(pthread_cond_t *condition);

/*
 * Read a text of `size` bytes as a time (ISO 8601): "2026-08-21", "2026-08-21T10:30", "2026-08-21
 * 10:30:15.25Z", "2026-08-21T10:30:15+02:00" (also +0200 and +02), "2026-08-21T10",
 * "20260821T103015Z". The text must have nothing before or behind that. A time without a zone is in
 * UTC. "2026-08" is the first day of the month. This form and "20260821" may also be other numbers,
 * so they are times only in the years 1900 to 2099; a year alone is none. *time_ms: milliseconds
 * since 1970; further digits are dropped. False if the text has another form, or names a day or
 * time that does not exist.
 */
bool spill_iso_time(const char *text, size_t size, int64_t *time_ms);

#endif
