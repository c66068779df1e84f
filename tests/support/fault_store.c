#include "support/fault_store.h"

#include "util/error.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

typedef struct fault_store {
    spill_store_t base;
    spill_store_ops_t ops; /* with the inner store's flags */
    spill_store_t *inner;
    fault_hooks_t hooks;
    int64_t calls;
    int64_t counters[FAULT_COUNT];
    spill_request_t **pending; /* clones */
    size_t pending_count;
    size_t pending_capacity;
} fault_store_t;

const char *fault_name(fault_t fault)
{
    static const char *const names[] = {
#define FAULT_NAME(name) #name,
        FAULTS(FAULT_NAME)
#undef FAULT_NAME
    };
    assert(fault < FAULT_COUNT);
    return names[fault];
}

/* ---- one call and its fault ------------------------------------------------------------------ */

/* A call under way. */
typedef struct step {
    fault_store_t *faulty;
    const spill_request_t *request; /* NULL: not a request */
    int64_t index;
    fault_t fault;
} step_t;

static step_t begin(spill_store_t *store, const spill_request_t *request)
{
    fault_store_t *faulty = (fault_store_t *)store;
    const fault_hooks_t *hooks = &faulty->hooks;
    step_t step = {.faulty = faulty, .request = request, .index = faulty->calls++};
    if (hooks->before)
        hooks->before(hooks->context, step.index, request);
    if (hooks->decide)
        step.fault = hooks->decide(hooks->context, step.index, request);
    if (!request && step.fault == FAULT_DUPLICATE)
        step.fault = FAULT_NONE;
    if (!request && step.fault == FAULT_LOST_DELAYED)
        step.fault = FAULT_LOST_UNAPPLIED;
    faulty->counters[step.fault]++;
    return step;
}

/* Is the call passed on now? */
static bool applies(const step_t *step)
{
    return step->fault == FAULT_NONE || step->fault == FAULT_LOST_APPLIED ||
           step->fault == FAULT_DUPLICATE;
}

/* The code for the caller, after the store, if it was called, returned `code`. */
static spill_code_t end(const step_t *step, spill_code_t code, spill_error_t *error)
{
    const fault_hooks_t *hooks = &step->faulty->hooks;
    if (hooks->after)
        hooks->after(hooks->context, step->index, step->request);
    if (step->fault == FAULT_NONE || step->fault == FAULT_DUPLICATE)
        return code;
    bool failed = step->fault == FAULT_FAIL;
    return spill_fail(error, failed ? SPILL_IO : SPILL_UNKNOWN,
                      "call %" PRId64 " of this store: %s", step->index,
                      failed ? "made to fail" : "the answer was made to be lost");
}

static void keep(fault_store_t *faulty, const spill_request_t *request)
{
    if (faulty->pending_count == faulty->pending_capacity) {
        faulty->pending_capacity = faulty->pending_capacity < 4 ? 4 : faulty->pending_capacity * 2;
        faulty->pending =
            bson_realloc(faulty->pending, faulty->pending_capacity * sizeof(spill_request_t *));
    }
    faulty->pending[faulty->pending_count++] = spill_request_clone(request);
}

static spill_code_t call(spill_store_t *store, const spill_request_t *request,
                         spill_response_t *response, spill_error_t *error)
{
    step_t step = begin(store, request);
    spill_response_clear(response);
    if (step.fault == FAULT_DUPLICATE || step.fault == FAULT_LOST_DELAYED)
        keep(step.faulty, request);
    spill_code_t code = SPILL_OK;
    if (applies(&step))
        code = spill_store_call(step.faulty->inner, request, response, error);
    if (!applies(&step) || step.fault == FAULT_LOST_APPLIED)
        spill_response_clear(response);
    return end(&step, code, error);
}

/* Does the inner store have the head? It is not counted as a call. */
static bool has_head(spill_store_t *store, const spill_request_t *append)
{
    spill_store_t *inner = ((fault_store_t *)store)->inner;
    spill_request_t read = spill_request_reading(append);
    spill_response_t head = SPILL_RESPONSE_INIT;
    bool there = spill_store_call(inner, &read, &head, NULL) != SPILL_OK || head.state.present;
    spill_response_release(&head);
    return there;
}

/* Each request is a call with its own fault: of an unordered command, any part may be lost. */
static spill_code_t make_heads(spill_store_t *store, const spill_request_t *requests, size_t count,
                               spill_error_t *error)
{
    spill_code_t first = SPILL_OK;
    for (size_t i = 0; i < count; i++) {
        spill_response_t response = SPILL_RESPONSE_INIT;
        spill_code_t code = SPILL_OK;
        if (!has_head(store, &requests[i]))
            code = call(store, &requests[i], &response, first == SPILL_OK ? error : NULL);
        first = first == SPILL_OK ? code : first;
        spill_response_release(&response);
    }
    return first;
}

static spill_code_t cut_heads(spill_store_t *store, const spill_request_t *requests, size_t count,
                              spill_error_t *error)
{
    spill_code_t first = SPILL_OK;
    for (size_t i = 0; i < count; i++) {
        spill_response_t response = SPILL_RESPONSE_INIT;
        spill_code_t code = call(store, &requests[i], &response, first == SPILL_OK ? error : NULL);
        first = first == SPILL_OK ? code : first;
        spill_response_release(&response);
    }
    return first;
}

/* ---- calls that are not requests ------------------------------------------------------------- */

static spill_store_t *inner_of(const step_t *step)
{
    return step->faulty->inner;
}

static spill_code_t bind(spill_store_t *store, const spill_definition_t *definition,
                         spill_binding_t *binding, spill_error_t *error)
{
    *binding = (spill_binding_t){0};
    step_t step = begin(store, NULL);
    spill_code_t code = SPILL_OK;
    if (applies(&step))
        code = inner_of(&step)->ops->bind(inner_of(&step), definition, binding, error);
    return end(&step, code, error);
}

static spill_code_t list(spill_store_t *store, const spill_definition_t *definition,
                         const spill_binding_t *binding, const spill_list_query_t *query,
                         spill_listing_t *listing, spill_error_t *error)
{
    step_t step = begin(store, NULL);
    spill_code_t code = SPILL_OK;
    if (applies(&step))
        code = spill_store_list(inner_of(&step), definition, binding, query, listing, error);
    return end(&step, code, error);
}

static spill_code_t catalog_get(spill_store_t *store, spill_catalog_t kind, const char *name,
                                bson_t **document, spill_error_t *error)
{
    *document = NULL;
    step_t step = begin(store, NULL);
    spill_code_t code = SPILL_OK;
    if (applies(&step))
        code = inner_of(&step)->ops->catalog_get(inner_of(&step), kind, name, document, error);
    code = end(&step, code, error);
    if (code != SPILL_OK) {
        bson_destroy(*document);
        *document = NULL;
    }
    return code;
}

static spill_code_t make_indexes(spill_store_t *store, const spill_definition_t *definition,
                                 spill_error_t *error)
{
    step_t step = begin(store, NULL);
    spill_code_t code = SPILL_OK;
    if (applies(&step))
        code = spill_store_make_indexes(inner_of(&step), definition, error);
    return end(&step, code, error);
}

static spill_code_t catalog_put(spill_store_t *store, spill_catalog_t kind, const char *name,
                                const bson_t *expected, const bson_t *document, bool *done,
                                spill_error_t *error)
{
    *done = false;
    step_t step = begin(store, NULL);
    spill_code_t code = SPILL_OK;
    if (applies(&step))
        code = inner_of(&step)->ops->catalog_put(inner_of(&step), kind, name, expected, document,
                                                 done, error);
    return end(&step, code, error);
}

static spill_code_t catalog_delete(spill_store_t *store, spill_catalog_t kind, const char *name,
                                   spill_error_t *error)
{
    step_t step = begin(store, NULL);
    spill_code_t code = SPILL_OK;
    if (applies(&step))
        code = inner_of(&step)->ops->catalog_delete(inner_of(&step), kind, name, error);
    return end(&step, code, error);
}

static spill_code_t catalog_names(spill_store_t *store, spill_catalog_t kind,
                                  spill_listing_t *names, spill_error_t *error)
{
    step_t step = begin(store, NULL);
    spill_code_t code = SPILL_OK;
    if (applies(&step))
        code = inner_of(&step)->ops->catalog_names(inner_of(&step), kind, names, error);
    return end(&step, code, error);
}

static spill_code_t retire(spill_store_t *store, const spill_definition_t *definition,
                           const spill_binding_t *binding, bool *done, spill_error_t *error)
{
    *done = false;
    step_t step = begin(store, NULL);
    spill_code_t code = SPILL_OK;
    if (applies(&step))
        code = spill_store_retire(inner_of(&step), definition, binding, done, error);
    return end(&step, code, error);
}

/* ---- notes of drops -------------------------------------------------------------------------- */

static spill_code_t head_ends(spill_store_t *store, int64_t rev, spill_error_t *error)
{
    step_t step = begin(store, NULL);
    spill_code_t code = SPILL_OK;
    if (applies(&step))
        code = spill_store_head_ends(inner_of(&step), rev, error);
    return end(&step, code, error);
}

static spill_code_t note_drop(spill_store_t *store, const spill_definition_t *definition,
                              const spill_value_t *owner, const spill_drop_note_t *note,
                              spill_error_t *error)
{
    step_t step = begin(store, NULL);
    spill_code_t code = SPILL_OK;
    if (applies(&step))
        code = spill_store_note_drop(inner_of(&step), definition, owner, note, error);
    return end(&step, code, error);
}

static spill_code_t find_drop(spill_store_t *store, const spill_definition_t *definition,
                              const spill_value_t *owner, spill_drop_note_t *note,
                              spill_error_t *error)
{
    step_t step = begin(store, NULL);
    spill_code_t code = SPILL_OK;
    if (applies(&step))
        code = spill_store_find_drop(inner_of(&step), definition, owner, note, error);
    return end(&step, code, error);
}

static spill_code_t forget_drop(spill_store_t *store, const spill_definition_t *definition,
                                const spill_value_t *owner, const spill_drop_note_t *note,
                                spill_error_t *error)
{
    step_t step = begin(store, NULL);
    spill_code_t code = SPILL_OK;
    if (applies(&step))
        code = spill_store_forget_drop(inner_of(&step), definition, owner, note, error);
    return end(&step, code, error);
}

/* A check only reads and is not part of a protocol: it never fails here. */
static spill_code_t check(spill_store_t *store, const spill_binding_t *binding,
                          const spill_definition_t *definition, const spill_value_t *owner,
                          spill_store_finding_fn report, void *context, spill_error_t *error)
{
    spill_store_t *inner = ((fault_store_t *)store)->inner;
    if (!inner->ops->check)
        return SPILL_OK;
    return inner->ops->check(inner, binding, definition, owner, report, context, error);
}

static spill_code_t close_store(spill_store_t *store, spill_error_t *error)
{
    (void)error;
    fault_store_t *faulty = (fault_store_t *)store;
    for (size_t i = 0; i < faulty->pending_count; i++)
        spill_request_free(faulty->pending[i]);
    bson_free(faulty->pending);
    spill_store_base_release(&faulty->base);
    bson_free(faulty);
    return SPILL_OK;
}

/* ---- for the owner of the wrapper ------------------------------------------------------------ */

static const spill_store_ops_t fault_ops = {
    .name = "fault",
    .call = call,
    .make_heads = make_heads,
    .cut_heads = cut_heads,
    .bind = bind,
    .list = {list, list, list, list},
    .catalog_get = catalog_get,
    .catalog_put = catalog_put,
    .make_indexes = make_indexes,
    .catalog_delete = catalog_delete,
    .catalog_names = catalog_names,
    .retire = retire,
    .close = close_store,
};

void fault_wrap(spill_store_t *inner, const fault_hooks_t *hooks, spill_store_t **store)
{
    fault_store_t *faulty = bson_malloc0(sizeof *faulty);
    faulty->ops = fault_ops;
    faulty->ops.others_write = inner->ops->others_write;
    faulty->ops.check = inner->ops->check ? check : NULL;
    if (inner->ops->note_drop) {
        faulty->ops.head_ends = head_ends;
        faulty->ops.note_drop = note_drop;
        faulty->ops.find_drop = find_drop;
        faulty->ops.forget_drop = forget_drop;
    }
    spill_store_base_init(&faulty->base, &faulty->ops, inner->uri, &inner->options);
    faulty->base.adopt_us = inner->adopt_us;
    faulty->base.adopter_us = inner->adopter_us;
    faulty->base.margin_us = inner->margin_us;
    faulty->base.adopt_room = inner->adopt_room;
    faulty->inner = inner;
    faulty->hooks = *hooks;
    *store = &faulty->base;
}

static const fault_store_t *faulty_of(const spill_store_t *store)
{
    assert(store->ops->call == call);
    return (const fault_store_t *)store;
}

int64_t fault_calls(const spill_store_t *store)
{
    return faulty_of(store)->calls;
}

int64_t fault_counter(const spill_store_t *store, fault_t fault)
{
    assert(fault < FAULT_COUNT);
    return faulty_of(store)->counters[fault];
}

size_t fault_pending(const spill_store_t *store)
{
    return faulty_of(store)->pending_count;
}

const spill_request_t *fault_peek(const spill_store_t *store, size_t index)
{
    assert(index < faulty_of(store)->pending_count);
    return faulty_of(store)->pending[index];
}

spill_outcome_t fault_deliver(spill_store_t *store, size_t index)
{
    assert(store->ops->call == call);
    fault_store_t *faulty = (fault_store_t *)store;
    assert(index < faulty->pending_count);
    spill_request_t *request = faulty->pending[index];
    spill_request_t **place = faulty->pending + index;
    faulty->pending_count--;
    memmove(place, place + 1, (faulty->pending_count - index) * sizeof(spill_request_t *));

    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_store_call(faulty->inner, request, &response, NULL);
    spill_outcome_t outcome = code == SPILL_OK ? response.outcome : SPILL_REFUSED_GUARD;
    spill_response_release(&response);
    spill_request_free(request);
    return outcome;
}

/* ---- a single fault -------------------------------------------------------------------------- */

static fault_t decide_once(void *context, int64_t index, const spill_request_t *request)
{
    (void)request;
    const fault_once_t *once = context;
    return index == once->at ? once->fault : FAULT_NONE;
}

fault_hooks_t fault_once(fault_once_t *once)
{
    return (fault_hooks_t){.context = once, .decide = decide_once};
}
