/* Decide all requests except READ, on the thread of the leader of the group commit. */
#include "store/embedded/op_records.h"
#include "store/embedded/records.h"

#include "bson/element_fields.h"
#include "bson/update.h"
#include "definition/schema.h"
#include "store/embedded/embedded_codec.h"
#include "store/embedded/embedded_sessions.h"
#include "store/embedded/view.h"
#include "store/render.h"
#include "util/error.h"

/*
 * A page is a view: its record has the range of its numbers, and the element records belong to the
 * incarnation. A page that was put but not cut yet shares its element records with the head. So the
 * store reads the head, which is cheap here, before these steps:
 *
 *   PUT_PAGE    if the head already counts the page (the request is late; the page was trimmed):
 *               refused, because it would be a view of other pages' records. If there is no head of
 *               its incarnation, it is late too, but harmless: the page gets its own records.
 *   EDIT,       in a page that shares its records with the head: refused.
 *   DELETE
 *   EMPTY_PAGE, of a page that shares its records with the head: the elements stay.
 *   DROP_PAGE
 *
 * Clients edit, delete from and empty only pages that the head counts. They treat a refusal as a
 * lost race.
 *
 * Referenced elements: a PUT_PAGE of an existing page that the head counts is an edit.
 */

/* The decision on one request. */
typedef struct decision {
    spill_embedded_t *store;
    const spill_request_t *request;
    spill_batch_t *batch;
    spill_state_t *state; /* the document, before and after */
    spill_record_key_t key;
    spill_facts_t facts;
    spill_session_puts_t sessions;
    spill_top_t journal;  /* ranks of the document's elements, if spill_needs_journal */
    spill_seqs_t deleted; /* top-N capped: the deleted numbers before the step */
    spill_before_t before;
    bson_t *fields;        /* the head's new other fields; NULL: unchanged */
    spill_run_t unmanaged; /* ADOPT, ADOPT_SPLIT: the unmanaged array */
    spill_buffer_t value;
    spill_op_source_t ops;
    spill_code_t failed; /* size_of could not read a size; `error` has the reason */
    spill_error_t *error;
} decision_t;

static bool keeps_newest(const spill_request_t *request)
{
    return spill_schema_of(request->definition)->appends_to_head;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Read one operation of the owner's window. */
static spill_code_t read_op(decision_t *decision, int64_t ordinal, spill_op_entry_t *entry,
                            bool *found, spill_error_t *error)
{
    return spill_op_read(&decision->ops, &decision->key, decision->state, ordinal, entry, found,
                         error);
}

/* Is the operation the one at this ordinal? *found: the ordinal has a record. */
static spill_code_t is_op(decision_t *decision, int64_t ordinal, bool *same, bool *found,
                          spill_error_t *error)
{
    const spill_op_t *op = decision->request->append.op;
    spill_op_entry_t entry;
    SPILL_TRY(read_op(decision, ordinal, &entry, found, error));
    *same = *found && spill_op_entry_is(&entry, op->id, op->id_bytes);
    return SPILL_OK;
}

/*
 * Fill the cache with the operations [from, op_count). If one of them is missing, *window is NULL.
 * Cost: a look-up and a seek, and a step for every SPILL_OPS_TOGETHER operations.
 */
static spill_code_t cache_ops(decision_t *decision, int64_t from, spill_op_window_t **window,
                              spill_error_t *error)
{
    spill_op_cache_t *cache = &decision->store->ops;
    int64_t end = decision->state->op_count;
    *window = spill_op_cache_begin(cache, &decision->key, decision->state->incarnation, from);
    for (int64_t ordinal = from; ordinal < end; ordinal++) {
        spill_op_entry_t entry = {0};
        bool found;
        spill_code_t code = read_op(decision, ordinal, &entry, &found, error);
        if (code != SPILL_OK || !found) {
            spill_op_cache_forget(cache, &decision->key);
            *window = NULL;
            return code;
        }
        spill_op_cache_add(cache, *window, entry.id, entry.id_bytes, SPILL_OP_WINDOW_MAX);
    }
    return SPILL_OK;
}

/*
 * The cached operations from `base` on; NULL if one of them is missing. If the cache has only later
 * ones, read more than this request needs, if that succeeds: other clients may have older bases.
 */
static spill_code_t cached_ops(decision_t *decision, int64_t base, spill_op_window_t **window,
                               spill_error_t *error)
{
    int64_t end = decision->state->op_count;
    *window = spill_op_cache_find(&decision->store->ops, &decision->key,
                                  decision->state->incarnation, end);
    if (*window && (*window)->from <= base)
        return SPILL_OK;
    int64_t oldest = end - decision->request->definition->op_window;
    int64_t from = base - 4 * (end - base);
    from = from > oldest ? from : oldest;
    if (*window && cache_ops(decision, from > 0 ? from : 0, window, error) == SPILL_OK && *window)
        return SPILL_OK;
    return cache_ops(decision, base, window, error);
}

/* Search all records of the window, because some are missing. */
static spill_code_t search_records(decision_t *decision, int64_t base, spill_error_t *error)
{
    for (int64_t ordinal = base; ordinal < decision->state->op_count; ordinal++) {
        bool found;
        SPILL_TRY(is_op(decision, ordinal, &decision->facts.seen.op, &found, error));
        if (decision->facts.seen.op)
            return SPILL_OK;
    }
    return spill_fail(error, SPILL_UNKNOWN,
                      "whether the operation was applied is no longer known: the window of "
                      "operations had fewer than %d entries when it may have been applied",
                      decision->request->definition->op_window);
}

/*
 * Is the operation in the window, from its base on? Operations before its base came before its
 * first try. If one from its base on is missing, the window was smaller for a time, and the answer
 * is unknown. Cost: O(1) if the window is cached.
 */
static spill_code_t find_op(decision_t *decision, spill_error_t *error)
{
    const spill_op_t *op = decision->request->append.op;
    spill_refusal_t refusal = spill_append_refusal(decision->request, decision->state, NULL);
    if (refusal != SPILL_REFUSAL_NONE && refusal != SPILL_REFUSAL_FULL)
        return SPILL_OK; /* it is refused as stale */
    int64_t base = op->base < 0 ? 0 : op->base, ordinal = decision->state->op_count;
    if (base >= ordinal)
        return SPILL_OK;
    spill_op_window_t *window;
    SPILL_TRY(cached_ops(decision, base, &window, error));
    if (!window)
        return search_records(decision, base, error);
    do {
        ordinal = spill_op_window_search(window, op->id, op->id_bytes, ordinal);
        bool found = true;
        if (ordinal >= base)
            SPILL_TRY(is_op(decision, ordinal, &decision->facts.seen.op, &found, error));
        if (!found)
            return search_records(decision, base, error);
    } while (ordinal >= base && !decision->facts.seen.op);
    return SPILL_OK;
}

/* Set the rest of facts.seen: sessions and match. */
static spill_code_t see(decision_t *decision, spill_error_t *error)
{
    const spill_request_t *request = decision->request;
    const bson_t *match = spill_request_match(request);
    if (!decision->state->present)
        return SPILL_OK;
    SPILL_TRY(spill_embedded_see_sessions(decision->store, request, decision->state->incarnation,
                                          &decision->key, decision->batch, &decision->sessions,
                                          &decision->facts.seen.session, error));
    if (!match)
        return SPILL_OK;
    bson_t *fields = NULL;
    SPILL_TRY(spill_embedded_get_fields(decision->store, decision->batch, request, &fields, error));
    decision->facts.seen.unmatched = !spill_match_fields(match, fields);
    bson_destroy(fields);
    return SPILL_OK;
}

/* ---- elements -------------------------------------------------------------------------------- */

/* The size of live element `seq`; -1 if the state does not have it. */
static spill_code_t measure(decision_t *decision, int64_t seq, int64_t *bytes, spill_error_t *error)
{
    const spill_request_t *request = decision->request;
    bool found;
    *bytes = -1;
    spill_record_key_element(&decision->key, decision->state->incarnation, seq);
    spill_code_t code = spill_embedded_get(decision->store, decision->batch, decision->key.data,
                                           decision->key.size, &decision->value, &found, error);
    if (code != SPILL_OK)
        return spill_embedded_place(request, request->page, code, error);
    if (!found && decision->before.left_over)
        return SPILL_OK;
    if (!found || decision->value.size == 0)
        return spill_embedded_corrupt(decision->store, request, request->page, error,
                                      "the record of an element is missing");
    if (!spill_element_decode(request->definition, decision->value.data, decision->value.size,
                              &decision->before.element))
        return spill_embedded_corrupt(decision->store, request, request->page, error,
                                      "the record of an element cannot be read");
    *bytes = decision->before.element.size_bytes;
    return SPILL_OK;
}

static spill_code_t find_element(decision_t *decision, spill_error_t *error)
{
    const spill_request_t *request = decision->request;
    const spill_state_t *state = decision->state;
    decision->facts.old_bytes = -1;
    if (request->change.seq < state->first || request->change.seq >= spill_state_end(state) ||
        spill_seqs_contains(&state->deleted, request->change.seq))
        return SPILL_OK;
    return measure(decision, request->change.seq, &decision->facts.old_bytes, error);
}

/* The ranks of the document's elements (layout subset: of the journal). */
static spill_code_t rank_journal(decision_t *decision, spill_error_t *error)
{
    const spill_state_t *state = decision->state;
    spill_value_t element = decision->before.element;
    spill_code_t code = SPILL_OK;
    for (int64_t seq = state->first; code == SPILL_OK; seq++) {
        int64_t bytes;
        seq = spill_seqs_pass(&state->deleted, seq);
        if (seq >= spill_state_end(state))
            break;
        code = measure(decision, seq, &bytes, error);
        if (code != SPILL_OK)
            break;
        spill_top_entry_t entry =
            spill_top_entry_of(decision->request->definition, seq, &decision->before.element);
        spill_top_add(&decision->journal, SIZE_MAX, &entry);
    }
    decision->before.element = element;
    decision->facts.journal = &decision->journal;
    return code;
}

/* spill_facts_t.size_of. If it fails, the transition refuses, and `failed` has the reason. */
static int64_t size_of(void *context, int64_t seq)
{
    decision_t *decision = context;
    int64_t bytes;
    decision->failed = measure(decision, seq, &bytes, decision->error);
    return bytes;
}

/* The size of the head's live elements below request->change.watermark. */
static spill_code_t measure_trim(decision_t *decision, spill_error_t *error)
{
    const spill_request_t *request = decision->request;
    const spill_state_t *state = decision->state;
    int64_t end = spill_state_end(state);
    int64_t below = request->change.watermark < end ? request->change.watermark : end;
    if (below <= state->first)
        return SPILL_OK;
    spill_kv_iter_t *iter = decision->store->kv->ops->iterate(decision->store->kv);
    spill_record_key_element(&decision->key, state->incarnation, below - 1);
    iter->ops->seek(iter, decision->key.data, decision->key.size);
    int64_t incarnation, seq;
    while (iter->valid &&
           spill_record_key_is_element(&decision->key, iter->key, iter->key_bytes, &incarnation,
                                       &seq) &&
           incarnation == state->incarnation && seq >= state->first) {
        if (iter->value_bytes > 0) /* an empty record is damaged; it is deleted as well */
            decision->facts.erased_bytes += (int64_t)iter->value_bytes - 1;
        iter->ops->next(iter);
    }
    spill_code_t code = spill_kv_iter_stop(iter, error);
    iter->ops->free(iter);
    return code == SPILL_OK ? code : spill_embedded_place(request, request->page, code, error);
}

/* RECOUNT with `range`: read the elements in the range that the document gets. */
static spill_code_t read_place(decision_t *decision, spill_run_t *run, spill_error_t *error)
{
    const spill_request_t *request = decision->request;
    const spill_state_t *state = decision->state;
    spill_kv_iter_t *iter = decision->store->kv->ops->iterate(decision->store->kv);
    int64_t incarnation, seq;
    spill_record_key_element(&decision->key, state->incarnation,
                             request->recount.first + request->recount.slots - 1);
    iter->ops->seek(iter, decision->key.data, decision->key.size);
    while (iter->valid &&
           spill_record_key_is_element(&decision->key, iter->key, iter->key_bytes, &incarnation,
                                       &seq) &&
           incarnation == state->incarnation && seq >= request->recount.first) {
        spill_value_t element;
        if (!spill_seqs_contains(&state->deleted, seq) &&
            spill_element_decode(request->definition, iter->value, iter->value_bytes, &element))
            spill_run_add(run, seq, &element);
        iter->ops->next(iter);
    }
    spill_view_reverse(run, 0);
    spill_code_t code = spill_kv_iter_stop(iter, error);
    iter->ops->free(iter);
    return code == SPILL_OK ? code : spill_embedded_place(request, request->page, code, error);
}

static spill_code_t read_elements(decision_t *decision, spill_response_t *all, spill_error_t *error)
{
    const spill_request_t *request = decision->request;
    if (spill_request_recounts_elements(request) && request->recount.range)
        return read_place(decision, &all->run, error);
    spill_request_t read = spill_request_reading(request);
    read.read.op = NULL;
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    return spill_embedded_read(decision->store, &read, all, error);
}

/*
 * Read all of the document's elements, which are in the engine, and compute the window statistics
 * after the step and, for a RECOUNT, the counts.
 */
static spill_code_t measure_elements(decision_t *decision, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t all = SPILL_RESPONSE_INIT;
    if (!decision->state->present)
        return SPILL_OK;
    SPILL_TRY(read_elements(decision, &all, error));
    if (spill_needs_window_stats(decision->request))
        decision->facts.window_stats = spill_window_stats_after(decision->request, &all.run);
    decision->facts.measured = spill_request_recounts_elements(decision->request);
    decision->facts.live = (int64_t)all.run.count;
    decision->facts.live_bytes = spill_run_bytes(&all.run);
    return SPILL_OK;
}

/* ---- the head's other fields ----------------------------------------------------------------- */

static spill_code_t make_fields(decision_t *decision, spill_error_t *error)
{
    const spill_request_t *request = decision->request;
    const bson_t *update = spill_request_update(request);
    SPILL_TRY(spill_embedded_get_fields(decision->store, decision->batch, request,
                                        &decision->fields, error));
    if (!decision->state->present) {
        SPILL_TRY(spill_unmanaged_check(request->definition, decision->fields, error));
        SPILL_TRY(spill_unmanaged_prepare(request->definition, &decision->fields,
                                          &decision->facts.around_bytes, error));
    }
    if (update)
        SPILL_TRY(spill_update_replace(&decision->fields, update, error));
    decision->facts.fields_bytes = decision->fields->len;
    return SPILL_OK;
}

/* UNMANAGE: read all elements of the head. */
static spill_code_t read_own(decision_t *decision, spill_response_t *own, spill_error_t *error)
{
    spill_request_t read = spill_request_reading(decision->request);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    return spill_embedded_read(decision->store, &read, own, error);
}

/* ADOPT and ADOPT_SPLIT remove the array from the fields; UNMANAGE adds it. */
static spill_code_t move_array(decision_t *decision, spill_error_t *error)
{
    const spill_request_t *request = decision->request;
    spill_response_t own = SPILL_RESPONSE_INIT;
    bson_t *fields = NULL;
    int64_t added;
    spill_code_t code =
        spill_embedded_get_fields(decision->store, decision->batch, request, &fields, error);
    if (code == SPILL_OK)
        code = spill_unmanaged_allows(request, fields, error);
    if (code == SPILL_OK && request->kind == SPILL_REQUEST_UNMANAGE)
        code = read_own(decision, &own, error);
    if (code == SPILL_OK && request->kind == SPILL_REQUEST_UNMANAGE) {
        decision->fields =
            spill_unmanaged_join(request->definition, fields, request->unmanage.run, &own.run);
    } else if (code == SPILL_OK) {
        decision->fields = spill_unmanaged_split(request->definition, fields, &decision->unmanaged);
        decision->facts.unmanaged = decision->fields ? &decision->unmanaged : NULL;
        if (decision->fields)
            code = spill_unmanaged_prepare(request->definition, &decision->fields, &added, error);
        if (request->kind == SPILL_REQUEST_ADOPT_SPLIT)
            decision->facts.differs =
                !spill_unmanaged_cut(&decision->unmanaged, request->adopt.run);
    }
    decision->facts.fields_bytes = decision->fields ? decision->fields->len : 0;
    spill_response_release(&own);
    bson_destroy(fields);
    return code;
}

/* ---- steps on a page that depend on its head ------------------------------------------------- */

static bool depends_on_head(const spill_request_t *request)
{
    switch (request->kind) {
    case SPILL_REQUEST_PUT_PAGE:
    case SPILL_REQUEST_EDIT:
    case SPILL_REQUEST_DELETE:
    case SPILL_REQUEST_EMPTY_PAGE:
    case SPILL_REQUEST_DROP_PAGE:
        return request->page != SPILL_HEAD && keeps_newest(request);
    default:
        return false;
    }
}

/* See the top of the file. */
static bool head_permits(const spill_request_t *request, const spill_state_t *head, bool shared,
                         bool edit)
{
    switch (request->kind) {
    case SPILL_REQUEST_PUT_PAGE:
        return !head->present || head->incarnation != request->incarnation || edit ||
               (request->page >= head->pages && request->put_page.first >= head->first &&
                request->put_page.first + request->put_page.slots <= spill_state_end(head));
    case SPILL_REQUEST_EDIT:
    case SPILL_REQUEST_DELETE:
        return !shared;
    default:
        return true;
    }
}

static spill_code_t check_against_head(decision_t *decision, bool *allowed, spill_error_t *error)
{
    const spill_request_t *request = decision->request;
    const spill_state_t *page = decision->state;
    *allowed = true;
    if (!depends_on_head(request))
        return SPILL_OK;
    spill_state_t head = {0};
    spill_code_t code = spill_embedded_get_state(decision->store, decision->batch, request,
                                                 &decision->key, SPILL_HEAD, &head, error);
    if (code == SPILL_OK) {
        decision->before.left_over = !head.present || head.incarnation != page->incarnation;
        bool uncut = head.present && request->page >= head.pages;
        decision->before.shared = uncut && page->present && page->incarnation == head.incarnation;
        decision->before.is_view = uncut && request->incarnation == head.incarnation;
        bool edit = spill_schema_of(request->definition)->has_referenced_elements &&
                    page->present && !uncut;
        *allowed = head_permits(request, &head, decision->before.shared, edit);
    }
    spill_state_release(&head);
    return code;
}

/* ---- deciding -------------------------------------------------------------------------------- */

static spill_code_t gather_facts(decision_t *decision, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    if (spill_needs_journal(decision->request) && decision->state->present)
        code = rank_journal(decision, error);
    if (code != SPILL_OK)
        return code;
    switch (decision->request->kind) {
    case SPILL_REQUEST_APPEND:
        if (decision->request->append.op)
            code = find_op(decision, error);
        if (code == SPILL_OK)
            code = see(decision, error);
        if (code == SPILL_OK && decision->request->append.searched)
            code = spill_embedded_has_id(decision->store, decision->request, decision->state,
                                         decision->batch, &decision->key,
                                         &decision->facts.seen.has_id, error);
        break;
    case SPILL_REQUEST_UPDATE_FIELDS:
    case SPILL_REQUEST_REWRITE:
        code = see(decision, error);
        break;
    case SPILL_REQUEST_EDIT:
    case SPILL_REQUEST_REMOVE:
    case SPILL_REQUEST_DELETE:
        code = find_element(decision, error);
        break;
    case SPILL_REQUEST_TRIM:
        code = measure_trim(decision, error);
        break;
    case SPILL_REQUEST_ADOPT:
    case SPILL_REQUEST_ADOPT_SPLIT:
    case SPILL_REQUEST_UNMANAGE:
        code = move_array(decision, error);
        break;
    default:
        break;
    }
    if (code == SPILL_OK && (spill_needs_window_stats(decision->request) ||
                             spill_request_recounts_elements(decision->request)))
        code = measure_elements(decision, error);
    if (code == SPILL_OK &&
        spill_writes_fields(decision->request, decision->state, &decision->facts.seen))
        code = make_fields(decision, error);
    return code;
}

/* Write it after each drop, because an earlier write may have failed. */
static void write_dropped_rev(decision_t *decision, int64_t rev)
{
    if (!spill_ends_incarnation(decision->request))
        return;
    spill_buffer_t key = SPILL_BUFFER_INIT;
    if (rev > decision->store->dropped_rev)
        decision->store->dropped_rev = rev;
    spill_system_key(&key, SPILL_SYSTEM_DROPPED, "");
    spill_buffer_append_varint(spill_batch_put_open(decision->batch, key.data, key.size),
                               (uint64_t)decision->store->dropped_rev);
    spill_batch_put_close(decision->batch);
    spill_buffer_release(&key);
}

/* The sessions' records of a step that is done; a new head has none before. */
static spill_code_t carry_sessions(decision_t *decision, spill_error_t *error)
{
    const spill_request_t *request = decision->request;
    const spill_before_t *before = &decision->before;
    int64_t incarnation = decision->state->incarnation;
    if (request->kind == SPILL_REQUEST_FORGET)
        return spill_embedded_forget_sessions(decision->store, request, incarnation,
                                              decision->facts.now_us, &decision->key,
                                              decision->batch, error);
    if (spill_ends_incarnation(request))
        return spill_embedded_drop_sessions(decision->store, request, before->incarnation,
                                            &decision->key, decision->batch, error);
    spill_session_verdict_t verdict;
    if (!before->present)
        SPILL_TRY(spill_embedded_see_sessions(decision->store, request, incarnation, &decision->key,
                                              decision->batch, &decision->sessions, &verdict,
                                              error));
    spill_embedded_put_sessions(&decision->sessions, incarnation, &decision->key, decision->batch);
    return SPILL_OK;
}

static spill_code_t decide(decision_t *decision, spill_response_t *response, spill_error_t *error)
{
    spill_request_t dated;
    const spill_request_t *request =
        spill_request_dated(decision->request, decision->store->dropped_rev, &dated);
    decision->request = request;
    bool allowed;
    spill_code_t code =
        spill_embedded_get_state(decision->store, decision->batch, request, &decision->key,
                                 request->page, decision->state, error);
    if (code == SPILL_OK)
        code = check_against_head(decision, &allowed, error);
    if (code != SPILL_OK || !allowed)
        return code;
    code = gather_facts(decision, error);
    if (code != SPILL_OK)
        return code;
    const spill_clock_t *clock = &decision->store->base.options.clock;
    if (spill_needs_time(decision->request))
        decision->facts.now_us = clock->now_us(clock->context);
    decision->facts.dropped_rev = decision->store->dropped_rev;
    decision->before.present = decision->state->present;
    decision->before.incarnation = decision->state->incarnation;
    decision->before.first = decision->state->first;
    decision->before.end = spill_state_end(decision->state);
    decision->before.fields = decision->fields;
    decision->before.elements = &decision->journal;
    if (decision->state->gaps) {
        spill_seqs_copy(&decision->state->deleted, &decision->deleted);
        decision->before.deleted = &decision->deleted;
    }
    decision->before.unmanaged = decision->facts.unmanaged;
    int64_t rev = decision->state->rev;
    spill_effect_t effect;
    response->outcome = spill_transition(request, &decision->facts, decision->state, &effect);
    response->seq = effect.seq;
    if (response->outcome != SPILL_DONE)
        return decision->failed;
    response->crowded_out = effect.crowded_out;
    write_dropped_rev(decision, rev);
    SPILL_TRY(spill_embedded_carry_out(decision->store, request, &decision->before, &effect,
                                       decision->state, &decision->key, decision->batch, error));
    return carry_sessions(decision, error);
}

spill_code_t spill_embedded_decide(void *context, spill_batch_t *batch, spill_error_t *error)
{
    const spill_change_call_t *call = context;
    decision_t decision;
    decision.store = call->store;
    decision.request = call->request;
    decision.batch = batch;
    decision.state = &call->response->state;
    decision.facts = (spill_facts_t){.size_of = size_of, .context = &decision};
    decision.failed = SPILL_OK;
    decision.error = error;
    decision.sessions = (spill_session_puts_t){0};
    decision.journal = (spill_top_t){0};
    decision.deleted = (spill_seqs_t){0};
    decision.before = (spill_before_t){0};
    decision.fields = NULL;
    decision.unmanaged = (spill_run_t){0};
    decision.value = (spill_buffer_t)SPILL_BUFFER_INIT;
    decision.ops = (spill_op_source_t){.store = call->store,
                                       .kv = call->store->kv,
                                       .batch = batch,
                                       .request = call->request,
                                       .page = call->request->page};
    spill_record_key_init(&decision.key, call->request->array_id, call->request->key,
                          call->request->key_bytes);
    call->response->outcome = SPILL_REFUSED_GUARD;
    if (!spill_embedded_has_array(call->store, call->request->array_id))
        return spill_store_ended(error);
    spill_code_t code = decide(&decision, call->response, error);
    bson_destroy(decision.fields);
    spill_sessions_release(&decision.sessions.entries);
    spill_top_release(&decision.journal);
    spill_seqs_release(&decision.deleted);
    spill_run_release(&decision.unmanaged);
    spill_buffer_release(&decision.value);
    spill_op_source_release(&decision.ops);
    return code;
}
