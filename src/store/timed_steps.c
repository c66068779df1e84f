/* The steps that are carried out under a deadline, with copies of their arguments. */
#include "store/timed_step.h"

#include "util/error.h"

#include <string.h>

/* ---- requests -------------------------------------------------------------------------------- */

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

/* ---- listings -------------------------------------------------------------------------------- */

static void release_query(spill_timed_t *step)
{
    for (size_t i = 0; i < sizeof step->query_copies / sizeof *step->query_copies; i++)
        bson_free(step->query_copies[i]);
    spill_listing_release(&step->listing);
}

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
    spill_timed_t *step = spill_timed_step_new(store, run_list, release_query);
    step->definition = *definition;
    step->bound = binding != NULL;
    if (binding)
        step->binding = *binding;
    copy_query(step, query);
    spill_code_t code = spill_timed_carry_out(step, false, &done, error);
    if (!done)
        return code;
    spill_listing_t empty = *listing;
    *listing = step->listing;
    step->listing = empty;
    spill_timed_step_free(step);
    return code;
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

/* ---- notes of drops -------------------------------------------------------------------------- */

/* An owner, as in a query, and a note of its drop. */
static spill_timed_t *note_step_new(spill_store_t *store, spill_timed_fn run,
                                    const spill_definition_t *definition,
                                    const spill_value_t *owner)
{
    spill_timed_t *step = spill_timed_step_new(store, run, release_query);
    step->definition = *definition;
    copy_value(step, 0, owner);
    return step;
}

static void run_find_drop(spill_timed_t *step)
{
    step->code = step->store->ops->find_drop(step->store, &step->definition, &step->query_values[0],
                                             &step->note, &step->error);
}

spill_code_t spill_timed_find_drop(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_value_t *owner, spill_drop_note_t *note,
                                   spill_error_t *error)
{
    bool done;
    spill_timed_t *step = note_step_new(store, run_find_drop, definition, owner);
    spill_code_t code = spill_timed_carry_out(step, false, &done, error);
    if (!done)
        return code;
    *note = step->note;
    spill_timed_step_free(step);
    return code;
}

static void run_forget_drop(spill_timed_t *step)
{
    step->code = step->store->ops->forget_drop(step->store, &step->definition,
                                               &step->query_values[0], &step->note, &step->error);
}

spill_code_t spill_timed_forget_drop(spill_store_t *store, const spill_definition_t *definition,
                                     const spill_value_t *owner, const spill_drop_note_t *note,
                                     spill_error_t *error)
{
    bool done;
    spill_timed_t *step = note_step_new(store, run_forget_drop, definition, owner);
    step->note = *note;
    spill_code_t code = spill_timed_carry_out(step, false, &done, error);
    if (done)
        spill_timed_step_free(step);
    return code;
}
