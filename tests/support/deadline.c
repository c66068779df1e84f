#include "deadline.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_SECONDS = 60, PAUSE_US = 1000 };

static int64_t monotonic_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

deadline_t deadline_begin(void)
{
    const char *text = getenv("SPILLWAY_WAIT_SECONDS");
    int64_t seconds = text != NULL ? strtoll(text, NULL, 10) : WAIT_SECONDS;
    return (deadline_t){.end_us = monotonic_us() + seconds * 1000000};
}

void deadline_pause(const deadline_t *deadline, const char *what)
{
    if (monotonic_us() >= deadline->end_us) {
        fprintf(stderr, "waited too long: %s\n", what);
        abort();
    }
    usleep(PAUSE_US);
}
