/* A crew of threads, and the queue of items that are not finished yet. */
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
typedef struct crew {
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
} crew_t;

/* Keep the first failure; `lock` is held. */
static void keep_failure(crew_t *crew, spill_code_t code, const spill_error_t *error)
{
    if (code == SPILL_OK || crew->code != SPILL_OK)
        return;
    crew->code = code;
    if (crew->error)
        *crew->error = *error;
}

static void drop_first(crew_t *crew)
{
    entry_t *first = crew->first;
    crew->first = first->behind;
    if (!crew->first)
        crew->end = &crew->first;
    crew->count--;
    crew->job->free(first->item);
    bson_free(first);
}

/* Finish the items at the queue's beginning that are done; `lock` is held. */
static void finish_items(crew_t *crew)
{
    const spill_parallel_t *job = crew->job;
    spill_error_t error;
    while (crew->first && crew->first->done && !crew->stuck) {
        spill_code_t code =
            job->finish ? job->finish(job->context, crew->first->item, &error) : SPILL_OK;
        crew->stuck = code != SPILL_OK;
        keep_failure(crew, code, &error);
        drop_first(crew);
    }
    pthread_cond_broadcast(&crew->changed);
}

/* Must this thread, the index-th one, wait until more threads may work? */
static bool is_surplus(const crew_t *crew, int index)
{
    return index > 0 && crew->job->allowed && index >= atomic_load(crew->job->allowed);
}

/* Wait for a change of the queue, or until it is time to look at the number of threads again. */
static void wait_surplus(crew_t *crew)
{
    enum { LOOK_US = 500000 };
    struct timespec until = spill_clock_after_us(LOOK_US);
    pthread_cond_timedwait(&crew->changed, &crew->lock, &until);
}

/* Get the next item; `lock` is held. NULL: none is left, or something failed. */
static entry_t *request_item(crew_t *crew, int index, spill_error_t *error)
{
    void *item = NULL;
    while (crew->code == SPILL_OK && !crew->ended && is_surplus(crew, index))
        wait_surplus(crew);
    while (crew->code == SPILL_OK && crew->count >= QUEUE_MAX)
        pthread_cond_wait(&crew->changed, &crew->lock);
    if (crew->code == SPILL_OK)
        keep_failure(crew, crew->job->next(crew->job->context, &item, error), error);
    if (!item) {
        crew->ended = true;
        pthread_cond_broadcast(&crew->changed);
        return NULL;
    }
    entry_t *entry = bson_malloc0(sizeof *entry);
    entry->item = item;
    *crew->end = entry;
    crew->end = &entry->behind;
    crew->count++;
    return entry;
}

static void *run_thread(void *argument)
{
    crew_t *crew = argument;
    spill_error_t error;
    pthread_mutex_lock(&crew->lock);
    int index = crew->started++;
    entry_t *entry = request_item(crew, index, &error);
    while (entry) {
        pthread_mutex_unlock(&crew->lock);
        spill_code_t code = crew->job->work(crew->job->context, entry->item, &error);
        pthread_mutex_lock(&crew->lock);
        keep_failure(crew, code, &error);
        entry->done = code == SPILL_OK;
        finish_items(crew);
        entry = request_item(crew, index, &error);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

spill_code_t spill_parallel(const spill_parallel_t *job, spill_error_t *error)
{
    pthread_t others[SPILL_PARALLEL_MAX];
    crew_t crew = {.job = job, .lock = PTHREAD_MUTEX_INITIALIZER, .error = error};
    spill_clock_condition_init(&crew.changed);
    crew.end = &crew.first;
    size_t started = 0, wanted = job->allowed ? SPILL_PARALLEL_MAX : job->threads;
    while (started + 1 < wanted && started < SPILL_PARALLEL_MAX &&
           pthread_create(&others[started], NULL, run_thread, &crew) == 0)
        started++;
    run_thread(&crew);
    for (size_t i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    while (crew.first)
        drop_first(&crew);
    pthread_cond_destroy(&crew.changed);
    pthread_mutex_destroy(&crew.lock);
    return crew.code;
}
