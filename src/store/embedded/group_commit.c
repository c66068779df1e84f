/* Group commit: one thread carries out and writes the changes of all that wait. */
#include "store/embedded/group_commit.h"

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

void spill_group_commit_init(spill_group_commit_t *writer, spill_kv_t *kv, bool sync,
                             atomic_llong *commits, atomic_llong *syncs)
{
    *writer = (spill_group_commit_t){
        .kv = kv, .sync = sync, .commits = commits, .syncs = syncs, .batch = SPILL_BATCH_INIT};
    spill_queue_init(&writer->queue);
}

void spill_group_commit_release(spill_group_commit_t *writer)
{
    spill_queue_release(&writer->queue);
    spill_batch_release(&writer->batch);
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

static void undo(const spill_group_commit_t *writer)
{
    if (writer->undone)
        writer->undone(writer->undone_context);
}

/* Carry out jobs until the batch is full. Return the rest. */
static job_t *execute(spill_group_commit_t *writer, job_t *group)
{
    spill_batch_t *batch = &writer->batch;
    job_t *job = group;
    job_t *last;
    do {
        spill_batch_savepoint_t mark = spill_batch_savepoint(batch);
        job->code = spill_timed_begin(job->step) ? job->execute(job->context, batch, job->error)
                                                 : spill_timed_given_up(job->error);
        if (job->code != SPILL_OK) {
            spill_batch_rewind(batch, mark);
            undo(writer);
        }
        last = job;
        job = next_of(job);
    } while (job && batch->bytes.size <= GROUP_BYTES_MAX);
    last->waiter.next = NULL;
    return job;
}

static void commit(spill_group_commit_t *writer, job_t *group)
{
    if (writer->batch.count == 0)
        return;
    spill_error_t error;
    spill_tail_cache_begin(writer->tails, &writer->batch);
    spill_read_ahead_begin(writer->ahead, &writer->batch);
    spill_code_t code = writer->kv->ops->write(writer->kv, &writer->batch, writer->sync, &error);
    spill_read_ahead_end(writer->ahead, &writer->batch, code);
    spill_tail_cache_end(writer->tails, &writer->batch, code);
    if (code == SPILL_OK) {
        atomic_fetch_add_explicit(writer->commits, 1, memory_order_relaxed);
        if (writer->sync)
            atomic_fetch_add_explicit(writer->syncs, 1, memory_order_relaxed);
        if (writer->bytes)
            atomic_fetch_add_explicit(writer->bytes, (long long)writer->batch.bytes.size,
                                      memory_order_relaxed);
    }
    if (code != SPILL_OK)
        undo(writer);
    for (job_t *job = group; job && code != SPILL_OK; job = next_of(job)) {
        if (job->code == SPILL_OK && job->error)
            *job->error = error;
        if (job->code == SPILL_OK)
            job->code = code;
    }
    spill_batch_clear(&writer->batch);
}

/* Carry out a group and return the rest. The lock is held before and after. */
static job_t *carry_out_group(spill_group_commit_t *writer)
{
    spill_queue_t *queue = &writer->queue;
    job_t *group = take_group(queue);
    pthread_mutex_unlock(&queue->lock);
    job_t *rest = execute(writer, group);
    commit(writer, group);
    pthread_mutex_lock(&queue->lock);
    if (rest)
        spill_queue_give_back(queue, &rest->waiter);
    return group;
}

/*
 * Carry out the group that begins with `own`. Without a sync a group takes less time than the start
 * of another leader, so carry out a few more groups.
 */
static void lead(spill_group_commit_t *writer, job_t *own)
{
    spill_queue_t *queue = &writer->queue;
    if (writer->sync)
        spill_queue_gather(queue, GATHER_YIELDS);
    job_t *group = carry_out_group(writer);
    for (int i = 1; !writer->sync && i < GROUPS_MAX && queue->first; i++) {
        spill_queue_finish(queue, &group->waiter, &own->waiter);
        group = carry_out_group(writer);
    }
    spill_queue_hand_over(queue, &group->waiter, &own->waiter);
}

spill_code_t spill_group_commit_run(spill_group_commit_t *writer, spill_job_fn execute_job,
                                    void *context, bool alone, spill_error_t *error)
{
    job_t job = {.execute = execute_job,
                 .context = context,
                 .step = spill_timed_current(),
                 .alone = alone,
                 .error = error};
    if (spill_queue_join(&writer->queue, &job.waiter, writer->sync ? 0 : WAIT_YIELDS))
        lead(writer, &job);
    return job.code;
}
