/*
 * A process that appends, counts and reads on owners that it shares with others and on one of its
 * own, keeps a history of it, and may be killed at any moment. A test program starts itself again
 * as its workers.
 */
#ifndef TESTS_MONGO_WORKER_H
#define TESTS_MONGO_WORKER_H

#include <spillway/spillway.h>

#include <stdint.h>
#include <sys/types.h>

/* Both layouts, with bounds so small that every few appends spill or seal. */
enum { WORKER_ARRAYS = 2 };
extern const char *const worker_array_names[WORKER_ARRAYS];

/* Save the definitions of these arrays. Stops the program where that fails. */
void worker_define(spill_store_t *store);

typedef struct worker_plan {
    const char *uri;    /* of the database, for the driver */
    const char *folder; /* of the histories */
    int64_t began;      /* history_now() when the first worker started */
    int64_t ends;       /* ... when workers end by themselves */
    int64_t round;      /* nanoseconds after which another owner becomes the one that all share */
} worker_plan_t;

/*
 * Start worker `worker`, or one in its place that goes on with its history: first it repeats the
 * append that has no outcome there. Everything it chooses follows from `seed`.
 */
pid_t worker_start(const worker_plan_t *plan, int worker, uint64_t seed);

/* Is this process a worker? To be asked first thing in main. If so it does not return. */
void worker_run_if_asked(int count, char **arguments);

#endif
