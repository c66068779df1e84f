#include "tools/parallel.h"

#include <pthread.h>

/* What all threads have in common; the lock is for what changes. */
typedef struct crew {
    size_t count;
    spill_parallel_fn work;
    void *context;
    pthread_mutex_t lock;
    size_t next;
    spill_code_t code;
    spill_error_t *error;
} crew_t;

static bool take_next(crew_t *crew, size_t *index)
{
    pthread_mutex_lock(&crew->lock);
    bool any = crew->code == SPILL_OK && crew->next < crew->count;
    if (any)
        *index = crew->next++;
    pthread_mutex_unlock(&crew->lock);
    return any;
}

static void note_failure(crew_t *crew, spill_code_t code, const spill_error_t *error)
{
    pthread_mutex_lock(&crew->lock);
    if (crew->code == SPILL_OK) {
        crew->code = code;
        if (crew->error)
            *crew->error = *error;
    }
    pthread_mutex_unlock(&crew->lock);
}

static void *run(void *argument)
{
    crew_t *crew = argument;
    size_t index;
    while (take_next(crew, &index)) {
        spill_error_t error;
        spill_code_t code = crew->work(crew->context, index, &error);
        if (code != SPILL_OK)
            note_failure(crew, code, &error);
    }
    return NULL;
}

spill_code_t spill_parallel(size_t threads, size_t count, spill_parallel_fn work, void *context,
                            spill_error_t *error)
{
    pthread_t others[SPILL_PARALLEL_MAX];
    crew_t crew = {.count = count,
                   .work = work,
                   .context = context,
                   .lock = PTHREAD_MUTEX_INITIALIZER,
                   .error = error};
    size_t started = 0, wanted = threads < count ? threads : count;
    while (started + 1 < wanted && started < SPILL_PARALLEL_MAX &&
           pthread_create(&others[started], NULL, run, &crew) == 0)
        started++;
    run(&crew);
    for (size_t i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    return crew.code;
}
