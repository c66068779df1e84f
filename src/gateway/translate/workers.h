/* A pool of threads for work that blocks. Threads start when there is work for them. */
#ifndef SPILL_GATEWAY_TRANSLATE_WORKERS_H
#define SPILL_GATEWAY_TRANSLATE_WORKERS_H

#include <stddef.h>

/* One piece of work, as a part of a larger struct. */
typedef struct spill_work spill_work_t;
struct spill_work {
    spill_work_t *next;
    void (*run)(spill_work_t *work);
};

typedef struct spill_workers spill_workers_t;

spill_workers_t *spill_workers_new(size_t threads_max);

/* Run it on one of the threads, after the work that waits already. Any thread. */
void spill_workers_add(spill_workers_t *workers, spill_work_t *work);

/* Wait until all work is done, and end the threads. NULL is allowed. */
void spill_workers_free(spill_workers_t *workers);

#endif
