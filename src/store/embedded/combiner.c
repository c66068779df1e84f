/* The commit combiner: one thread carries out and writes the changes of all that wait. */
#include "store/embedded/combiner.h"

#include "store/timed.h"

/* Bounds of a group: the jobs above them wait for the next group. */
enum { GROUP_JOBS_MAX = 64, GROUP_BYTES_MAX = 1024 * 1024, GATHER_YIELDS = 32 };

/* Without a sync: how many groups a leader carries out, and how often a waiting thread yields. */
enum { GROUPS_MAX = 16, WAIT_YIELDS = 64 };

typedef struct job {
    spill_waiter_t waiter; /* the first member */
    spill_job_fn execute;
    void *context;
    spill_timed_t *step; /* of a thread with a deadline; or NULL */
    bool alone;          /* it reads or deletes ranges, which needs an empty batch */
    spill_error_t *error;
    spill_code_t code;
} job_t;

static job_t *job_of(spill_waiter_t *waiter)
{
    return (job_t *)waiter;
}

static job_t *next_of(const job_t *job)
{
    return job_of(job->waiter.next);
}

void spill_combiner_init(spill_combiner_t *combiner, spill_kv_t *kv, bool sync,
                         atomic_llong *commits, atomic_llong *syncs)
{
    *combiner = (spill_combiner_t){
        .kv = kv, .sync = sync, .commits = commits, .syncs = syncs, .batch = SPILL_BATCH_INIT};
    spill_queue_init(&combiner->queue);
}

void spill_combiner_release(spill_combiner_t *combiner)
{
    spill_queue_release(&combiner->queue);
    spill_batch_release(&combiner->batch);
}

/* Take the next group: one job that must be alone, or all jobs before the next such job. */
static job_t *take_group(spill_queue_t *queue)
{
    const job_t *last = job_of(queue->first);
    size_t jobs = 1;
    while (!last->alone && last->waiter.next && !next_of(last)->alone && jobs < GROUP_JOBS_MAX) {
        last = next_of(last);
        jobs++;
    }
    return job_of(spill_queue_take(queue, jobs));
}

static void undo(const spill_combiner_t *combiner)
{
    if (combiner->undone)
        combiner->undone(combiner->undone_context);
}

/* Carry out jobs until the batch is full. Return the rest. */
static job_t *execute(spill_combiner_t *combiner, job_t *group)
{
    spill_batch_t *batch = &combiner->batch;
    job_t *job = group;
    job_t *last;
    do {
        spill_batch_savepoint_t mark = spill_batch_savepoint(batch);
        job->code = spill_timed_begin(job->step) ? job->execute(job->context, batch, job->error)
                                                 : spill_timed_given_up(job->error);
        if (job->code != SPILL_OK) {
            spill_batch_rewind(batch, mark);
            undo(combiner);
        }
        last = job;
        job = next_of(job);
    } while (job && batch->bytes.size <= GROUP_BYTES_MAX);
    last->waiter.next = NULL;
    return job;
}

static void commit(spill_combiner_t *combiner, job_t *group)
{
    if (combiner->batch.count == 0)
        return;
    spill_error_t error;
    spill_tail_cache_begin(combiner->tails, &combiner->batch);
    spill_read_ahead_begin(combiner->ahead, &combiner->batch);
    spill_code_t code =
        combiner->kv->ops->write(combiner->kv, &combiner->batch, combiner->sync, &error);
    spill_read_ahead_end(combiner->ahead, &combiner->batch, code);
    spill_tail_cache_end(combiner->tails, &combiner->batch, code);
    if (code == SPILL_OK) {
        atomic_fetch_add_explicit(combiner->commits, 1, memory_order_relaxed);
        if (combiner->sync)
            atomic_fetch_add_explicit(combiner->syncs, 1, memory_order_relaxed);
        if (combiner->bytes)
            atomic_fetch_add_explicit(combiner->bytes, (long long)combiner->batch.bytes.size,
                                      memory_order_relaxed);
    }
    if (code != SPILL_OK)
        undo(combiner);
    for (job_t *job = group; job && code != SPILL_OK; job = next_of(job)) {
        if (job->code == SPILL_OK && job->error)
            *job->error = error;
        if (job->code == SPILL_OK)
            job->code = code;
    }
    spill_batch_clear(&combiner->batch);
}

/* Carry out a group and return the rest. The lock is held before and after. */
static job_t *carry_out_group(spill_combiner_t *combiner)
{
    spill_queue_t *queue = &combiner->queue;
    job_t *group = take_group(queue);
    pthread_mutex_unlock(&queue->lock);
    job_t *rest = execute(combiner, group);
    commit(combiner, group);
    pthread_mutex_lock(&queue->lock);
    if (rest)
        spill_queue_give_back(queue, &rest->waiter);
    return group;
}

/*
 * Carry out the group that begins with `own`. Without a sync a group takes less time than the start
 * of another leader, so carry out a few more groups.
 */
static void lead(spill_combiner_t *combiner, job_t *own)
{
    spill_queue_t *queue = &combiner->queue;
    if (combiner->sync)
        spill_queue_gather(queue, GATHER_YIELDS);
    job_t *group = carry_out_group(combiner);
    for (int i = 1; !combiner->sync && i < GROUPS_MAX && queue->first; i++) {
        spill_queue_finish(queue, &group->waiter, &own->waiter);
        group = carry_out_group(combiner);
    }
    spill_queue_hand_over(queue, &group->waiter, &own->waiter);
}

spill_code_t spill_combiner_run(spill_combiner_t *combiner, spill_job_fn execute_job, void *context,
                                bool alone, spill_error_t *error)
{
    job_t job = {.execute = execute_job,
                 .context = context,
                 .step = spill_timed_current(),
                 .alone = alone,
                 .error = error};
    if (spill_queue_join(&combiner->queue, &job.waiter, combiner->sync ? 0 : WAIT_YIELDS))
        lead(combiner, &job);
    return job.code;
}
