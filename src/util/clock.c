#include "util/clock.h"

#include <errno.h>
#include <time.h>

int64_t spill_clock_now_us(void *context)
{
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void spill_clock_sleep_us(void *context, int64_t duration_us)
{
    (void)context;
    if (duration_us < 1)
        return;
    struct timespec left = {
        .tv_sec = (time_t)(duration_us / 1000000),
        .tv_nsec = (long)(duration_us % 1000000) * 1000,
    };
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}
