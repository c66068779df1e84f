/*
 * The group commit. A thread that wants to change something queues a job. One of
 * the threads, the leader, carries out all waiting jobs in turn, collects their changes in one
 * batch, writes and syncs it once, and wakes the others.
 *
 * Only the leader reads in order to write, so no owner needs a lock, and one sync serves all
 * threads that append to one owner. Readers do not take part.
 */
#ifndef SPILL_STORE_EMBEDDED_GROUP_COMMIT_H
#define SPILL_STORE_EMBEDDED_GROUP_COMMIT_H

#include "store/embedded/kv.h"
#include "store/embedded/read_ahead.h"
#include "store/embedded/tail_cache.h"
#include "util/queue.h"

#include <stdatomic.h>

/*
 * Carry out a job: read the engine and the batch so far, and add changes. After an error its
 * changes are rolled back. Called on the leader's thread.
 */
typedef spill_code_t (*spill_job_fn)(void *context, spill_batch_t *batch, spill_error_t *error);

/* Called on the leader's thread after changes of a job were discarded. */
typedef void (*spill_undone_fn)(void *context);

typedef struct spill_group_commit {
    spill_kv_t *kv;
    bool sync;
    atomic_llong *commits; /* batches written; and batches synced */
    atomic_llong *syncs;
    atomic_llong *bytes;       /* of their keys and values; may be NULL */
    spill_tail_cache_t *tails; /* learns of each write; may be NULL */
    spill_read_ahead_t *ahead; /* the same */
    spill_queue_t queue;
    spill_batch_t batch;    /* the leader's */
    spill_undone_fn undone; /* may be NULL */
    void *undone_context;
} spill_group_commit_t;

void spill_group_commit_init(spill_group_commit_t *writer, spill_kv_t *kv, bool sync,
                             atomic_llong *commits, atomic_llong *syncs);
void spill_group_commit_release(spill_group_commit_t *writer);

/*
 * Queue a job and wait until it is carried out and committed. If the write fails, every job of the
 * group gets its error, and no change of the group is visible. `error` may be NULL.
 */
spill_code_t spill_group_commit_run(spill_group_commit_t *writer, spill_job_fn execute,
                                    void *context, bool alone, spill_error_t *error);

#endif
