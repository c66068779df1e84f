#include "tools/bench/bench_threads.h"

#include "util/error.h"

#include <assert.h>
#include <pthread.h>
#include <time.h>

/* Holds the threads back until all are started. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum { GATE_SHUT, GATE_OPEN, GATE_GIVEN_UP } state;
} gate_t;

typedef struct worker {
    spill_crew_fn run;
    void *context;
    int thread;
    int count;
    gate_t *gate;
} worker_t;

double spill_crew_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *run_worker(void *argument)
{
    const worker_t *worker = argument;
    gate_t *gate = worker->gate;
    pthread_mutex_lock(&gate->lock);
    while (gate->state == GATE_SHUT)
        pthread_cond_wait(&gate->changed, &gate->lock);
    bool open = gate->state == GATE_OPEN;
    pthread_mutex_unlock(&gate->lock);
    if (open)
        worker->run(worker->context, worker->thread, worker->count);
    return NULL;
}

static void set_gate(gate_t *gate, bool open)
{
    pthread_mutex_lock(&gate->lock);
    gate->state = open ? GATE_OPEN : GATE_GIVEN_UP;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static double run_alone(spill_crew_fn run, void *context, int count)
{
    double from = spill_crew_now();
    run(context, 0, count);
    return spill_crew_now() - from;
}

spill_code_t spill_crew_run(spill_crew_fn run, void *context, int threads, int count,
                            double *seconds, spill_error_t *error)
{
    pthread_t ids[SPILL_CREW_MAX];
    worker_t workers[SPILL_CREW_MAX];
    gate_t gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, GATE_SHUT};
    int started = 0, problem = 0;
    assert(threads >= 1 && threads <= SPILL_CREW_MAX);
    if (threads == 1) {
        *seconds = run_alone(run, context, count);
        return SPILL_OK;
    }
    for (; started < threads && problem == 0; started += problem == 0) {
        workers[started] = (worker_t){run, context, started, count, &gate};
        problem = pthread_create(&ids[started], NULL, run_worker, &workers[started]);
    }
    double from = spill_crew_now();
    set_gate(&gate, problem == 0);
    for (int i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    *seconds = spill_crew_now() - from;
    return problem == 0 ? SPILL_OK : spill_fail_errno(error, problem, "cannot start a thread");
}
