#include "store/embedded/combiner.h"

#include <sched.h>

/*
 * Bounds of a group: past them the rest waits for the next one. Jobs of the group are looked up in
 * the batch one change after the other, which stays cheap for a few hundred changes.
 */
enum { GROUP_JOBS_MAX = 64, GROUP_BYTES_MAX = 1024 * 1024, GATHER_YIELDS = 32 };

void spill_combiner_init(spill_combiner_t *combiner, spill_kv_t *kv, bool sync,
                         atomic_llong *commits, atomic_llong *syncs)
{
    *combiner = (spill_combiner_t){
        .kv = kv, .sync = sync, .commits = commits, .syncs = syncs, .batch = SPILL_BATCH_INIT};
    combiner->last = &combiner->first;
    pthread_mutex_init(&combiner->lock, NULL);
}

void spill_combiner_release(spill_combiner_t *combiner)
{
    pthread_mutex_destroy(&combiner->lock);
    spill_batch_release(&combiner->batch);
}

static void enqueue(spill_combiner_t *combiner, spill_job_t *job)
{
    *combiner->last = job;
    combiner->last = &job->next;
    combiner->waiting++;
}

/* The group: a job that has to be alone, or the jobs before the next such. The lock is held. */
static spill_job_t *take_group(spill_combiner_t *combiner)
{
    spill_job_t *group = combiner->first;
    spill_job_t *last = group;
    int jobs = 1;
    while (!group->alone && last->next && !last->next->alone && jobs < GROUP_JOBS_MAX) {
        last = last->next;
        jobs++;
    }
    combiner->waiting -= jobs;
    combiner->first = last->next;
    if (!combiner->first)
        combiner->last = &combiner->first;
    last->next = NULL;
    return group;
}

/* Put back what a full batch left over. The lock is held. */
static void give_back(spill_combiner_t *combiner, spill_job_t *rest)
{
    spill_job_t *last = rest;
    combiner->waiting++;
    while (last->next) {
        last = last->next;
        combiner->waiting++;
    }
    last->next = combiner->first;
    if (!combiner->first)
        combiner->last = &last->next;
    combiner->first = rest;
}

static void undo(const spill_combiner_t *combiner)
{
    if (combiner->undone)
        combiner->undone(combiner->undone_context);
}

/* Carry the jobs out until the batch is full; returns those that are left over. */
static spill_job_t *execute(spill_combiner_t *combiner, spill_job_t *group)
{
    spill_batch_t *batch = &combiner->batch;
    spill_job_t **next = &group;
    while (*next && batch->bytes.size <= GROUP_BYTES_MAX) {
        spill_job_t *job = *next;
        spill_batch_mark_t mark = spill_batch_mark(batch);
        job->code = job->execute(job->context, batch, job->error);
        if (job->code != SPILL_OK) {
            spill_batch_rewind(batch, mark);
            undo(combiner);
        }
        next = &job->next;
    }
    spill_job_t *rest = *next;
    *next = NULL;
    return rest;
}

static void commit(spill_combiner_t *combiner, spill_job_t *group)
{
    if (combiner->batch.count == 0)
        return;
    spill_error_t error;
    spill_code_t code =
        combiner->kv->ops->write(combiner->kv, &combiner->batch, combiner->sync, &error);
    if (code == SPILL_OK) {
        atomic_fetch_add_explicit(combiner->commits, 1, memory_order_relaxed);
        if (combiner->sync)
            atomic_fetch_add_explicit(combiner->syncs, 1, memory_order_relaxed);
    }
    if (code != SPILL_OK)
        undo(combiner);
    for (spill_job_t *job = group; job && code != SPILL_OK; job = job->next) {
        if (job->code == SPILL_OK && job->error)
            *job->error = error;
        if (job->code == SPILL_OK)
            job->code = code;
    }
    spill_batch_clear(&combiner->batch);
}

/* Wake the others of the group, and the next leader. The lock is held. */
static void hand_over(spill_combiner_t *combiner, spill_job_t *group, const spill_job_t *own)
{
    combiner->served = 0;
    while (group) {
        spill_job_t *job = group;
        group = job->next;
        combiner->served++;
        job->state = SPILL_JOB_DONE;
        if (job != own)
            pthread_cond_signal(&job->wake);
    }
    combiner->led = combiner->first != NULL;
    if (combiner->led) {
        combiner->first->state = SPILL_JOB_LEADS;
        pthread_cond_signal(&combiner->first->wake);
    }
}

/*
 * A sync takes long: the threads that the last one served are about to come again, and those that
 * make it in time save one of their own. The lock is held, but not while they are let through.
 */
static void gather(spill_combiner_t *combiner)
{
    for (int i = 0; i < GATHER_YIELDS && combiner->waiting < combiner->served; i++) {
        pthread_mutex_unlock(&combiner->lock);
        sched_yield();
        pthread_mutex_lock(&combiner->lock);
    }
}

/* Carry out the group that begins with `own`. The lock is held, but not while working. */
static void lead(spill_combiner_t *combiner, spill_job_t *own)
{
    combiner->led = true;
    if (combiner->sync)
        gather(combiner);
    spill_job_t *group = take_group(combiner);
    pthread_mutex_unlock(&combiner->lock);
    spill_job_t *rest = execute(combiner, group);
    commit(combiner, group);
    pthread_mutex_lock(&combiner->lock);
    if (rest)
        give_back(combiner, rest);
    hand_over(combiner, group, own);
}

spill_code_t spill_combiner_run(spill_combiner_t *combiner, spill_job_fn execute_job, void *context,
                                bool alone, spill_error_t *error)
{
    spill_job_t job = {.execute = execute_job,
                       .context = context,
                       .alone = alone,
                       .error = error,
                       .wake = PTHREAD_COND_INITIALIZER};
    pthread_mutex_lock(&combiner->lock);
    enqueue(combiner, &job);
    if (!combiner->led)
        job.state = SPILL_JOB_LEADS;
    while (job.state == SPILL_JOB_WAITS)
        pthread_cond_wait(&job.wake, &combiner->lock);
    if (job.state == SPILL_JOB_LEADS)
        lead(combiner, &job);
    pthread_mutex_unlock(&combiner->lock);
    pthread_cond_destroy(&job.wake);
    return job.code;
}
