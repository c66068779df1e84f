#include "tools/parallel.h"

#include <pthread.h>

/* What all threads have in common; the lock is for what changes, and held while an item is got. */
typedef struct crew {
    spill_parallel_next_fn next;
    spill_parallel_fn work;
    void *context;
    pthread_mutex_t lock;
    spill_code_t code;
    spill_error_t *error;
} crew_t;

/* The first failure is kept; `lock` is held. */
static void note(crew_t *crew, spill_code_t code, const spill_error_t *error)
{
    if (code == SPILL_OK || crew->code != SPILL_OK)
        return;
    crew->code = code;
    if (crew->error)
        *crew->error = *error;
}

/* The next item once one was done with this result; NULL: there is none, or there was a failure. */
static void *take_next(crew_t *crew, spill_code_t code, spill_error_t *error)
{
    void *item = NULL;
    pthread_mutex_lock(&crew->lock);
    note(crew, code, error);
    if (crew->code == SPILL_OK)
        note(crew, crew->next(crew->context, &item, error), error);
    pthread_mutex_unlock(&crew->lock);
    return item;
}

static void *run(void *argument)
{
    crew_t *crew = argument;
    spill_error_t error;
    void *item = take_next(crew, SPILL_OK, &error);
    while (item) {
        spill_code_t code = crew->work(crew->context, item, &error);
        item = take_next(crew, code, &error);
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
           pthread_create(&others[started], NULL, run, &crew) == 0)
        started++;
    run(&crew);
    for (size_t i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    return crew.code;
}
