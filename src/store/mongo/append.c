/*
 * APPEND and UPDATE_FIELDS: classic operators, which a replicated server logs as what they change.
 * Where there is no head yet, it is made by an upsert whose filter no head can pass.
 */
#include "store/mongo/mongo.h"

#include "store/render.h"
#include "store/transition.h"
#include "util/error.h"

#include <string.h>

/* ---- the update ------------------------------------------------------------------------------ */

/* Operators that Spillway and the caller both may use; the caller's others stand alone. */
typedef struct update {
    bson_t set;
    bson_t increment;
    bson_t push;
} update_t;

static void update_init(update_t *update)
{
    bson_init(&update->set);
    bson_init(&update->increment);
    bson_init(&update->push);
}

static bool caller_operator(const bson_t *caller, const char *name, bson_t *operands)
{
    bson_iter_t iter;
    const uint8_t *data;
    uint32_t size;
    if (!caller || !bson_iter_init_find(&iter, caller, name) || !BSON_ITER_HOLDS_DOCUMENT(&iter))
        return false;
    bson_iter_document(&iter, &size, &data);
    return bson_init_static(operands, data, size) && !bson_empty(operands);
}

static void add_operator(bson_t *document, const char *name, const bson_t *ours,
                         const bson_t *caller)
{
    bson_t all, operands;
    bool more = caller_operator(caller, name, &operands);
    if (!more && (!ours || bson_empty(ours)))
        return;
    bson_append_document_begin(document, name, -1, &all);
    if (ours)
        bson_concat(&all, ours);
    if (more)
        bson_concat(&all, &operands);
    bson_append_document_end(document, &all);
}

/* Make one document of it and release it. */
static void update_finish(update_t *update, const bson_t *caller, bson_t *document)
{
    bson_init(document);
    add_operator(document, "$set", &update->set, caller);
    add_operator(document, "$inc", &update->increment, caller);
    add_operator(document, "$push", &update->push, NULL);
    add_operator(document, "$unset", NULL, caller);
    add_operator(document, "$min", NULL, caller);
    add_operator(document, "$max", NULL, caller);
    bson_destroy(&update->set);
    bson_destroy(&update->increment);
    bson_destroy(&update->push);
}

static void push_elements(const spill_mongo_document_t *document, bson_t *push)
{
    const spill_request_t *request = document->request;
    bson_t array, each;
    bson_append_document_begin(push, document->array, -1, &array);
    BSON_APPEND_ARRAY_BEGIN(&array, "$each", &each);
    for (size_t i = 0; i < request->element_count; i++) {
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        spill_value_append(&request->elements[i], &each, key);
    }
    bson_append_array_end(&array, &each);
    bson_append_document_end(push, &array);
}

/* The appends that a request is made of: its members, or itself. */
typedef struct members {
    spill_member_t alone;
    const spill_member_t *at;
    size_t count;
} members_t;

static void members_of(const spill_request_t *request, members_t *members)
{
    members->alone = (spill_member_t){.op = request->op, .count = (int64_t)request->element_count};
    members->at = request->member_count > 0 ? request->members : &members->alone;
    members->count = request->member_count > 0 ? request->member_count : 1;
}

/* {id, count, after} of each into an array, the newest first. */
static void list_ops(const spill_request_t *request, bson_t *array)
{
    members_t members;
    members_of(request, &members);
    if (!members.at[0].op) { /* all of them came after the operations that were there */
        spill_mongo_append_op(array, "0", NULL, (int64_t)request->element_count);
        return;
    }
    for (size_t i = 0; i < members.count; i++) {
        const spill_member_t *member = &members.at[members.count - 1 - i];
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        spill_mongo_append_op(array, key, member->op, member->count);
    }
}

/* Note the operations as the newest; the window forgets the oldest. */
static void push_ops(const spill_mongo_document_t *document, bson_t *push)
{
    const spill_request_t *request = document->request;
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t ops, each;
    bson_append_document_begin(push, spill_mongo_path(document, "ops", path), -1, &ops);
    BSON_APPEND_ARRAY_BEGIN(&ops, "$each", &each);
    list_ops(request, &each);
    bson_append_array_end(&ops, &each);
    BSON_APPEND_INT32(&ops, "$position", 0);
    BSON_APPEND_INT32(&ops, "$slice", request->op_window);
    bson_append_document_end(push, &ops);
}

/* `open`: what the append adds to the bookkeeping beside itself, see mongo.h. */
static void append_update(const spill_mongo_document_t *document, const bson_t *open,
                          bson_t *update)
{
    const spill_request_t *request = document->request;
    int64_t count = (int64_t)request->element_count;
    char path[SPILL_MONGO_PATH_SIZE];
    update_t parts;
    update_init(&parts);
    bson_concat(&parts.set, open);
    push_elements(document, &parts.push);
    spill_render_count(&parts.increment, document->count, count);
    int64_t ops = spill_request_ops(request);
    if (ops > 0) {
        push_ops(document, &parts.push);
        bson_append_int64(&parts.increment, spill_mongo_path(document, "n", path), -1, ops);
    } else {
        BSON_APPEND_INT64(&parts.increment, spill_mongo_path(document, "ops.0.after", path), count);
    }
    update_finish(&parts, request->update, update);
}

/* ---- the guard ------------------------------------------------------------------------------- */

/* None of the operations was seen, and each of them would be known if it had been. */
static void append_op_guards(const spill_mongo_document_t *document, bson_t *filter)
{
    const spill_request_t *request = document->request;
    char path[SPILL_MONGO_PATH_SIZE];
    members_t members;
    members_of(request, &members);
    int64_t below = INT64_MAX;
    bson_t condition, ids;
    bson_append_document_begin(filter, spill_mongo_path(document, "ops.id", path), -1, &condition);
    BSON_APPEND_ARRAY_BEGIN(&condition, "$nin", &ids);
    for (size_t i = 0; i < members.count; i++) {
        const spill_op_t *op = members.at[i].op;
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        bson_append_binary(&ids, key, -1, BSON_SUBTYPE_BINARY, op->id, (uint32_t)op->id_bytes);
        int64_t own = op->base + request->op_window - (int64_t)i;
        below = own < below ? own : below;
    }
    bson_append_array_end(&condition, &ids);
    bson_append_document_end(filter, &condition);
    spill_mongo_path(document, "n", path);
    BCON_APPEND(filter, path, "{", "$lt", BCON_INT64(below), "}");
}

/* Whatever the document may be. */
static void exact_guard(const spill_mongo_document_t *document, bson_t *filter)
{
    char path[SPILL_MONGO_PATH_SIZE];
    spill_mongo_path(document, "epoch", path);
    if (document->head)
        BCON_APPEND(filter, path, "{", "$exists", BCON_BOOL(true), "}");
    else
        BSON_APPEND_INT64(filter, path, document->request->epoch);
    BCON_APPEND(filter, spill_mongo_path(document, "sealed", path), "{", "$ne", BCON_BOOL(true),
                "}");
    spill_mongo_append_room(document, filter);
}

/* ---- making a head --------------------------------------------------------------------------- */

/*
 * The epoch of a head that is to be made: later than of every one that was ever dropped, whatever
 * the clocks of clients say. The mark is raised before a head goes (change.c).
 */
static spill_code_t date(spill_mongo_t *store, const spill_request_t *request, int64_t *epoch,
                         spill_error_t *error)
{
    bson_t *pipeline = BCON_NEW("0", "{", "$match", "{", "_id", "dropped", "}", "}");
    bson_t mark;
    bool found;
    spill_code_t code = spill_mongo_first(store, SPILL_MONGO_MARKS, pipeline, &mark, &found, error);
    *epoch = request->epoch;
    bson_iter_t rev;
    if (found && bson_iter_init_find(&rev, &mark, "rev") && bson_iter_as_int64(&rev) >= *epoch)
        *epoch = bson_iter_as_int64(&rev) + 1;
    bson_destroy(&mark);
    bson_destroy(pipeline);
    return code;
}

static void make_update(const spill_mongo_document_t *document, int64_t epoch, bson_t *update)
{
    const spill_request_t *request = document->request;
    const spill_definition_t *definition = request->definition;
    int64_t count = (int64_t)request->element_count;
    char path[SPILL_MONGO_PATH_SIZE];
    update_t parts;
    update_init(&parts);
    struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {"epoch", epoch}, {"rev", epoch}, {"first", 0},  {"n", spill_request_ops(request)},
        {"pages", 0},     {"low", 0},     {"removed", 0}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        bson_append_int64(&parts.set, spill_mongo_path(document, numbers[i].name, path), -1,
                          numbers[i].value);
    if (definition->keep == SPILL_KEEP_OLDEST)
        BSON_APPEND_INT64(&parts.set, spill_mongo_path(document, "total", path), 0);
    bson_t ops;
    bson_append_array_begin(&parts.set, spill_mongo_path(document, "ops", path), -1, &ops);
    list_ops(request, &ops);
    bson_append_array_end(&parts.set, &ops);
    spill_mongo_append_open(document, epoch, spill_mongo_path(document, "open", path), &parts.set);
    spill_render_count(&parts.set, document->count, count);
    if (count > 0) {
        push_elements(document, &parts.push);
    } else {
        bson_t none = BSON_INITIALIZER;
        BSON_APPEND_ARRAY(&parts.set, document->array, &none);
        bson_destroy(&none);
    }
    update_finish(&parts, request->update, update);
}

/* What the next quick append may be told; a document with numbers that are gone takes none. */
static void learn(spill_mongo_t *store, const spill_mongo_document_t *document,
                  const spill_state_t *state)
{
    spill_mongo_hint_t hint = {.length = state->gone.count == 0 ? state->live : -1, .n = state->n};
    spill_mongo_hint_learn(store->hints, document, &hint);
}

/*
 * Make the head that a READ (in `response`) did not find. The document may be there with other
 * fields only; then they stay. REFUSED where a head is made at this moment.
 */
static spill_code_t make_head(spill_mongo_t *store, const spill_mongo_document_t *document,
                              spill_response_t *response, spill_error_t *error)
{
    const spill_request_t *request = document->request;
    char path[SPILL_MONGO_PATH_SIZE];
    bool done = false;
    int64_t epoch = 0;
    spill_code_t code = date(store, request, &epoch, error);
    if (code == SPILL_OK) {
        bson_t filter, update;
        spill_mongo_select(document, &filter);
        BCON_APPEND(&filter, spill_mongo_path(document, "epoch", path), "{", "$exists",
                    BCON_BOOL(false), "}");
        make_update(document, epoch, &update);
        code = spill_mongo_upsert(store, document->collection, &filter, &update, &done, error);
        bson_destroy(&filter);
        bson_destroy(&update);
    }
    spill_response_clear(response);
    response->outcome = SPILL_REFUSED_GUARD;
    if (code == SPILL_OK && done) {
        response->outcome = SPILL_DONE;
        response->state.present = true;
        response->state.epoch = epoch;
        response->state.rev = epoch;
        response->state.live = (int64_t)request->element_count;
        response->state.n = spill_request_ops(request);
        learn(store, document, &response->state);
    }
    return code;
}

/* ---- the steps ------------------------------------------------------------------------------- */

/* The answer of a server that was told the length: `first` alone. */
static spill_code_t read_first(const spill_mongo_document_t *document, const bson_t *after,
                               const spill_mongo_hint_t *hint, spill_state_t *state,
                               spill_error_t *error)
{
    char path[SPILL_MONGO_PATH_SIZE];
    bson_iter_t iter, first;
    spill_mongo_path(document, "first", path);
    if (!bson_iter_init(&iter, after) || !bson_iter_find_descendant(&iter, path, &first) ||
        !BSON_ITER_HOLDS_NUMBER(&first))
        return spill_fail(error, SPILL_CORRUPT, "%s: %s is not a number", document->collection,
                          path);
    state->present = true;
    state->first = bson_iter_as_int64(&first);
    state->live = hint->length + (int64_t)document->request->element_count;
    state->n = hint->n + spill_request_ops(document->request);
    return SPILL_OK;
}

/* One command, that appends if `guard` holds, which names the length in `hint` if there is one. */
static spill_code_t append_if(spill_mongo_t *store, const spill_mongo_document_t *document,
                              const bson_t *guard, const spill_mongo_hint_t *hint,
                              const bson_t *open, spill_response_t *response, spill_error_t *error)
{
    const spill_request_t *request = document->request;
    spill_state_t *state = &response->state;
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t filter, update, fields = BSON_INITIALIZER, after;
    spill_mongo_select(document, &filter);
    bson_concat(&filter, guard);
    if (spill_request_ops(request) > 0)
        append_op_guards(document, &filter);
    append_update(document, open, &update);
    bool due =
        hint && spill_request_is_due(request, hint->length + (int64_t)request->element_count);
    if (due)
        spill_mongo_project_read(document, &fields);
    else if (hint)
        BSON_APPEND_INT32(&fields, spill_mongo_path(document, "first", path), 1);
    else
        spill_mongo_project_end(document, &fields);
    bool found;
    spill_code_t code = spill_mongo_modify(store, document->collection, &filter, &update, &fields,
                                           &after, &found, error);
    response->outcome = found ? SPILL_DONE : SPILL_REFUSED_GUARD;
    if (code == SPILL_OK && found)
        code = due    ? spill_mongo_take(document, &after, state, &response->run, NULL, error)
               : hint ? read_first(document, &after, hint, state, error)
                      : spill_mongo_state(document, &after, state, NULL, error);
    if (code == SPILL_OK && found)
        learn(store, document, state);
    response->looked = due && found;
    response->seq = spill_state_end(state) - (int64_t)request->element_count;
    bson_destroy(&filter);
    bson_destroy(&update);
    bson_destroy(&fields);
    bson_destroy(&after);
    return code;
}

/* With a hint of the length, or NULL. */
static spill_code_t append_quickly(spill_mongo_t *store, const spill_mongo_document_t *document,
                                   const spill_mongo_hint_t *hint, spill_response_t *response,
                                   spill_error_t *error)
{
    bson_t guard = BSON_INITIALIZER, nothing = BSON_INITIALIZER;
    spill_mongo_append_quick_guard(document, hint, &guard);
    spill_code_t code = append_if(store, document, &guard, hint, &nothing, response, error);
    bson_destroy(&guard);
    bson_destroy(&nothing);
    return code;
}

/* ... to a document that was read, in `response`; it is opened for quick ones, where it can be. */
static spill_code_t append_exactly(spill_mongo_t *store, const spill_mongo_document_t *document,
                                   spill_response_t *response, spill_error_t *error)
{
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t guard = BSON_INITIALIZER, open = BSON_INITIALIZER;
    exact_guard(document, &guard);
    if (response->state.gone.count == 0) {
        spill_mongo_append_open(document, response->state.epoch,
                                spill_mongo_path(document, "open", path), &open);
        BCON_APPEND(&guard, spill_mongo_path(document, "gone", path), "{", "$exists",
                    BCON_BOOL(false), "}");
    }
    spill_code_t code = append_if(store, document, &guard, NULL, &open, response, error);
    bson_destroy(&guard);
    bson_destroy(&open);
    return code;
}

/* What is there, where the request is to be carried out? */
static spill_code_t look(spill_mongo_t *store, const spill_request_t *request, spill_want_t want,
                         spill_response_t *response, spill_error_t *error)
{
    spill_request_t read = *request;
    read.kind = SPILL_REQUEST_READ;
    read.want = want;
    spill_response_clear(response);
    return spill_mongo_read(store, &read, response, error);
}

/* Would the request take the document past its slots, if it has the length of the hint? */
static bool is_full(const spill_request_t *request, const spill_mongo_hint_t *hint)
{
    return hint->length + (int64_t)request->element_count > request->limits.slots_max;
}

/*
 * Most appends are quick. One that is not is judged by what a look at the document shows: it is
 * refused, or carried out under an exact guard, or a head is to be made. Where the document is
 * known to be full, the look brings along what a spill will begin with.
 */
spill_code_t spill_mongo_append(spill_mongo_t *store, const spill_request_t *request,
                                spill_response_t *response, spill_error_t *error)
{
    spill_mongo_document_t document;
    spill_mongo_document_init(&document, store, request);
    spill_mongo_hint_t hint;
    bool hinted = spill_mongo_hint(store->hints, &document, &hint);
    bool full = hinted && is_full(request, &hint);
    spill_code_t code = SPILL_OK;
    response->outcome = SPILL_REFUSED_GUARD;
    if (!full && spill_mongo_is_quick(&document))
        code = append_quickly(store, &document, hinted ? &hint : NULL, response, error);
    if (code != SPILL_OK || response->outcome == SPILL_DONE)
        return code;
    code = look(store, request, full ? request->want : SPILL_WANT_NONE, response, error);
    response->outcome = SPILL_REFUSED_GUARD;
    if (code != SPILL_OK)
        return code;
    if (hinted && response->state.live != hint.length)
        spill_mongo_hint_doubt(store->hints, &document);
    bool there = response->state.present;
    if (spill_append_refusal(request, &response->state, response->op_found) == SPILL_REFUSAL_NONE)
        return there ? append_exactly(store, &document, response, error)
                     : make_head(store, &document, response, error);
    response->judged = true;
    response->looked = full && request->want != SPILL_WANT_NONE;
    return SPILL_OK;
}

static spill_code_t update_head(spill_mongo_t *store, const spill_mongo_document_t *document,
                                bool *found, spill_error_t *error)
{
    char path[SPILL_MONGO_PATH_SIZE];
    update_t parts;
    update_init(&parts);
    bson_t filter, update;
    spill_mongo_select(document, &filter);
    BCON_APPEND(&filter, spill_mongo_path(document, "epoch", path), "{", "$exists", BCON_BOOL(true),
                "}");
    update_finish(&parts, document->request->update, &update);
    spill_code_t code =
        spill_mongo_modify(store, document->collection, &filter, &update, NULL, NULL, found, error);
    bson_destroy(&filter);
    bson_destroy(&update);
    return code;
}

spill_code_t spill_mongo_update_fields(spill_mongo_t *store, const spill_request_t *request,
                                       spill_response_t *response, spill_error_t *error)
{
    spill_mongo_document_t document;
    spill_mongo_document_init(&document, store, request);
    enum { TRIES = 4 }; /* heads may come and go meanwhile */
    bool updates = request->update && !bson_empty(request->update);
    bool done = false;
    spill_code_t code = SPILL_OK;
    for (int i = 0; i < TRIES && code == SPILL_OK && !done; i++) {
        if (updates)
            code = update_head(store, &document, &done, error);
        if (code != SPILL_OK || done || (updates && !request->create))
            break;
        code = look(store, request, SPILL_WANT_NONE, response, error);
        done = response->state.present && !updates;
        if (code != SPILL_OK || done || !request->create)
            break;
        if (response->state.present)
            continue;
        code = make_head(store, &document, response, error);
        done = response->outcome == SPILL_DONE;
    }
    response->outcome = done ? SPILL_DONE : SPILL_REFUSED_GUARD;
    return code == SPILL_TOO_BIG ? SPILL_OK : code; /* refused: it would pass the limit */
}
