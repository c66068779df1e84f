/* The steps that are carried out under a deadline, with copies of their arguments. */
#include "store/timed_step.h"

#include "definition/schema.h"
#include "util/error.h"

/* ---- requests -------------------------------------------------------------------------------- */

/*
 * Return true if the step changes what a reader of the array sees. Other steps prepare documents,
 * or move elements between documents.
 */
static bool changes_array(const spill_request_t *request)
{
    switch (request->kind) {
    case SPILL_REQUEST_READ:
    case SPILL_REQUEST_PUT_PAGE:
    case SPILL_REQUEST_CUT:
    case SPILL_REQUEST_ADVANCE:
    case SPILL_REQUEST_CREATE_PAGE:
    case SPILL_REQUEST_RECOUNT:
    case SPILL_REQUEST_FORGET:
        return false;
    case SPILL_REQUEST_SEAL: /* a closed tail: any client finishes the drop */
        return request->seal.close && !spill_schema_of(request->definition)->appends_to_head;
    default:
        return true;
    }
}

static void release_requests(spill_timed_t *step)
{
    for (size_t i = 0; i < step->count; i++) {
        spill_request_free(step->requests[i]);
        spill_response_release(&step->responses[i]);
    }
    bson_free(step->requests);
    bson_free(step->responses);
}

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
    spill_timed_t *step = spill_timed_step_new(store, run, release_requests);
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
    spill_code_t code = spill_timed_carry_out(step, changes, &done, error);
    if (!done)
        return code;
    for (size_t i = 0; i < count; i++) {
        if (changes && (code == SPILL_UNKNOWN || step->responses[i].outcome == SPILL_DONE))
            spill_timed_note_change();
        spill_response_t empty = responses[i];
        responses[i] = step->responses[i];
        step->responses[i] = empty;
    }
    spill_timed_step_free(step);
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

/* ---- entries --------------------------------------------------------------------------------- */

static void release_entries(spill_timed_t *step)
{
    bson_free(step->name);
    bson_free(step->import);
    spill_entries_release(&step->entries);
}

static void run_open_entries(spill_timed_t *step)
{
    step->code = spill_store_open_entries(step->store, step->name, step->import, &step->entries,
                                          &step->error);
}

spill_code_t spill_timed_open_entries(spill_store_t *store, const char *name, const char *import,
                                      spill_entries_t *entries, spill_error_t *error)
{
    bool done;
    spill_timed_t *step = spill_timed_step_new(store, run_open_entries, release_entries);
    step->name = bson_strdup(name);
    step->import = bson_strdup(import);
    spill_code_t code = spill_timed_carry_out(step, false, &done, error);
    if (!done)
        return code;
    *entries = step->entries;
    step->entries = (spill_entries_t){0};
    spill_timed_step_free(step);
    return code;
}
