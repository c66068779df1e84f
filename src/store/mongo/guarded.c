/*
 * The requests that change a document, except ADOPT, ADOPT_SPLIT and UNMANAGE (unmanaged.c). A few
 * need no state and are sent at once. All others take one loop: read the state, let transition.c
 * compute the new one, and write it if nothing that it depends on has changed.
 */
#include "store/mongo/guarded.h"

#include "definition/schema.h"
#include "store/render.h"
#include "util/error.h"

#include <stdio.h>

static const spill_schema_t *schema(const spill_mongo_step_t *step)
{
    return spill_schema_of(step->request->definition);
}

static bool is_append(const spill_mongo_step_t *step)
{
    return step->request->kind == SPILL_REQUEST_APPEND;
}

/* ---- reading the state ----------------------------------------------------------------------- */

/* Is the request about one element? */
static bool concerns_element(const spill_request_t *request)
{
    return request->kind == SPILL_REQUEST_EDIT || request->kind == SPILL_REQUEST_REMOVE ||
           request->kind == SPILL_REQUEST_DELETE;
}

/* Layout subset: does the request change the head's summary? */
static bool changes_top(const spill_mongo_step_t *step)
{
    const spill_request_t *request = step->request;
    bool changes = concerns_element(request) || request->kind == SPILL_REQUEST_PREPARE ||
                   request->kind == SPILL_REQUEST_COMPLETE || request->kind == SPILL_REQUEST_TRIM ||
                   request->kind == SPILL_REQUEST_RECOUNT;
    return changes && step->document.head && schema(step)->has_top;
}

/*
 * What an APPEND reads besides the state. If the document is known to be full, it reads the
 * elements that a spill begins with. Of referenced elements it reads a short journal; a longer one
 * is read by the client that spills it.
 */
static void want_for_append(const spill_mongo_step_t *step, bool full, spill_read_t *read)
{
    const spill_request_t *request = step->request;
    spill_request_t shown = spill_request_shown(request);
    if (full || (step->document.referenced && spill_mongo_reads_journal(request))) {
        read->want = shown.read.want;
        read->limit = shown.read.limit;
    }
    /* New elements may rank between shown ones. */
    read->want_top = step->document.referenced && request->append.element_count > 1;
}

/* Does the transition depend on all of the document's elements? */
static bool needs_elements(const spill_mongo_step_t *step)
{
    return spill_needs_window_stats(step->request) || spill_needs_journal(step->request) ||
           (is_append(step) && schema(step)->is_capped);
}

static spill_request_t make_read(const spill_mongo_step_t *step, bool full)
{
    const spill_request_t *request = step->request;
    spill_request_t read = spill_request_reading(request);
    read.read.want_now = spill_needs_time(request);
    read.read.want_top = changes_top(step);
    if (is_append(step))
        want_for_append(step, full, &read.read);
    if (concerns_element(request)) {
        read.read.want = SPILL_WANT_FORWARD;
        read.read.seq = request->change.seq;
        read.read.limit = 1;
    }
    if (needs_elements(step)) {
        read.read.want = SPILL_WANT_FORWARD;
        read.read.seq = 0;
        read.read.limit = INT64_MAX;
    }
    return read;
}

/* spill_facts_t.size_of, from an ascending run. */
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

static void note_facts(spill_mongo_step_t *step)
{
    const spill_request_t *request = step->request;
    spill_response_t *read = step->read;
    step->facts = (spill_facts_t){.seen = spill_seen_by(read),
                                  .size_of = size_of,
                                  .context = &read->run,
                                  .old_bytes = -1,
                                  .now_us = read->now_us};
    if (request->kind == SPILL_REQUEST_UPDATE_FIELDS)
        step->facts.fields_bytes = 1; /* the server knows whether the new fields fit */
    if (concerns_element(request))
        step->facts.old_bytes = size_of(&read->run, request->change.seq);
    if (is_append(step))
        step->facts.fields_bytes = read->state.fields_bytes + spill_fields_growth(request);
    if (spill_needs_window_stats(request))
        step->facts.window_stats = spill_window_stats_after(request, &read->run);
    if (spill_needs_journal(request)) {
        spill_top_clear(&step->ranks);
        spill_top_note(&step->ranks, request->definition, &read->run);
        step->facts.journal = &step->ranks;
    }
}

static spill_code_t read_before(spill_mongo_step_t *step, spill_error_t *error)
{
    spill_mongo_hint_t hint;
    spill_response_t *response = step->read;
    bool hinted = is_append(step) && spill_mongo_is_pushed(&step->document) &&
                  spill_mongo_hint(step->store->hints, &step->document, &hint);
    bool full = hinted && spill_mongo_is_full(step->request, &hint);
    spill_request_t read = make_read(step, full);
    spill_response_clear(response);
    SPILL_TRY(spill_mongo_read(step->store, &read, response, error));
    response->outcome = SPILL_REFUSED_GUARD;
    if (hinted && response->state.live != hint.length)
        spill_mongo_hint_doubt(step->store->hints, &step->document);
    step->document.judged = read.read.session ? response : NULL;
    if (is_append(step)) {
        spill_seen_t seen = spill_seen_by(response);
        response->refusal_explained =
            spill_append_refusal(step->request, &response->state, &seen) != SPILL_REFUSAL_NONE;
        response->shows_read =
            response->refusal_explained && full && read.read.want != SPILL_WANT_NONE;
    }
    note_facts(step);
    return SPILL_OK;
}

/*
 * Assume the most likely state of the document, to save the READ: PUT_PAGE and CREATE_PAGE find no
 * page; CUT and SEAL of a page find the document as the caller has just read it. If the assumption
 * is wrong, the guard does not hold, and the document is read.
 */
static bool assume_before(spill_mongo_step_t *step)
{
    const spill_request_t *request = step->request;
    spill_state_t *before = &step->read->state; /* cleared */
    switch (request->kind) {
    case SPILL_REQUEST_PUT_PAGE:
        return !request->put_page.replaces;
    case SPILL_REQUEST_CREATE_PAGE:
        return true;
    case SPILL_REQUEST_CUT:
        before->first = request->cut.first;
        before->pages = request->cut.pages;
        before->live = request->cut.slots;
        before->live_bytes = request->cut.bytes;
        break;
    case SPILL_REQUEST_SEAL:
        if (step->document.head || request->seal.close)
            return false;
        before->live = 1;
        break;
    default:
        return false;
    }
    before->present = true;
    before->incarnation = request->incarnation;
    before->rev = request->rev;
    return before->live > 0;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Is this an append that only strays among the deleted numbers (store/state.h) may refuse? */
static bool meets_strays(const spill_mongo_step_t *step, spill_state_t *cleaned)
{
    const spill_state_t *before = &step->read->state;
    if (!is_append(step) || step->document.referenced || before->deleted.count == 0)
        return false;
    const spill_seen_t seen = spill_seen_by(step->read);
    const spill_refusal_t refusal = spill_append_refusal(step->request, before, &seen);
    if (refusal != SPILL_REFUSAL_NONE && refusal != SPILL_REFUSAL_FULL)
        return false;
    spill_state_copy(before, cleaned);
    return spill_state_drop_strays(cleaned);
}

/*
 * Another program has replaced the array. Remove the strays, unless the document has changed since
 * it was read. This raises `rev` like a RECOUNT, which also changes numbers: so a request of a
 * client that has read the strays is refused. A head that keeps the oldest counts its own deleted
 * numbers among the removed ones.
 */
static spill_code_t drop_strays(spill_mongo_step_t *step, spill_error_t *error)
{
    const spill_state_t *before = &step->read->state;
    const spill_effect_t nothing = {.kind = SPILL_EFFECT_NONE};
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    bool done;
    step->after.rev++;
    if (step->document.head && !spill_schema_of(step->request->definition)->appends_to_head)
        step->after.removed -= (int64_t)(before->deleted.count - step->after.deleted.count);
    spill_mongo_select(&step->document, &filter);
    spill_mongo_append_same_numbers(&step->document, before, &filter);
    spill_mongo_rewrite(&step->document, before, &step->after, &nothing, NULL, &pipeline);
    spill_code_t code = spill_mongo_modify(step->store, step->document.collection, &filter,
                                           &pipeline, NULL, NULL, &done, error);
    return code == SPILL_UNKNOWN ? SPILL_OK : code; /* the next READ shows what became of it */
}

/* Has anything changed since the try before? An append that failed then is refused for good. */
static bool is_as_before(const spill_state_t *state, int64_t *rev, int64_t *end)
{
    int64_t old_rev = *rev, old_end = *end;
    *rev = state->present ? state->rev : 0;
    *end = state->present ? spill_state_end(state) : 0;
    return *rev == old_rev && *end == old_end;
}

/* Compute the state after the step, and write it. *refused: do not try again. */
static spill_code_t compute_and_write(spill_mongo_step_t *step, bool *done, bool *refused,
                                      spill_error_t *error)
{
    const spill_request_t *request = step->request;
    spill_state_copy(&step->read->state, &step->after);
    *refused = spill_transition(request, &step->facts, &step->after, &step->effect) != SPILL_DONE;
    if (*refused)
        return SPILL_OK;
    if (changes_top(step))
        spill_mongo_gather_top(request, -1, step->read, &step->after.top, &step->top);
    SPILL_TRY(spill_mongo_write(step, done, error));
    /* Appends do not matter to a CUT with a run: the slots hold other elements. */
    *refused = !*done && request->kind == SPILL_REQUEST_CUT && request->cut.run && !step->assumed;
    return SPILL_OK;
}

/*
 * The end of a loop whose writes were all refused. Another client comes first some times, but not
 * always without a trace: then the stored fields are no values that a guard matches.
 */
static spill_code_t fail_refused(const spill_mongo_step_t *step, bool unchanged,
                                 spill_error_t *error)
{
    if (!unchanged)
        return spill_fail_retryable(error, SPILL_CONFLICT, "lost every race for a document of %s",
                                    step->document.collection);
    return spill_fail(error, SPILL_CORRUPT,
                      "%s: no change matches the document, and no other client changes it: a field "
                      "of its bookkeeping is missing or has another value than Spillway stores",
                      step->document.collection);
}

/*
 * If the guard of a write does not hold, another client came first: retry. An append that finds the
 * document as before is refused: an operation of one of its members was seen.
 */
static spill_code_t run(spill_mongo_step_t *step, bool *done, spill_error_t *error)
{
    enum { TRIES_MAX = 100 };
    enum { UNCHANGED_MAX = 20 };
    int64_t rev = -1, end = -1;
    int unchanged = 0; /* READs in a row that found the document as before */
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        bool refused;
        step->assumed = tries == 0 && assume_before(step);
        if (!step->assumed)
            SPILL_TRY(read_before(step, error));
        if (meets_strays(step, &step->after)) {
            SPILL_TRY(drop_strays(step, error));
            continue;
        }
        bool same = !step->assumed && is_as_before(&step->read->state, &rev, &end);
        unchanged = same ? unchanged + 1 : 0;
        if (step->read->refusal_explained || (is_append(step) && same))
            return SPILL_OK;
        if (unchanged == UNCHANGED_MAX)
            break;
        SPILL_TRY(compute_and_write(step, done, &refused, error));
        if (*done || refused)
            return SPILL_OK;
    }
    return is_append(step) ? SPILL_OK : fail_refused(step, unchanged == UNCHANGED_MAX, error);
}

/*
 * The requests that do not depend on the state, tried in one command: appends that are pushed
 * (append.c), updates of other fields, and the deletion of a referenced element. *ends: the loop is
 * not needed, whatever came out.
 */
static spill_code_t try_quickly(spill_mongo_step_t *step, bool *done, bool *ends,
                                spill_error_t *error)
{
    const spill_request_t *request = step->request;
    *ends = false;
    if (is_append(step) && request->append.seqs) {
        *done = false; /* it makes the head, or is refused */
    } else if (is_append(step)) {
        SPILL_TRY(spill_mongo_push_quickly(step->store, &step->document, step->read, done, error));
    } else if (request->kind == SPILL_REQUEST_UPDATE_FIELDS && spill_mongo_has_operators(request)) {
        SPILL_TRY(spill_mongo_update_head(step->store, &step->document, done, error));
        *ends = !request->create && !request->append.session;
    } else if (request->kind == SPILL_REQUEST_FORGET) {
        SPILL_TRY(spill_mongo_forget(step->store, &step->document, done, error));
        *ends = true;
    } else if (step->document.referenced && (request->kind == SPILL_REQUEST_EMPTY_PAGE ||
                                             request->kind == SPILL_REQUEST_DROP_PAGE)) {
        SPILL_TRY(spill_mongo_delete_element(step->store, &step->document, done, error));
        *ends = true;
    }
    *ends = *ends || *done;
    return SPILL_OK;
}

static spill_code_t carry_out(spill_mongo_step_t *step, bool *done, spill_error_t *error)
{
    bool ends;
    SPILL_TRY(try_quickly(step, done, &ends, error));
    return ends ? SPILL_OK : run(step, done, error);
}

static void release(spill_mongo_step_t *step)
{
    spill_state_release(&step->after);
    spill_top_release(&step->ranks);
    spill_run_release(&step->top);
}

spill_code_t spill_mongo_guarded(spill_mongo_t *store, const spill_request_t *request,
                                 spill_response_t *response, spill_error_t *error)
{
    SPILL_SCOPED(release)
    spill_mongo_step_t step = {.store = store, .request = request, .read = response};
    spill_request_t dated = *request;
    bool done = false;
    if (request->create && request->kind == SPILL_REQUEST_PUT_PAGE) {
        SPILL_TRY(spill_mongo_date(store, request, &dated.incarnation, error));
        step.request = &dated;
    }
    spill_mongo_document_init(&step.document, store, step.request);
    spill_response_clear(response);
    spill_code_t code = carry_out(&step, &done, error);
    if (code == SPILL_TOO_BIG && request->kind == SPILL_REQUEST_UPDATE_FIELDS)
        code = SPILL_OK; /* refused: it would exceed the limit */
    SPILL_TRY(code);
    if (done && request->kind == SPILL_REQUEST_CUT)
        spill_mongo_hint_shorten(store->hints, &step.document,
                                 response->state.live - step.after.live);
    if (!is_append(&step))
        spill_response_clear(response);
    response->outcome = done ? SPILL_DONE : SPILL_REFUSED_GUARD;
    return SPILL_OK;
}

/* ---- several pages at once ------------------------------------------------------------------- */

/* The document that the request inserts. To be destroyed. */
static bson_t *make_page(const spill_request_t *request)
{
    static const spill_facts_t nothing = {0};
    spill_state_t state = {0};
    spill_effect_t effect;
    bson_t *document = bson_malloc(sizeof *document);
    spill_transition(request, &nothing, &state, &effect);
    spill_render_page(request->definition, request->owner, &state, request->put_page.run, NULL,
                      false, document);
    spill_state_release(&state);
    return document;
}

spill_code_t spill_mongo_put_pages(spill_mongo_t *store, const spill_request_t *requests,
                                   size_t count, spill_response_t *responses, spill_error_t *error)
{
    bson_t **documents = bson_malloc0(count * sizeof(bson_t *));
    bool *refused = bson_malloc0(count * sizeof *refused);
    for (size_t i = 0; i < count; i++)
        documents[i] = make_page(&requests[i]);
    spill_code_t code =
        spill_mongo_insert_all(store, requests->definition->page_collection,
                               (const bson_t *const *)documents, count, refused, error);
    for (size_t i = 0; i < count; i++) {
        bson_destroy(documents[i]);
        bson_free(documents[i]);
        responses[i].outcome = SPILL_DONE;
        if (code == SPILL_OK && refused[i])
            code = spill_mongo_guarded(store, &requests[i], &responses[i], error);
    }
    bson_free(documents);
    bson_free(refused);
    return code;
}

/* Compute each step from the state that was read. Make a filter for each step that deletes a page.
 */
static size_t compute_deletions(spill_mongo_t *store, const spill_request_t *requests, size_t count,
                                spill_response_t *responses, bson_t **filters)
{
    size_t deletions = 0;
    for (size_t i = 0; i < count; i++) {
        SPILL_SCOPED(release)
        spill_mongo_step_t step = {.store = store, .request = &requests[i], .read = &responses[i]};
        spill_mongo_document_init(&step.document, store, step.request);
        note_facts(&step);
        spill_state_copy(&step.read->state, &step.after);
        spill_outcome_t outcome =
            spill_transition(step.request, &step.facts, &step.after, &step.effect);
        if (outcome == SPILL_DONE) {
            bson_t filter;
            spill_mongo_unchanged(&step, &filter);
            filters[deletions++] = bson_copy(&filter);
            bson_destroy(&filter);
        }
        spill_response_clear(&responses[i]);
        responses[i].outcome = outcome;
    }
    return deletions;
}

static spill_code_t read_states(spill_mongo_t *store, const spill_request_t *requests, size_t count,
                                spill_response_t *responses, spill_error_t *error)
{
    spill_request_t *reads = bson_malloc0(count * sizeof *reads);
    for (size_t i = 0; i < count; i++) {
        const spill_mongo_step_t step = {.request = &requests[i]};
        reads[i] = make_read(&step, false);
    }
    spill_code_t code = spill_mongo_read_pages(store, reads, count, responses, error);
    bson_free(reads);
    return code;
}

/* A page that was not deleted was changed after the read: repeat what was not done. */
static spill_code_t empty_one_by_one(spill_mongo_t *store, const spill_request_t *requests,
                                     size_t count, spill_response_t *responses,
                                     spill_error_t *error)
{
    for (size_t i = 0; i < count; i++) {
        if (responses[i].outcome != SPILL_DONE)
            continue;
        SPILL_TRY(spill_mongo_guarded(store, &requests[i], &responses[i], error));
        responses[i].outcome = SPILL_DONE; /* by one of both */
    }
    return SPILL_OK;
}

spill_code_t spill_mongo_empty_pages(spill_mongo_t *store, const spill_request_t *requests,
                                     size_t count, spill_response_t *responses,
                                     spill_error_t *error)
{
    bool all = true;
    SPILL_TRY(read_states(store, requests, count, responses, error));
    bson_t **filters = bson_malloc0(count * sizeof(bson_t *));
    size_t deletions = compute_deletions(store, requests, count, responses, filters);
    spill_code_t code = SPILL_OK;
    if (deletions > 0)
        code = spill_mongo_delete_all(store, requests->definition->page_collection,
                                      (const bson_t *const *)filters, deletions, &all, error);
    for (size_t i = 0; i < deletions; i++)
        bson_destroy(filters[i]);
    bson_free(filters);
    return code == SPILL_OK && !all ? empty_one_by_one(store, requests, count, responses, error)
                                    : code;
}

/* ---- heads of several owners ----------------------------------------------------------------- */

/* Make the filter and the pipeline of a CUT of the head as the caller has read it. */
static bool make_cut(spill_mongo_t *store, const spill_request_t *request, bson_t **filter,
                     bson_t **update)
{
    SPILL_SCOPED(spill_response_release) spill_response_t before = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(release)
    spill_mongo_step_t step = {
        .store = store, .request = request, .read = &before, .assumed = true};
    SPILL_SCOPED(bson_destroy) bson_t guard = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    spill_mongo_document_init(&step.document, store, request);
    if (!assume_before(&step))
        return false;
    note_facts(&step);
    spill_state_copy(&before.state, &step.after);
    if (spill_transition(request, &step.facts, &step.after, &step.effect) != SPILL_DONE ||
        !spill_mongo_rewrite(&step.document, &before.state, &step.after, &step.effect, &step.top,
                             &pipeline))
        return false;
    bson_destroy(&guard);
    spill_mongo_unchanged(&step, &guard);
    *filter = bson_copy(&guard);
    *update = bson_copy(&pipeline);
    return true;
}

spill_code_t spill_mongo_cut_heads(spill_mongo_t *store, const spill_request_t *requests,
                                   size_t count, spill_error_t *error)
{
    bson_t **filters = bson_malloc0(count * sizeof(bson_t *));
    bson_t **updates = bson_malloc0(count * sizeof(bson_t *));
    size_t cuts = 0;
    for (size_t i = 0; i < count; i++)
        cuts += make_cut(store, &requests[i], &filters[cuts], &updates[cuts]);
    spill_code_t code = SPILL_OK;
    if (cuts > 0)
        code = spill_mongo_update_all(store, requests->definition->collection,
                                      (const bson_t *const *)filters,
                                      (const bson_t *const *)updates, cuts, false, error);
    for (size_t i = 0; i < cuts; i++) {
        bson_destroy(filters[i]);
        bson_destroy(updates[i]);
    }
    bson_free(filters);
    bson_free(updates);
    return code;
}
