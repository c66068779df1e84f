/* Threads that begin at the same moment. */
#ifndef SPILL_TOOLS_BENCH_CREW_H
#define SPILL_TOOLS_BENCH_CREW_H

#include <spillway/error.h>

enum { SPILL_CREW_MAX = 256 };

/* Something that a thread does `count` times. */
typedef void (*spill_crew_fn)(void *context, int thread, int count);

/*
 * Let `threads` threads (1 to SPILL_CREW_MAX) do it `count` times each; one does it on the caller's
 * thread. *seconds is how long that took. SPILL_IO: a thread could not be started; none has begun.
 */
spill_code_t spill_crew_run(spill_crew_fn run, void *context, int threads, int count,
                            double *seconds, spill_error_t *error);

/* Seconds, from any point in time. */
double spill_crew_now(void);

#endif
