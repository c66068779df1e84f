/* Threads that begin at the same moment. */
#ifndef SPILL_TOOLS_BENCH_CREW_H
#define SPILL_TOOLS_BENCH_CREW_H

#include <spillway/error.h>

enum { SPILL_CREW_MAX = 256 };

/* The function that a thread calls `count` times. */
typedef void (*spill_crew_fn)(void *context, int thread, int count);

/*
 * Run the function `count` times on each of `threads` threads (1 to SPILL_CREW_MAX); a single
 * thread is the caller's. *seconds is the duration. SPILL_IO: a thread could not be started; none
 * has begun.
 */
spill_code_t spill_crew_run(spill_crew_fn run, void *context, int threads, int count,
                            double *seconds, spill_error_t *error);

/* Seconds since an arbitrary point in time. */
double spill_crew_now(void);

#endif
