/* The real time, in the form of spill_clock_t. */
#ifndef SPILL_UTIL_CLOCK_H
#define SPILL_UTIL_CLOCK_H

#include <stdint.h>

/* Microseconds since 1970, by the system's clock. `context` is not used. */
int64_t spill_clock_now_us(void *context);

/* Pause this thread at least for the duration; below 1, return at once. */
void spill_clock_sleep_us(void *context, int64_t duration_us);

#endif
