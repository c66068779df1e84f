#include "store/timed_step.h"

#include "util/clock.h"
#include "util/error.h"

#include <spillway/deadline.h>

#include <errno.h>
#include <string.h>

/* Steps of a store that may run at one time for callers with a deadline. */
enum { RUNNING_MAX = 256 };

/* ---- the deadline of a thread ---------------------------------------------------------------- */

static _Thread_local int64_t deadline_us; /* of CLOCK_MONOTONIC; 0: none */
static _Thread_local bool has_changed;    /* a step of this call has begun what was asked for */
static _Thread_local spill_timed_t *current;

spill_deadline_t spill_deadline_begin(int64_t timeout_ms)
{
    spill_deadline_t outer = {.at_us = deadline_us};
    has_changed = false;
    if (timeout_ms < 0 || timeout_ms > INT64_MAX / 2000)
        return outer;
    int64_t at_us = spill_clock_monotonic_us(NULL) + timeout_ms * 1000;
    if (outer.at_us == 0 || at_us < outer.at_us)
        deadline_us = at_us;
    return outer;
}

void spill_deadline_end(spill_deadline_t outer)
{
    deadline_us = outer.at_us;
}

spill_deadline_t spill_timed_suspend(void)
{
    spill_deadline_t outer = {deadline_us};
    deadline_us = 0;
    return outer;
}

bool spill_timed_is_set(void)
{
    return deadline_us != 0;
}

void spill_timed_forget_changes(void)
{
    has_changed = false;
}

bool spill_timed_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    if (deadline_us == 0)
        return pthread_cond_wait(condition, lock) == 0;
    struct timespec until = spill_clock_at_us(deadline_us);
    return pthread_cond_timedwait(condition, lock, &until) != ETIMEDOUT;
}

/* ---- the errors ------------------------------------------------------------------------------ */

static spill_code_t fail_unknown(spill_error_t *error)
{
    return spill_fail_retryable(
        error, SPILL_UNKNOWN,
        "the deadline has passed, and the change may have been made, or "
        "may still be made: repeat it with its operation id, or read first");
}

spill_code_t spill_timed_given_up(spill_error_t *error)
{
    return spill_fail_retryable(error, SPILL_TIMED_OUT,
                                "the deadline has passed, and nothing was changed");
}

/* A deadline passed before a step, or before a READ was answered. */
static spill_code_t fail_in_time(spill_error_t *error)
{
    return has_changed ? fail_unknown(error) : spill_timed_given_up(error);
}

void spill_timed_note_change(void)
{
    has_changed = true;
}

/* ---- the step -------------------------------------------------------------------------------- */

spill_timed_t *spill_timed_current(void)
{
    return current;
}

bool spill_timed_begin(spill_timed_t *step)
{
    if (!step)
        return true;
    pthread_mutex_lock(&step->lock);
    step->begun = step->begun || !step->given_up;
    bool begun = step->begun;
    pthread_mutex_unlock(&step->lock);
    return begun;
}

spill_timed_t *spill_timed_step_new(spill_store_t *store, spill_timed_fn run,
                                    spill_timed_fn release)
{
    spill_timed_t *step = bson_malloc0(sizeof *step);
    step->store = store;
    step->run = run;
    step->release = release;
    pthread_mutex_init(&step->lock, NULL);
    spill_clock_condition_init(&step->changed);
    return step;
}

void spill_timed_step_free(spill_timed_t *step)
{
    step->release(step);
    pthread_cond_destroy(&step->changed);
    pthread_mutex_destroy(&step->lock);
    bson_free(step);
}

static void leave(spill_store_t *store)
{
    pthread_mutex_lock(&store->timed_lock);
    store->timed_running--;
    pthread_cond_broadcast(&store->timed_changed);
    pthread_mutex_unlock(&store->timed_lock);
}

/* Wait until fewer than RUNNING_MAX steps run. False: the deadline has passed. */
static bool enter(spill_store_t *store)
{
    bool in_time = spill_clock_monotonic_us(NULL) < deadline_us;
    pthread_mutex_lock(&store->timed_lock);
    while (in_time && store->timed_running == RUNNING_MAX)
        in_time = spill_timed_wait(&store->timed_changed, &store->timed_lock);
    store->timed_running += in_time;
    pthread_mutex_unlock(&store->timed_lock);
    return in_time;
}

void spill_timed_finish(spill_store_t *store)
{
    pthread_mutex_lock(&store->timed_lock);
    while (store->timed_running > 0)
        pthread_cond_wait(&store->timed_changed, &store->timed_lock);
    pthread_mutex_unlock(&store->timed_lock);
}

static void *work(void *argument)
{
    spill_timed_t *step = argument;
    spill_store_t *store = step->store;
    current = step;
    step->run(step);
    pthread_mutex_lock(&step->lock);
    step->done = true;
    bool given_up = step->given_up;
    pthread_cond_signal(&step->changed);
    pthread_mutex_unlock(&step->lock);
    if (given_up)
        spill_timed_step_free(step);
    leave(store);
    return NULL;
}

/* Wait for the step. True: it is done, and the caller frees it. False: it was given up. */
static bool await(spill_timed_t *step, bool *begun)
{
    pthread_mutex_lock(&step->lock);
    bool in_time = true;
    while (!step->done && in_time)
        in_time = spill_timed_wait(&step->changed, &step->lock);
    bool done = step->done;
    *begun = step->begun;
    step->given_up = !done;
    pthread_mutex_unlock(&step->lock);
    return done;
}

spill_code_t spill_timed_carry_out(spill_timed_t *step, bool changes, bool *done,
                                   spill_error_t *error)
{
    pthread_t thread;
    bool begun = false;
    *done = false;
    if (!enter(step->store)) {
        spill_timed_step_free(step);
        return fail_in_time(error);
    }
    if (pthread_create(&thread, NULL, work, step) != 0) {
        leave(step->store);
        spill_timed_step_free(step);
        return spill_fail(error, SPILL_NO_MEMORY,
                          "a call with a deadline needs a thread, and none can be started");
    }
    pthread_detach(thread);
    *done = await(step, &begun);
    if (!*done && !(begun && changes))
        return fail_in_time(error);
    if (!*done) {
        has_changed = true;
        return fail_unknown(error);
    }
    if (step->code != SPILL_OK && error)
        *error = step->error;
    return step->code;
}
