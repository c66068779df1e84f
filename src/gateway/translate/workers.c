/* A pool of threads, with one queue. */
#include "gateway/translate/workers.h"

#include <bson/bson.h>
#include <pthread.h>

struct spill_workers {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    spill_work_t *first, *last; /* waiting */
    pthread_t *threads;
    size_t count, max, idle, waiting;
    bool ending;
};

spill_workers_t *spill_workers_new(size_t threads_max)
{
    spill_workers_t *workers = bson_malloc0(sizeof *workers);
    workers->max = threads_max;
    workers->threads = bson_malloc0(threads_max * sizeof *workers->threads);
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->wake, NULL);
    return workers;
}

static spill_work_t *take_work(spill_workers_t *workers)
{
    pthread_mutex_lock(&workers->lock);
    workers->idle++;
    while (!workers->first && !workers->ending)
        pthread_cond_wait(&workers->wake, &workers->lock);
    workers->idle--;
    spill_work_t *work = workers->first;
    if (work) {
        workers->first = work->next;
        workers->waiting--;
    }
    pthread_mutex_unlock(&workers->lock);
    return work;
}

static void *run_works(void *context)
{
    spill_work_t *work;
    while ((work = take_work(context)) != NULL)
        work->run(work);
    return NULL;
}

/* The lock is held. If no thread starts, those that run do the work later. */
static void start_thread(spill_workers_t *workers)
{
    if (pthread_create(&workers->threads[workers->count], NULL, run_works, workers) == 0)
        workers->count++;
}

void spill_workers_add(spill_workers_t *workers, spill_work_t *work)
{
    work->next = NULL;
    pthread_mutex_lock(&workers->lock);
    if (workers->first)
        workers->last->next = work;
    else
        workers->first = work;
    workers->last = work;
    workers->waiting++;
    if (workers->waiting > workers->idle && workers->count < workers->max)
        start_thread(workers);
    pthread_mutex_unlock(&workers->lock);
    pthread_cond_signal(&workers->wake); /* without the lock, which the thread takes first */
}

void spill_workers_free(spill_workers_t *workers)
{
    if (!workers)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->ending = true;
    pthread_cond_broadcast(&workers->wake);
    pthread_mutex_unlock(&workers->lock);
    for (size_t i = 0; i < workers->count; i++)
        pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->wake);
    pthread_mutex_destroy(&workers->lock);
    bson_free(workers->threads);
    bson_free(workers);
}
