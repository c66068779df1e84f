/*
 * A process that appends, counts and reads on owners that it shares with others and on some of its
 * own, keeps histories of it, and may be killed at any moment. It has a few threads, so that their
 * appends go out together; each of them is a worker with a history of its own. A test program
 * starts itself again as such processes.
 */
#ifndef TESTS_MONGO_WORKER_H
#define TESTS_MONGO_WORKER_H

#include <spillway/spillway.h>

#include <stdint.h>
#include <sys/types.h>

/* Both layouts, with bounds so small that every few appends spill or seal. */
enum { WORKER_ARRAYS = 2, WORKER_THREADS = 3 };
extern const char *const worker_array_names[WORKER_ARRAYS];

/* How the names of owners begin from whom elements are removed, too. */
#define WORKER_CHANGED "changed-"

/* Save the definitions of these arrays. Stops the program where that fails. */
void worker_define(spill_store_t *store);

typedef struct worker_plan {
    const char *uri;    /* of the database, for the driver */
    const char *folder; /* of the histories */
    int64_t began;      /* history_now() when the first one started */
    int64_t ends;       /* ... when workers end by themselves */
    int64_t round;      /* nanoseconds after which another owner becomes the one that all share */
} worker_plan_t;

/*
 * Start process `number`, whose workers are WORKER_THREADS * number and those that follow, or one
 * in its place. Each worker goes on with its history: first it repeats the append that has no
 * outcome there. Everything they choose follows from `seed`.
 */
pid_t worker_start(const worker_plan_t *plan, int number, uint64_t seed);

/* Is this process a worker? To be asked first thing in main. If so it does not return. */
void worker_run_if_asked(int argument_count, char **arguments);

#endif
