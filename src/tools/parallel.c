#include "tools/parallel.h"

#include <pthread.h>

/* Shared by all threads. The lock protects what changes, and is held while `next` runs. */
typedef struct crew {
    spill_parallel_next_fn next;
    spill_parallel_fn work;
    void *context;
    pthread_mutex_t lock;
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

/* Report the last item's result and get the next item; NULL: none is left, or something failed. */
static void *next_item(crew_t *crew, spill_code_t code, spill_error_t *error)
{
    void *item = NULL;
    pthread_mutex_lock(&crew->lock);
    keep_failure(crew, code, error);
    if (crew->code == SPILL_OK)
        keep_failure(crew, crew->next(crew->context, &item, error), error);
    pthread_mutex_unlock(&crew->lock);
    return item;
}

static void *run_thread(void *argument)
{
    crew_t *crew = argument;
    spill_error_t error;
    void *item = next_item(crew, SPILL_OK, &error);
    while (item) {
        spill_code_t code = crew->work(crew->context, item, &error);
        item = next_item(crew, code, &error);
    }
    return NULL;
}

spill_code_t spill_parallel(size_t threads, spill_parallel_next_fn next, spill_parallel_fn work,
                            void *context, spill_error_t *error)
{
    pthread_t others[SPILL_PARALLEL_MAX];
    crew_t crew = {.next = next,
                   .work = work,
                   .context = context,
                   .lock = PTHREAD_MUTEX_INITIALIZER,
                   .error = error};
    size_t started = 0;
    while (started + 1 < threads && started < SPILL_PARALLEL_MAX &&
           pthread_create(&others[started], NULL, run_thread, &crew) == 0)
        started++;
    run_thread(&crew);
    for (size_t i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    return crew.code;
}
