#include "store/timed.h"

#include "util/error.h"

#include <spillway/deadline.h>

#include <errno.h>
#include <string.h>
#include <time.h>

/* Steps of a store that may run at one time for callers with a deadline. */
enum { RUNNING_MAX = 256 };

struct spill_timed {
    pthread_mutex_t lock; /* guards begun, given_up and done */
    pthread_cond_t changed;
    bool begun, given_up, done;

    spill_store_t *store;
    void (*run)(spill_timed_t *step);
    spill_code_t code;
    spill_error_t error;

    /* Copies of the arguments, and the results. */
    spill_request_t **requests;
    spill_response_t *responses;
    size_t count;
    spill_definition_t definition;
    spill_binding_t binding;
    bool bound;
    spill_list_query_t query;
    void *query_copies[5];
    spill_value_t query_values[2];
    spill_listing_t listing;
    char *name, *import;
    spill_entries_t entries;
};

/* ---- the deadline of a thread ---------------------------------------------------------------- */

static _Thread_local int64_t deadline_us; /* of CLOCK_MONOTONIC; 0: none */
static _Thread_local bool has_changed;    /* a step of this call has begun what was asked for */
static _Thread_local spill_timed_t *current;

static int64_t monotonic_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

spill_deadline_t spill_deadline_begin(int64_t timeout_ms)
{
    spill_deadline_t outer = {.at_us = deadline_us};
    has_changed = false;
    if (timeout_ms < 0 || timeout_ms > INT64_MAX / 2000)
        return outer;
    int64_t at_us = monotonic_us() + timeout_ms * 1000;
    if (outer.at_us == 0 || at_us < outer.at_us)
        deadline_us = at_us;
    return outer;
}

void spill_deadline_end(spill_deadline_t outer)
{
    deadline_us = outer.at_us;
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
    struct timespec until = {.tv_sec = deadline_us / 1000000,
                             .tv_nsec = deadline_us % 1000000 * 1000};
    return pthread_cond_timedwait(condition, lock, &until) != ETIMEDOUT;
}

void spill_timed_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
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

/*
 * Does the step begin what its caller was asked for? The others prepare documents, or move
 * elements between them: without them the array has the same elements.
 */
static bool changes_array(const spill_request_t *request)
{
    switch (request->kind) {
    case SPILL_REQUEST_READ:
    case SPILL_REQUEST_PUT_PAGE:
    case SPILL_REQUEST_CUT:
    case SPILL_REQUEST_SEAL:
    case SPILL_REQUEST_ADVANCE:
    case SPILL_REQUEST_CREATE_PAGE:
    case SPILL_REQUEST_RECOUNT:
    case SPILL_REQUEST_FORGET:
        return false;
    default:
        return true;
    }
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

static spill_timed_t *step_new(spill_store_t *store, void (*run)(spill_timed_t *step))
{
    spill_timed_t *step = bson_malloc0(sizeof *step);
    step->store = store;
    step->run = run;
    pthread_mutex_init(&step->lock, NULL);
    spill_timed_condition_init(&step->changed);
    return step;
}

static void step_free(spill_timed_t *step)
{
    for (size_t i = 0; i < step->count; i++) {
        spill_request_free(step->requests[i]);
        spill_response_release(&step->responses[i]);
    }
    bson_free(step->requests);
    bson_free(step->responses);
    for (size_t i = 0; i < sizeof step->query_copies / sizeof *step->query_copies; i++)
        bson_free(step->query_copies[i]);
    spill_listing_release(&step->listing);
    bson_free(step->name);
    bson_free(step->import);
    spill_entries_release(&step->entries);
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
    bool in_time = monotonic_us() < deadline_us;
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
        step_free(step);
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

/*
 * Let another thread carry out the step. *done: it has ended in time, and the caller takes its
 * results and frees it. `changes`: it begins what was asked for.
 */
static spill_code_t carry_out(spill_timed_t *step, bool changes, bool *done, spill_error_t *error)
{
    pthread_t thread;
    bool begun = false;
    *done = false;
    if (!enter(step->store)) {
        step_free(step);
        return fail_in_time(error);
    }
    if (pthread_create(&thread, NULL, work, step) != 0) {
        leave(step->store);
        step_free(step);
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

/* ---- requests -------------------------------------------------------------------------------- */

/* If the store does not say when its steps begin, they begin when it can send them. */
static bool begin_here(spill_timed_t *step)
{
    const spill_store_ops_t *ops = step->store->ops;
    if (ops->begins_steps || step->requests[0]->kind == SPILL_REQUEST_READ)
        return true;
    if (ops->await_ready)
        step->code = ops->await_ready(step->store, &step->error);
    if (step->code == SPILL_OK && !spill_timed_begin(step))
        step->code = spill_timed_given_up(&step->error);
    return step->code == SPILL_OK;
}

static void run_call(spill_timed_t *step)
{
    if (begin_here(step))
        step->code =
            spill_store_call(step->store, step->requests[0], step->responses, &step->error);
}

static void run_call_all(spill_timed_t *step)
{
    if (!begin_here(step))
        return;
    spill_request_t *requests = bson_malloc(step->count * sizeof *requests);
    for (size_t i = 0; i < step->count; i++)
        requests[i] = *step->requests[i];
    step->code =
        spill_store_call_all(step->store, requests, step->count, step->responses, &step->error);
    bson_free(requests);
}

/* `requests` has `count` of one kind. */
static spill_code_t carry_out_requests(spill_store_t *store, void (*run)(spill_timed_t *step),
                                       const spill_request_t *requests, size_t count,
                                       spill_response_t *responses, spill_error_t *error)
{
    bool done;
    spill_timed_t *step = step_new(store, run);
    step->count = count;
    step->requests = bson_malloc(count * sizeof(spill_request_t *));
    step->responses = bson_malloc0(count * sizeof *step->responses);
    for (size_t i = 0; i < count; i++) {
        step->requests[i] = spill_request_clone(&requests[i]);
        if (requests[i].kind == SPILL_REQUEST_READ)
            step->requests[i]->read.ahead = false; /* for the thread that has listed the owners */
        spill_response_clear(&responses[i]);
    }
    bool changes = changes_array(requests);
    spill_code_t code = carry_out(step, changes, &done, error);
    if (!done)
        return code;
    for (size_t i = 0; i < count; i++) {
        has_changed =
            has_changed ||
            (changes && (code == SPILL_UNKNOWN || step->responses[i].outcome == SPILL_DONE));
        spill_response_t empty = responses[i];
        responses[i] = step->responses[i];
        step->responses[i] = empty;
    }
    step_free(step);
    return code;
}

spill_code_t spill_timed_call(spill_store_t *store, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error)
{
    return carry_out_requests(store, run_call, request, 1, response, error);
}

spill_code_t spill_timed_call_all(spill_store_t *store, const spill_request_t *requests,
                                  size_t count, spill_response_t *responses, spill_error_t *error)
{
    return carry_out_requests(store, run_call_all, requests, count, responses, error);
}

/* ---- listings -------------------------------------------------------------------------------- */

static void run_list(spill_timed_t *step)
{
    const spill_binding_t *binding = step->bound ? &step->binding : NULL;
    step->code = step->store->ops->list[step->query.list](
        step->store, &step->definition, binding, &step->query, &step->listing, &step->error);
}

static void *copy_bytes(const void *bytes, size_t size)
{
    return bytes ? memcpy(bson_malloc(size + 1), bytes, size) : NULL;
}

/* The i-th value of the query, with its own bytes. */
static const spill_value_t *copy_value(spill_timed_t *step, size_t i, const spill_value_t *value)
{
    if (!value)
        return NULL;
    step->query_values[i] = *value;
    step->query_copies[i] = copy_bytes(value->data, value->size_bytes);
    step->query_values[i].data = step->query_copies[i];
    return &step->query_values[i];
}

static void copy_query(spill_timed_t *step, const spill_list_query_t *query)
{
    spill_list_query_t *copy = &step->query;
    *copy = *query;
    /* With the byte behind it: the position in a list of windows is a text. */
    size_t after_bytes = query->after_bytes + (query->list == SPILL_LIST_WINDOWS);
    copy->after = step->query_copies[2] = copy_bytes(query->after, after_bytes);
    if (query->list == SPILL_LIST_ORPHANS)
        copy->orphans.owner = copy_value(step, 0, query->orphans.owner);
    if (query->list != SPILL_LIST_WINDOWS)
        return;
    copy->windows.owner = copy_value(step, 0, query->windows.owner);
    copy->windows.id = copy_value(step, 1, query->windows.id);
    copy->windows.from = step->query_copies[3] = bson_strdup(query->windows.from);
    copy->windows.to = step->query_copies[4] = bson_strdup(query->windows.to);
}

spill_code_t spill_timed_list(spill_store_t *store, const spill_definition_t *definition,
                              const spill_binding_t *binding, const spill_list_query_t *query,
                              spill_listing_t *listing, spill_error_t *error)
{
    bool done;
    spill_timed_t *step = step_new(store, run_list);
    step->definition = *definition;
    step->bound = binding != NULL;
    if (binding)
        step->binding = *binding;
    copy_query(step, query);
    spill_code_t code = carry_out(step, false, &done, error);
    if (!done)
        return code;
    spill_listing_t empty = *listing;
    *listing = step->listing;
    step->listing = empty;
    step_free(step);
    return code;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void run_open_entries(spill_timed_t *step)
{
    step->code = spill_store_open_entries(step->store, step->name, step->import, &step->entries,
                                          &step->error);
}

spill_code_t spill_timed_open_entries(spill_store_t *store, const char *name, const char *import,
                                      spill_entries_t *entries, spill_error_t *error)
{
    bool done;
    spill_timed_t *step = step_new(store, run_open_entries);
    step->name = bson_strdup(name);
    step->import = bson_strdup(import);
    spill_code_t code = carry_out(step, false, &done, error);
    if (!done)
        return code;
    *entries = step->entries;
    step->entries = (spill_entries_t){0};
    step_free(step);
    return code;
}
