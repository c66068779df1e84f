/*
 * APPEND and UPDATE_FIELDS. If there is no head yet, an upsert makes it; no existing head can pass
 * its filter.
 */
#include "store/mongo/mongo.h"

#include "definition/fields.h"
#include "definition/schema.h"
#include "store/render.h"
#include "store/transition.h"
#include "util/error.h"

#include <stdio.h>

/* READ the document of the request. */
static spill_code_t read_document(spill_mongo_t *store, const spill_request_t *request,
                                  spill_want_t want, int64_t limit, spill_response_t *response,
                                  spill_error_t *error)
{
    spill_request_t read = spill_request_reading(request);
    read.read.want = want;
    read.read.limit = limit;
    spill_response_clear(response);
    return spill_mongo_read(store, &read, response, error);
}

/* ---- making a head --------------------------------------------------------------------------- */

/*
 * The incarnation of a new head is later than those of all dropped heads, whatever the clocks of
 * clients say. The rev of {_id: "dropped"} is raised before a head is dropped (change.c).
 */
spill_code_t spill_mongo_date(spill_mongo_t *store, const spill_request_t *request,
                              int64_t *incarnation, spill_error_t *error)
{
    bson_t *pipeline = BCON_NEW("0", "{", "$match", "{", "_id", "dropped", "}", "}");
    bson_t checkpoint;
    bool found;
    spill_code_t code =
        spill_mongo_first(store, SPILL_MONGO_CHECKPOINTS, pipeline, &checkpoint, &found, error);
    *incarnation = request->incarnation;
    bson_iter_t rev;
    if (found && bson_iter_init_find(&rev, &checkpoint, "rev") &&
        spill_iter_int64(&rev) >= *incarnation)
        *incarnation = spill_iter_int64(&rev) + 1;
    bson_destroy(&checkpoint);
    bson_destroy(pipeline);
    return code;
}

/* Another program may have pushed an element since the READ: then do not make a head. */
static void append_no_element(const spill_mongo_document_t *document, bson_t *filter)
{
    char first[SPILL_NAME_SIZE + 2];
    snprintf(first, sizeof first, "%s.0", document->array);
    BCON_APPEND(filter, first, "{", "$exists", BCON_BOOL(false), "}");
}

/*
 * Make the head that a READ (in `response`) did not find. If the document exists with other fields,
 * they stay. REFUSED if another client has made a head since.
 */
spill_code_t spill_mongo_make_head(spill_mongo_t *store, const spill_mongo_document_t *document,
                                   const spill_mongo_roll_t *roll, spill_response_t *response,
                                   spill_error_t *error)
{
    const spill_request_t *request = document->request;
    char path[SPILL_MONGO_PATH_SIZE];
    bool done = false;
    int64_t incarnation = 0;
    spill_code_t code = spill_mongo_date(store, request, &incarnation, error);
    if (code == SPILL_OK && spill_mongo_is_bucket(document)) {
        code = spill_mongo_insert_bucket(store, document, incarnation, &done, error);
    } else if (code == SPILL_OK) {
        bson_t filter, update;
        spill_mongo_select(document, &filter);
        BCON_APPEND(&filter, spill_mongo_path(document, "epoch", path), "{", "$exists",
                    BCON_BOOL(false), "}");
        append_no_element(document, &filter);
        spill_mongo_update_of_new_head(document, incarnation, roll, &update);
        code = spill_mongo_upsert(store, document->collection, &filter, &update, &done, error);
        bson_destroy(&filter);
        bson_destroy(&update);
    }
    spill_response_clear(response);
    response->outcome = SPILL_REFUSED_GUARD;
    if (code == SPILL_OK && done) {
        response->outcome = SPILL_DONE;
        response->state.present = true;
        response->state.incarnation = incarnation;
        response->state.rev = incarnation;
        response->state.first = roll ? roll->moved : 0;
        response->state.live = (int64_t)request->append.element_count - response->state.first;
        response->state.op_count = spill_request_ops(request);
        if (roll && roll->top_n) {
            response->state.live = roll->after->live;
            spill_seqs_copy(&roll->after->deleted, &response->state.deleted);
        }
        spill_mongo_hint_learn(store->hints, document, &response->state);
    }
    return code;
}

/* ---- one command that appends ---------------------------------------------------------------- */

/* What an append asks the server to return, the cheapest first. */
typedef enum answer {
    ANSWER_FIRST, /* `first` and `n`, enough if the guard has the length */
    ANSWER_END,   /* the end of the document's numbers */
    ANSWER_READ   /* the result of a READ: the head is due to be spilled */
} answer_t;

typedef struct attempt {
    spill_mongo_t *store;
    const spill_mongo_document_t *document;
    spill_request_t shown;          /* ANSWER_READ: the READ */
    const spill_mongo_hint_t *hint; /* the filter has this length; or NULL */
    const spill_mongo_roll_t *roll; /* a capped head of known length; else NULL */
    answer_t answer;
    bson_t filter;
    bson_t open; /* what the append also sets in the bookkeeping; see size_guard.c */
} attempt_t;

static answer_t answer_to(const spill_request_t *request, const spill_mongo_hint_t *hint)
{
    if (!hint)
        return ANSWER_END;
    bool due = spill_request_is_due(request, hint->length + (int64_t)request->append.element_count);
    return due ? ANSWER_READ : ANSWER_FIRST;
}

/* Prepare an attempt. Its filter has the document's _id; the caller adds the guard. */
static void prepare(attempt_t *attempt, spill_mongo_t *store,
                    const spill_mongo_document_t *document, const spill_mongo_hint_t *hint)
{
    *attempt = (attempt_t){.store = store,
                           .document = document,
                           .shown = spill_request_shown(document->request),
                           .hint = hint,
                           .answer = answer_to(document->request, hint)};
    spill_mongo_select(document, &attempt->filter);
    bson_init(&attempt->open);
}

static void append_answer_fields(const attempt_t *attempt, bson_t *fields)
{
    char path[SPILL_MONGO_PATH_SIZE];
    spill_mongo_document_t document = *attempt->document;
    bson_init(fields);
    switch (attempt->answer) {
    case ANSWER_FIRST:
        BSON_APPEND_INT32(fields, spill_mongo_path(attempt->document, "first", path), 1);
        BSON_APPEND_INT32(fields, spill_mongo_path(attempt->document, "n", path), 1);
        break;
    case ANSWER_END:
        spill_mongo_project_end(attempt->document, fields);
        break;
    case ANSWER_READ:
        document.request = &attempt->shown;
        spill_mongo_project_read(&document, fields);
        break;
    }
}

static spill_code_t read_number(const attempt_t *attempt, const bson_t *after, const char *name,
                                int64_t *number, spill_error_t *error)
{
    char path[SPILL_MONGO_PATH_SIZE];
    bson_iter_t iter, found;
    spill_mongo_path(attempt->document, name, path);
    if (!bson_iter_init(&iter, after) || !bson_iter_find_descendant(&iter, path, &found) ||
        !BSON_ITER_HOLDS_NUMBER(&found))
        return spill_fail(error, SPILL_CORRUPT, "%s: %s is not a number",
                          attempt->document->collection, path);
    *number = spill_iter_int64(&found);
    return SPILL_OK;
}

/* Read `first`. The filter has confirmed that the hint has the right length. */
static spill_code_t read_first(const attempt_t *attempt, const bson_t *after, spill_state_t *state,
                               spill_error_t *error)
{
    state->present = true;
    state->live = attempt->roll ? attempt->roll->live
                                : attempt->hint->length +
                                      (int64_t)attempt->document->request->append.element_count;
    spill_code_t code = read_number(attempt, after, "first", &state->first, error);
    return code == SPILL_OK ? read_number(attempt, after, "n", &state->op_count, error) : code;
}

static spill_code_t read_answer(const attempt_t *attempt, const bson_t *after,
                                spill_response_t *response, spill_error_t *error)
{
    spill_state_t *state = &response->state;
    spill_mongo_document_t document = *attempt->document;
    switch (attempt->answer) {
    case ANSWER_FIRST:
        return read_first(attempt, after, state, error);
    case ANSWER_READ:
        response->shows_read = true;
        document.request = &attempt->shown;
        return spill_mongo_decode_reply(&document, after, state, &response->run, NULL, error);
    default:
        return spill_mongo_state(attempt->document, after, state, NULL, error);
    }
}

/* Does the answer lack what was asked for? The append was made all the same. */
static bool is_silent(const attempt_t *attempt, const bson_t *after)
{
    return attempt->answer != ANSWER_FIRST && spill_mongo_is_unprojected(after);
}

/* Carry out the attempt, and release it. */
static spill_code_t append(attempt_t *attempt, spill_response_t *response, spill_error_t *error)
{
    const spill_mongo_document_t *document = attempt->document;
    const spill_request_t *request = document->request;
    bson_t update, fields, after;
    if (spill_request_ops(request) > 0)
        spill_mongo_append_op_guard(document, &attempt->filter);
    spill_mongo_update_of_append(document, &attempt->open, NULL, attempt->roll, &update);
    append_answer_fields(attempt, &fields);
    bool found;
    spill_code_t code = spill_mongo_modify(attempt->store, document->collection, &attempt->filter,
                                           &update, &fields, &after, &found, error);
    response->outcome = found ? SPILL_DONE : SPILL_REFUSED_GUARD;
    if (found && is_silent(attempt, &after))
        code = spill_fail(error, SPILL_UNKNOWN,
                          "%s: the driver has sent an append twice, and the answer does not have "
                          "its number",
                          document->collection);
    else if (found)
        code = read_answer(attempt, &after, response, error);
    if (found && code == SPILL_OK) {
        response->seq = spill_state_end(&response->state) - (int64_t)request->append.element_count;
        spill_mongo_hint_learn(attempt->store->hints, document, &response->state);
    }
    bson_destroy(&attempt->filter);
    bson_destroy(&attempt->open);
    bson_destroy(&update);
    bson_destroy(&fields);
    bson_destroy(&after);
    return code;
}

/* ---- appends that read nothing before -------------------------------------------------------- */

/* `hint`: of the length, or NULL; `roll`: if the head is capped. */
static spill_code_t append_quickly(spill_mongo_t *store, const spill_mongo_document_t *document,
                                   const spill_mongo_hint_t *hint, const spill_mongo_roll_t *roll,
                                   spill_response_t *response, spill_error_t *error)
{
    attempt_t attempt;
    prepare(&attempt, store, document, hint);
    attempt.roll = roll;
    spill_mongo_append_quick_guard(document, hint, &attempt.filter);
    return append(&attempt, response, error);
}

/* The guard for a document in any state. */
static void exact_guard(const spill_mongo_document_t *document, bson_t *filter)
{
    char path[SPILL_MONGO_PATH_SIZE];
    spill_mongo_path(document, "epoch", path);
    if (document->head)
        BCON_APPEND(filter, path, "{", "$exists", BCON_BOOL(true), "}");
    else
        BSON_APPEND_INT64(filter, path, document->request->incarnation);
    BCON_APPEND(filter, spill_mongo_path(document, "sealed", path), "{", "$ne", BCON_BOOL(true),
                "}");
    spill_mongo_append_room(document, filter);
}

/* Append with the exact guard to a document that was read, in `response`. Open the document for
 * quick appends, if possible. */
static spill_code_t append_exactly(spill_mongo_t *store, const spill_mongo_document_t *document,
                                   spill_response_t *response, spill_error_t *error)
{
    char path[SPILL_MONGO_PATH_SIZE];
    attempt_t attempt;
    prepare(&attempt, store, document, NULL);
    exact_guard(document, &attempt.filter);
    if (response->state.deleted.count == 0) {
        spill_mongo_append_open(document, response->state.incarnation,
                                spill_mongo_path(document, "open", path), &attempt.open);
        BCON_APPEND(&attempt.filter, spill_mongo_path(document, "gone", path), "{", "$exists",
                    BCON_BOOL(false), "}");
    }
    return append(&attempt, response, error);
}

/* Would the request exceed the document's slots, if the hint is right? */
static bool is_full(const spill_request_t *request, const spill_mongo_hint_t *hint)
{
    return hint->length + (int64_t)request->append.element_count > request->limits.slots_max;
}

/* ---- capped ---------------------------------------------------------------------------------- */

/* spill_facts_t.size_of, from the run of all of the head's elements. */
static int64_t size_of(void *context, int64_t seq)
{
    const spill_run_t *run = context;
    size_t low = 0, high = run->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run->entries[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    bool there = low < run->count && run->entries[low].seq == seq;
    return there ? (int64_t)run->entries[low].size_bytes : -1;
}

/* Write state `after` to the head that was read in `before`, if it has not changed since. */
static spill_code_t append_rolling(spill_mongo_t *store, const spill_mongo_document_t *document,
                                   const spill_state_t *before, const spill_state_t *after,
                                   const spill_mongo_roll_t *roll, spill_response_t *response,
                                   spill_error_t *error)
{
    char path[SPILL_MONGO_PATH_SIZE];
    attempt_t attempt;
    prepare(&attempt, store, document, NULL);
    attempt.roll = roll;
    bson_t *filter = &attempt.filter;
    spill_mongo_append_as_read(document, before, filter);
    bson_append_int64(filter, spill_mongo_path(document, "first", path), -1, before->first);
    spill_render_count(&attempt.open, document->count, after->live);
    spill_mongo_set_deleted(document, after, &attempt.open);
    if (after->deleted.count == 0)
        spill_mongo_append_open(document, before->incarnation,
                                spill_mongo_path(document, "open", path), &attempt.open);
    return append(&attempt, response, error);
}

/* Append after a READ of the head with all of its elements, in `response`. */
static spill_code_t append_after_read(spill_mongo_t *store, const spill_mongo_document_t *document,
                                      spill_response_t *response, spill_error_t *error)
{
    const spill_request_t *request = document->request;
    spill_state_t before = {0}, after = {0};
    spill_state_copy(&response->state, &before);
    spill_state_copy(&response->state, &after);
    spill_effect_t effect;
    spill_facts_t facts = {.op_seen = response->op_found,
                           .size_of = size_of,
                           .context = &response->run,
                           .fields_bytes =
                               before.fields_bytes + spill_update_growth(request->append.update)};
    response->outcome = spill_transition(request, &facts, &after, &effect);
    spill_code_t code = SPILL_OK;
    if (response->outcome == SPILL_DONE) {
        spill_mongo_roll_t roll = {
            .skipped = effect.end > effect.seq ? effect.end - effect.seq : 0,
            .moved = after.first - before.first,
            .live = after.live,
            .counted = true,
            .clears = before.deleted.count > 0 && after.deleted.count == 0,
        };
        code = before.present
                   ? append_rolling(store, document, &before, &after, &roll, response, error)
                   : spill_mongo_make_head(store, document, &roll, response, error);
    }
    spill_state_release(&before);
    spill_state_release(&after);
    return code;
}

/* One command: with the length known or, while no element is dropped, without it. */
static spill_code_t append_capped_quickly(spill_mongo_t *store,
                                          const spill_mongo_document_t *document,
                                          const spill_mongo_hint_t *hint,
                                          spill_response_t *response, spill_error_t *error)
{
    const spill_request_t *request = document->request;
    if (!hint)
        return append_quickly(store, document, NULL, NULL, response, error);
    int64_t all = hint->length + (int64_t)request->append.element_count;
    int64_t live = all < request->limits.slots_max ? all : request->limits.slots_max;
    spill_mongo_roll_t roll = {.moved = all - live, .live = live};
    return append_quickly(store, document, hint, &roll, response, error);
}

/*
 * A full head keeps its length, whichever client appends. So the hint of a full head is probably
 * right even if other clients append.
 */
static spill_code_t append_capped(spill_mongo_t *store, const spill_mongo_document_t *document,
                                  spill_response_t *response, spill_error_t *error)
{
    const spill_request_t *request = document->request;
    spill_mongo_hint_t hint;
    bool hinted = spill_mongo_hint(store->hints, document, &hint);
    if (hint.length == request->limits.slots_max)
        hinted = true;
    spill_code_t code = SPILL_OK;
    response->outcome = SPILL_REFUSED_GUARD;
    if (spill_mongo_is_quick(document))
        code = append_capped_quickly(store, document, hinted ? &hint : NULL, response, error);
    if (code != SPILL_OK || response->outcome == SPILL_DONE)
        return code;
    code = read_document(store, request, SPILL_WANT_FORWARD, INT64_MAX, response, error);
    response->outcome = SPILL_REFUSED_GUARD;
    if (code != SPILL_OK)
        return code;
    if (hinted && response->state.live != hint.length)
        spill_mongo_hint_doubt(store->hints, document);
    if (spill_append_refusal(request, &response->state, response->op_found) == SPILL_REFUSAL_NONE)
        return append_after_read(store, document, response, error);
    response->refusal_explained = true;
    return SPILL_OK;
}

/* ---- APPEND ---------------------------------------------------------------------------------- */

/*
 * If the document has changed between the READ and the append, another append came first: retry. If
 * it has not changed, one of the request's operations is refused.
 */
static spill_code_t append_to_bucket(spill_mongo_t *store, const spill_mongo_document_t *document,
                                     spill_response_t *response, spill_error_t *error)
{
    enum { TRIES = 100 };
    const spill_request_t *request = document->request;
    spill_code_t code = SPILL_OK;
    int64_t rev = -1, live = -1;
    for (int i = 0; code == SPILL_OK && i < TRIES; i++) {
        code = read_document(store, request, SPILL_WANT_NONE, 0, response, error);
        response->outcome = SPILL_REFUSED_GUARD;
        const spill_state_t *state = &response->state;
        if (code != SPILL_OK || (state->present && state->rev == rev && state->live == live))
            break;
        rev = state->rev;
        live = state->live;
        response->refusal_explained =
            spill_append_refusal(request, state, response->op_found) != SPILL_REFUSAL_NONE;
        if (response->refusal_explained || !state->present)
            break;
        code = spill_mongo_append_to_bucket(store, document, response, error);
        if (response->outcome == SPILL_DONE)
            break;
    }
    if (code == SPILL_OK && response->outcome != SPILL_DONE && !response->refusal_explained &&
        !response->state.present)
        code = spill_mongo_make_head(store, document, NULL, response, error);
    return code;
}

/*
 * Most appends are quick. Otherwise READ the document, and then refuse the append, carry it out
 * with the exact guard, or make a head. If the document is known to be full, the READ also returns
 * the elements that a spill begins with.
 */
spill_code_t spill_mongo_append(spill_mongo_t *store, const spill_request_t *request,
                                spill_response_t *response, spill_error_t *error)
{
    spill_mongo_document_t document;
    spill_mongo_document_init(&document, store, request);
    if (document.referenced)
        return spill_mongo_append_referenced(store, &document, response, error);
    if (spill_schema_of(request->definition)->keeps_top_n)
        return spill_mongo_append_top_n(store, &document, response, error);
    if (spill_schema_of(request->definition)->is_capped)
        return append_capped(store, &document, response, error);
    spill_mongo_hint_t hint;
    bool hinted = spill_mongo_hint(store->hints, &document, &hint);
    bool full = hinted && is_full(request, &hint);
    spill_code_t code = SPILL_OK;
    if (spill_mongo_is_bucket(&document))
        return append_to_bucket(store, &document, response, error);
    response->outcome = SPILL_REFUSED_GUARD;
    if (!full && spill_mongo_is_quick(&document))
        code = append_quickly(store, &document, hinted ? &hint : NULL, NULL, response, error);
    if (code != SPILL_OK || response->outcome == SPILL_DONE)
        return code;
    spill_request_t shown = spill_request_shown(request);
    spill_want_t want = full ? shown.read.want : SPILL_WANT_NONE;
    code = read_document(store, request, want, shown.read.limit, response, error);
    response->outcome = SPILL_REFUSED_GUARD;
    if (code != SPILL_OK)
        return code;
    if (hinted && response->state.live != hint.length)
        spill_mongo_hint_doubt(store->hints, &document);
    bool there = response->state.present;
    if (spill_append_refusal(request, &response->state, response->op_found) == SPILL_REFUSAL_NONE)
        return there ? append_exactly(store, &document, response, error)
                     : spill_mongo_make_head(store, &document, NULL, response, error);
    response->refusal_explained = true;
    response->shows_read = want != SPILL_WANT_NONE;
    return SPILL_OK;
}

/* ---- UPDATE_FIELDS --------------------------------------------------------------------------- */

static spill_code_t update_head(spill_mongo_t *store, const spill_mongo_document_t *document,
                                bool *found, spill_error_t *error)
{
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t filter, update;
    spill_mongo_select(document, &filter);
    BCON_APPEND(&filter, spill_mongo_path(document, "epoch", path), "{", "$exists", BCON_BOOL(true),
                "}");
    spill_mongo_update_of_fields(document, &update);
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
    enum { TRIES = 4 }; /* other clients may make and drop heads in between */
    bool updates = request->append.update && !bson_empty(request->append.update);
    bool done = false;
    spill_code_t code = SPILL_OK;
    for (int i = 0; i < TRIES && code == SPILL_OK && !done; i++) {
        if (updates)
            code = update_head(store, &document, &done, error);
        if (code != SPILL_OK || done || (updates && !request->create))
            break;
        code = read_document(store, request, SPILL_WANT_NONE, 0, response, error);
        done = response->state.present && !updates;
        if (code != SPILL_OK || done || !request->create)
            break;
        if (response->state.present)
            continue;
        code = spill_mongo_make_head(store, &document, NULL, response, error);
        done = response->outcome == SPILL_DONE;
    }
    response->outcome = done ? SPILL_DONE : SPILL_REFUSED_GUARD;
    return code == SPILL_TOO_BIG ? SPILL_OK : code; /* refused: it would exceed the limit */
}
