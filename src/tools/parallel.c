/* The threads of a job, and the queue of its items that are not finished yet. */
#include "tools/parallel.h"

#include "util/clock.h"

#include <bson/bson.h>
#include <pthread.h>

/* While so many items wait for an earlier one, no further item is requested. */
enum { QUEUE_MAX = 1000 };

/* An item in progress, or done but behind one in progress. */
typedef struct entry {
    struct entry *behind;
    void *item;
    bool done;
} entry_t;

/* Shared by all threads. The lock protects what changes, and is held during `next` and `finish`. */
typedef struct run {
    const spill_parallel_t *job;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the queue is shorter, or something failed */
    entry_t *first, **end;
    size_t count;
    int started; /* threads */
    bool ended;  /* no item is left */
    bool stuck;  /* `finish` has failed */
    spill_code_t code;
    spill_error_t *error;
} run_t;

/* Keep the first failure; `lock` is held. */
static void keep_failure(run_t *run, spill_code_t code, const spill_error_t *error)
{
    if (code == SPILL_OK || run->code != SPILL_OK)
        return;
    run->code = code;
    if (run->error)
        *run->error = *error;
}

static void drop_first(run_t *run)
{
    entry_t *first = run->first;
    run->first = first->behind;
    if (!run->first)
        run->end = &run->first;
    run->count--;
    run->job->free(first->item);
    bson_free(first);
}

/* Finish the items at the queue's beginning that are done; `lock` is held. */
static void finish_items(run_t *run)
{
    const spill_parallel_t *job = run->job;
    spill_error_t error;
    while (run->first && run->first->done && !run->stuck) {
        spill_code_t code =
            job->finish ? job->finish(job->context, run->first->item, &error) : SPILL_OK;
        run->stuck = code != SPILL_OK;
        keep_failure(run, code, &error);
        drop_first(run);
    }
    pthread_cond_broadcast(&run->changed);
}

/* Must this thread, the index-th one, wait until more threads may work? */
static bool is_surplus(const run_t *run, int index)
{
    return index > 0 && run->job->allowed && index >= atomic_load(run->job->allowed);
}

/* Wait for a change of the queue, or until it is time to look at the number of threads again. */
static void wait_surplus(run_t *run)
{
    enum { LOOK_US = 500000 };
    struct timespec until = spill_clock_after_us(LOOK_US);
    pthread_cond_timedwait(&run->changed, &run->lock, &until);
}

/* Get the next item; `lock` is held. NULL: none is left, or something failed. */
static entry_t *request_item(run_t *run, int index, spill_error_t *error)
{
    void *item = NULL;
    while (run->code == SPILL_OK && !run->ended && is_surplus(run, index))
        wait_surplus(run);
    while (run->code == SPILL_OK && run->count >= QUEUE_MAX)
        pthread_cond_wait(&run->changed, &run->lock);
    if (run->code == SPILL_OK)
        keep_failure(run, run->job->next(run->job->context, &item, error), error);
    if (!item) {
        run->ended = true;
        pthread_cond_broadcast(&run->changed);
        return NULL;
    }
    entry_t *entry = bson_malloc0(sizeof *entry);
    entry->item = item;
    *run->end = entry;
    run->end = &entry->behind;
    run->count++;
    return entry;
}

static void *run_thread(void *argument)
{
    run_t *run = argument;
    spill_error_t error;
    pthread_mutex_lock(&run->lock);
    int index = run->started++;
    entry_t *entry = request_item(run, index, &error);
    while (entry) {
        pthread_mutex_unlock(&run->lock);
        spill_code_t code = run->job->work(run->job->context, entry->item, &error);
        pthread_mutex_lock(&run->lock);
        keep_failure(run, code, &error);
        entry->done = code == SPILL_OK;
        finish_items(run);
        entry = request_item(run, index, &error);
    }
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

spill_code_t spill_parallel(const spill_parallel_t *job, spill_error_t *error)
{
    pthread_t others[SPILL_PARALLEL_MAX];
    run_t run = {.job = job, .lock = PTHREAD_MUTEX_INITIALIZER, .error = error};
    spill_clock_condition_init(&run.changed);
    run.end = &run.first;
    size_t started = 0, wanted = job->allowed ? SPILL_PARALLEL_MAX : job->threads;
    while (started + 1 < wanted && started < SPILL_PARALLEL_MAX &&
           pthread_create(&others[started], NULL, run_thread, &run) == 0)
        started++;
    run_thread(&run);
    for (size_t i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    while (run.first)
        drop_first(&run);
    pthread_cond_destroy(&run.changed);
    pthread_mutex_destroy(&run.lock);
    return run.code;
}
