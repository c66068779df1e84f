/* Loops that wait for another thread or process end, with a message, when their time is over. */
#ifndef SPILL_TESTS_DEADLINE_H
#define SPILL_TESTS_DEADLINE_H

#include <stdint.h>

typedef struct deadline {
    int64_t end_us; /* of the monotonic clock */
} deadline_t;

/*
 * Return the end of a wait that begins now: after a minute, or after SPILLWAY_WAIT_SECONDS if the
 * environment sets it. A minute is enough with sanitizers and on a loaded machine.
 */
deadline_t deadline_begin(void);

/* Sleep for a millisecond. Abort the process with a message that names `what` after the deadline.
 */
void deadline_pause(const deadline_t *deadline, const char *what);

#endif
