/*
 * The commit combiner. Threads that want to change something queue a job; one of them, the leader,
 * carries out all the jobs that wait, one after the other, gathers their changes in one batch,
 * writes and syncs it once, and wakes the others.
 *
 * Only the leader reads in order to write, so no owner needs a lock, and however many threads
 * append to one owner, a sync serves them all. Readers do not come here.
 */
#ifndef SPILL_STORE_EMBEDDED_COMBINER_H
#define SPILL_STORE_EMBEDDED_COMBINER_H

#include "store/embedded/kv.h"
#include "util/queue.h"

#include <stdatomic.h>

/*
 * Carry out a job: look at the engine and at what the batch holds already, and add changes. After
 * an error nothing that was added counts. Called on the leader's thread.
 */
typedef spill_code_t (*spill_job_fn)(void *context, spill_batch_t *batch, spill_error_t *error);

/* Told to the leader: changes that a job has added do not come to be. */
typedef void (*spill_undone_fn)(void *context);

typedef struct spill_combiner {
    spill_kv_t *kv;
    bool sync;
    atomic_llong *commits; /* batches written, and of those synced */
    atomic_llong *syncs;
    atomic_llong *bytes; /* of their keys and values; may be NULL */
    spill_queue_t queue;
    spill_batch_t batch;    /* the leader's */
    spill_undone_fn undone; /* may be NULL */
    void *undone_context;
} spill_combiner_t;

void spill_combiner_init(spill_combiner_t *combiner, spill_kv_t *kv, bool sync,
                         atomic_llong *commits, atomic_llong *syncs);
void spill_combiner_release(spill_combiner_t *combiner);

/*
 * Have a job carried out and committed. When the write fails, every job of the group gets its
 * error, and nothing of the group is visible. `error` may be NULL.
 */
spill_code_t spill_combiner_run(spill_combiner_t *combiner, spill_job_fn execute, void *context,
                                bool alone, spill_error_t *error);

#endif
