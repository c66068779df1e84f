/*
 * A process that appends, counts and reads, on owners that all processes share and on its own
 * owners. It keeps histories, and may be killed at any moment. It has a few threads, so that the
 * store combines their appends. Each thread is a worker with its own history. A test program starts
 * itself again as such processes.
 */
#ifndef TESTS_MONGO_WORKER_H
#define TESTS_MONGO_WORKER_H

#include <spillway/spillway.h>

#include <stdint.h>
#include <sys/types.h>

/* Both layouts, with bounds so small that every few appends spill or seal. */
enum { WORKER_ARRAYS = 2, WORKER_THREADS = 3 };
extern const char *const worker_array_names[WORKER_ARRAYS];

/* The prefix of the owners from which workers also remove elements. */
#define WORKER_CHANGED "changed-"

/* Save the definitions of these arrays. Ends the program on an error. */
void worker_define(spill_store_t *store);

typedef struct worker_plan {
    const char *uri;    /* of the database, for the driver */
    const char *folder; /* of the histories */
    int64_t began;      /* history_now() when the first process started */
    int64_t ends;       /* history_now() at which workers end by themselves */
    int64_t round;      /* nanoseconds after which the shared owner changes */
} worker_plan_t;

/*
 * Start process `number`, or a replacement for it. Its workers are numbered from WORKER_THREADS *
 * number. Each worker continues its history: first it retries an append that has no outcome there.
 * All random choices follow from `seed`.
 */
pid_t worker_start(const worker_plan_t *plan, int number, uint64_t seed);

/* If this process is a worker, run it and never return. Call this first in main. */
void worker_run_if_asked(int argument_count, char **arguments);

#endif
