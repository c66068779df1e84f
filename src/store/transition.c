#include "store/transition.h"

#include "definition/schema.h"

#include <assert.h>

/*
 * Each step function below is one row of the table in request.h. If the guard does not hold, it
 * returns SPILL_REFUSED_GUARD and changes nothing. Otherwise it changes the state and sets *effect.
 */

static bool keeps_newest(const spill_request_t *request)
{
    return spill_schema_of(request->definition)->appends_to_head;
}

static bool at_rev(const spill_request_t *request, const spill_state_t *state)
{
    return state->present && state->rev == request->rev;
}

static bool at_incarnation(const spill_request_t *request, const spill_state_t *state)
{
    return state->present && state->incarnation == request->incarnation;
}

/* May the update that makes this page's head still arrive? */
static bool is_leased(const spill_facts_t *facts, const spill_state_t *page)
{
    return page->present && page->lease > facts->now_us;
}

static bool is_referenced(const spill_request_t *request)
{
    return spill_schema_of(request->definition)->has_referenced_elements;
}

/* Is element change.seq present, according to the state and to what the store found? */
static bool has_element(const spill_request_t *request, const spill_facts_t *facts,
                        const spill_state_t *state)
{
    return facts->old_bytes >= 0 && request->change.seq >= state->first &&
           request->change.seq < spill_state_end(state) &&
           !spill_seqs_contains(&state->deleted, request->change.seq);
}

static bool is_capped(const spill_request_t *request)
{
    return spill_schema_of(request->definition)->is_capped;
}

/* Capped: an element that is no longer in the head is trimmed, so `removed` need not count it. */
static void raise_watermark(const spill_request_t *request, spill_state_t *state)
{
    if (!is_capped(request))
        return;
    state->watermark = state->first;
    state->removed = 0;
}

/* Keep newest: drop a leading run of deleted numbers, or `deleted` could grow without a limit. */
static void fold_leading_deleted(spill_state_t *state)
{
    int64_t first = spill_seqs_pass(&state->deleted, state->first);
    state->removed += first - state->first;
    state->first = first;
    spill_seqs_drop_below(&state->deleted, first);
}

/* ---- statistics ------------------------------------------------------------------------------ */

bool spill_needs_time(const spill_request_t *request)
{
    return request->kind == SPILL_REQUEST_PUT_PAGE || request->kind == SPILL_REQUEST_EMPTY_PAGE ||
           request->kind == SPILL_REQUEST_DROP_PAGE || request->kind == SPILL_REQUEST_ADOPT ||
           request->kind == SPILL_REQUEST_ADOPT_SPLIT || request->kind == SPILL_REQUEST_FORGET;
}

bool spill_needs_window_stats(const spill_request_t *request)
{
    bool changes = request->kind == SPILL_REQUEST_EDIT || request->kind == SPILL_REQUEST_REMOVE ||
                   request->kind == SPILL_REQUEST_DELETE || request->kind == SPILL_REQUEST_TRIM ||
                   spill_request_recounts_elements(request);
    return changes && spill_schema_of(request->definition)->has_windows;
}

bool spill_moves_array(const spill_request_t *request)
{
    return request->kind == SPILL_REQUEST_ADOPT || request->kind == SPILL_REQUEST_ADOPT_SPLIT ||
           request->kind == SPILL_REQUEST_UNMANAGE;
}

bool spill_is_deleted(const spill_state_t *after, int64_t seq)
{
    return seq < after->first || spill_seqs_contains(&after->deleted, seq);
}

bool spill_needs_journal(const spill_request_t *request)
{
    if (request->kind == SPILL_REQUEST_APPEND)
        return spill_schema_of(request->definition)->keeps_top_n;
    return spill_schema_of(request->definition)->has_top && spill_request_refill(request) != NULL;
}

spill_window_stats_t spill_window_stats_after(const spill_request_t *request,
                                              const spill_run_t *run)
{
    bool edit = request->kind == SPILL_REQUEST_EDIT;
    bool trim = request->kind == SPILL_REQUEST_TRIM;
    bool recount = request->kind == SPILL_REQUEST_RECOUNT;
    spill_window_stats_t window_stats = {0};
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        bool meant = trim ? element.seq < request->change.watermark
                          : !recount && element.seq == request->change.seq;
        if (edit && meant)
            spill_window_stats_add(&window_stats, request->definition, request->change.element);
        else if (!meant)
            spill_window_stats_add(&window_stats, request->definition, &element.value);
    }
    return window_stats;
}

static void window_stats_appended(const spill_request_t *request, spill_state_t *state)
{
    if (!spill_schema_of(request->definition)->has_windows)
        return;
    for (size_t i = 0; i < request->append.element_count; i++)
        spill_window_stats_add(&state->window_stats, request->definition,
                               &request->append.elements[i]);
}

/* ---- helpers of several steps ---------------------------------------------------------------- */

/* Delete the element; its number stays, in `deleted`. */
static void delete_element(const spill_request_t *request, const spill_facts_t *facts,
                           spill_state_t *state, spill_effect_t *effect)
{
    state->live--;
    state->live_bytes -= facts->old_bytes;
    state->window_stats = facts->window_stats;
    spill_seqs_insert(&state->deleted, request->change.seq);
    state->rev++;
    *effect = (spill_effect_t){.kind = SPILL_EFFECT_DELETE, .seq = request->change.seq};
}

/* Drop all slots. The next number stays the same. */
static void empty_document(spill_state_t *state, spill_effect_t *effect)
{
    int64_t end = spill_state_end(state);
    *effect = (spill_effect_t){.kind = SPILL_EFFECT_ERASE, .seq = state->first, .end = end};
    state->first = end;
    state->live = 0;
    state->live_bytes = 0;
    state->window_stats = (spill_window_stats_t){0};
    spill_seqs_clear(&state->deleted);
    state->rev++;
}

static spill_outcome_t drop_document(spill_state_t *state, spill_effect_t *effect)
{
    *effect = (spill_effect_t){.kind = SPILL_EFFECT_DROP};
    spill_state_clear(state);
    return SPILL_DONE;
}

/* Set the state of a new document, or of one that replaces an older document. */
static void make_document(const spill_request_t *request, spill_state_t *state, int64_t first,
                          int64_t rev)
{
    spill_state_clear(state);
    state->present = true;
    state->incarnation = request->incarnation;
    state->rev = rev;
    state->first = first;
    state->page = request->page == SPILL_HEAD ? 0 : request->page;
    state->gaps = spill_schema_of(request->definition)->keeps_top_n;
}

/* ---- append ---------------------------------------------------------------------------------- */

/* The size of the request's element of that number; it is one of those that were added. */
static int64_t size_of_added(const spill_request_t *request, int64_t from, int64_t seq)
{
    if (!request->append.seqs)
        return request->append.elements[seq - from].size_bytes;
    for (size_t i = 0; i < request->append.element_count; i++)
        if (request->append.seqs[i] == seq)
            return request->append.elements[i].size_bytes;
    return -1;
}

/*
 * After the elements were added to the state: drop the oldest slots until slots_max and bytes_max
 * hold. At least one element stays. *first is the first slot that stays. Return false if the size
 * of an element is not known.
 */
static bool evict_oldest(const spill_request_t *request, const spill_facts_t *facts, int64_t added,
                         spill_state_t *state, int64_t *first)
{
    spill_state_t left = *state;
    while (true) {
        left.first = spill_seqs_pass(&state->deleted, left.first);
        left.deleted.count =
            state->deleted.count - spill_seqs_count_below(&state->deleted, left.first);
        int64_t bytes = spill_state_document_bytes(request->definition, request->owner, true, &left,
                                                   left.live, left.live_bytes);
        if (left.live == 1 ||
            (left.live <= request->limits.slots_max && bytes <= request->limits.bytes_max))
            break;
        int64_t size = left.first >= added ? size_of_added(request, added, left.first)
                                           : facts->size_of(facts->context, left.first);
        if (size < 0)
            return false;
        left.live--;
        left.live_bytes -= size;
        left.first++;
    }
    *first = left.first;
    state->live = left.live;
    state->live_bytes = left.live_bytes;
    return true;
}

/*
 * `seqs`: begin at the first number, as a trim of what was before would leave it. The numbers
 * between the elements, and behind the last, are those of removed elements.
 */
static void number_elements(const spill_request_t *request, spill_state_t *state)
{
    const int64_t *seqs = request->append.seqs;
    size_t count = request->append.element_count;
    state->first = state->watermark = seqs[0];
    if (is_referenced(request))
        state->pages = state->first;
    for (size_t i = 0; i < count; i++) {
        int64_t next = i + 1 < count ? seqs[i + 1] : request->append.end;
        spill_seqs_insert_run(&state->deleted, seqs[i] + 1, next);
    }
    if (!keeps_newest(request))
        state->removed = (int64_t)state->deleted.count;
}

static spill_outcome_t append(const spill_request_t *request, const spill_facts_t *facts,
                              spill_state_t *state, spill_effect_t *effect)
{
    assert(request->append.element_count > 0 || request->append.skip > 0);
    assert(request->append.skip == 0 || spill_schema_of(request->definition)->keeps_top_n);
    int64_t fields_bytes = facts->fields_bytes > 0 ? facts->fields_bytes : state->fields_bytes;
    if (spill_append_refusal_within(request, state, &facts->seen,
                                    fields_bytes - facts->around_bytes) != SPILL_REFUSAL_NONE)
        return SPILL_REFUSED_GUARD;
    spill_state_t after = *state;
    if (!after.present)
        make_document(request, &after, 0, request->incarnation);
    if (request->append.seqs)
        after.first = request->append.seqs[0];
    int64_t end = spill_state_end(&after), first = after.first;
    after.fields_bytes = fields_bytes;
    after.live += (int64_t)request->append.element_count;
    after.live_bytes += request->append.elements_bytes;
    after.op_count += spill_request_ops(request);
    for (size_t i = 0; is_referenced(request) && i < request->append.element_count; i++) {
        spill_sum_t value = spill_sum_of(request->definition, &request->append.elements[i]);
        spill_sum_add(&after.sum, &value);
    }
    if (request->append.seqs)
        number_elements(request, &after);
    window_stats_appended(request, &after);
    bool top_n = spill_schema_of(request->definition)->keeps_top_n;
    if (top_n && !spill_step_knows_all(facts, state))
        return SPILL_REFUSED_GUARD;
    if (is_capped(request) && !top_n && !evict_oldest(request, facts, end, &after, &first))
        return SPILL_REFUSED_GUARD;
    *effect = (spill_effect_t){.kind = SPILL_EFFECT_ADD, .seq = end};
    *state = after;
    spill_step_appends_to_top(request, facts, end, state);
    if (!is_capped(request))
        return SPILL_DONE;
    if (top_n) {
        spill_seqs_insert_run(&state->deleted, end, end + request->append.skip);
        effect->crowded_out = spill_step_keeps_top_n(request, facts, end, state);
        fold_leading_deleted(state);
        first = state->first;
    }
    effect->end = first;
    state->first = first;
    spill_seqs_drop_below(&state->deleted, first);
    raise_watermark(request, state);
    return SPILL_DONE;
}

static spill_outcome_t update_fields(const spill_request_t *request, const spill_facts_t *facts,
                                     spill_state_t *state)
{
    if (spill_update_refusal(request, state, &facts->seen) != SPILL_REFUSAL_NONE)
        return SPILL_REFUSED_GUARD;
    spill_state_t after = *state;
    if (facts->fields_bytes > 0)
        after.fields_bytes = facts->fields_bytes;
    if (spill_state_document_bytes(request->definition, request->owner, true, &after, state->live,
                                   state->live_bytes) > SPILL_DOCUMENT_BYTES_MAX)
        return SPILL_REFUSED_GUARD;
    if (!state->present)
        make_document(request, state, 0, request->incarnation);
    state->fields_bytes = after.fields_bytes;
    return SPILL_DONE;
}

/* ---- making pages ---------------------------------------------------------------------------- */

/*
 * The rev of a new page, above the rev of the page that it replaces and at least `least`, so that
 * the page never has the same rev twice. For PUT_PAGE `least` is source_rev, which also rises from
 * one write to the next. So no rev returns even if the page was deleted in between.
 */
static int64_t made_rev(const spill_state_t *old, int64_t least)
{
    return old->present && old->rev >= least ? old->rev + 1 : least;
}

static spill_outcome_t put_page(const spill_request_t *request, const spill_facts_t *facts,
                                spill_state_t *state, spill_effect_t *effect)
{
    bool newer = request->incarnation > state->incarnation ||
                 (request->incarnation == state->incarnation &&
                  request->put_page.source_rev > state->source_rev);
    int64_t source_rev =
        request->put_page.lease > 0 ? request->incarnation : request->put_page.source_rev;
    if (state->present && (!newer || request->put_page.lease > 0 || is_leased(facts, state)))
        return SPILL_REFUSED_GUARD;
    make_document(request, state, request->put_page.first, made_rev(state, source_rev));
    state->live = (int64_t)request->put_page.run->count;
    state->live_bytes = spill_run_bytes(request->put_page.run);
    state->source_rev = source_rev;
    state->lease = request->put_page.lease;
    if (request->put_page.deleted)
        spill_seqs_copy(request->put_page.deleted, &state->deleted);
    assert(spill_state_slots(state) == request->put_page.slots);
    effect->kind = SPILL_EFFECT_FILL;
    return SPILL_DONE;
}

static spill_outcome_t create_page(const spill_request_t *request, spill_state_t *state,
                                   spill_effect_t *effect)
{
    if (state->present && state->incarnation >= request->incarnation)
        return SPILL_REFUSED_GUARD;
    make_document(request, state, request->create_page.first,
                  made_rev(state, request->incarnation));
    state->op_count = request->create_page.op_count;
    effect->kind = SPILL_EFFECT_FILL;
    return SPILL_DONE;
}

/* ---- spilling -------------------------------------------------------------------------------- */

static spill_outcome_t cut(const spill_request_t *request, const spill_facts_t *facts,
                           spill_state_t *state, spill_effect_t *effect)
{
    if (!at_incarnation(request, state) || !at_rev(request, state) ||
        state->pages != request->cut.pages || request->cut.slots > spill_state_slots(state) ||
        facts->differs)
        return SPILL_REFUSED_GUARD;
    int64_t end = state->first + request->cut.slots;
    int64_t deleted = (int64_t)spill_seqs_count_below(&state->deleted, end);
    *effect = (spill_effect_t){.kind = SPILL_EFFECT_CUT, .seq = state->first, .end = end};
    state->live -= request->cut.slots - deleted;
    state->live_bytes -= request->cut.bytes;
    state->removed += deleted;
    state->first = end;
    spill_seqs_drop_below(&state->deleted, end);
    if (is_referenced(request)) {
        state->pages = end;
    } else {
        fold_leading_deleted(state);
        state->pages += 1 + request->cut.more_pages;
    }
    state->rev++;
    return SPILL_DONE;
}

static spill_outcome_t seal(const spill_request_t *request, spill_state_t *state)
{
    bool head = request->page == SPILL_HEAD;
    if (!at_incarnation(request, state) || state->sealed)
        return SPILL_REFUSED_GUARD;
    if (!head && spill_state_slots(state) == 0 && !request->seal.close)
        return SPILL_REFUSED_GUARD;
    state->sealed = true;
    state->closed = request->seal.close;
    state->rev++;
    if (head) {
        state->pages = 1;
        state->total = spill_state_end(state);
    }
    return SPILL_DONE;
}

static spill_outcome_t advance(const spill_request_t *request, spill_state_t *state)
{
    if (!at_incarnation(request, state))
        return SPILL_REFUSED_GUARD;
    if (state->pages < request->advance.pages)
        state->pages = request->advance.pages;
    if (state->total < request->advance.total)
        state->total = request->advance.total;
    return SPILL_DONE;
}

/* ---- edits, removals, trims, recounts -------------------------------------------------------- */

bool spill_edit_has_room(const spill_request_t *edit, const spill_state_t *state, int64_t old_bytes)
{
    int64_t live_bytes = state->live_bytes - old_bytes + edit->change.element->size_bytes;
    int64_t bytes = spill_state_document_bytes(
        edit->definition, edit->owner, edit->page == SPILL_HEAD, state, state->live, live_bytes);
    return live_bytes <= state->live_bytes ||
           spill_limits_fit(&edit->limits, spill_state_bounded(edit->definition, state),
                            state->live, bytes);
}

static spill_outcome_t edit(const spill_request_t *request, const spill_facts_t *facts,
                            spill_state_t *state, spill_effect_t *effect)
{
    assert(request->change.element);
    if (!at_rev(request, state) || !has_element(request, facts, state) ||
        !spill_step_allows_top(request, state) ||
        !spill_edit_has_room(request, state, facts->old_bytes))
        return SPILL_REFUSED_GUARD;
    state->live_bytes += request->change.element->size_bytes - facts->old_bytes;
    spill_sum_subtract(&state->sum, &request->change.sum_removed);
    spill_sum_add(&state->sum, &request->change.sum_added);
    state->window_stats = facts->window_stats;
    spill_step_changes_top(request, facts, request->change.element, state);
    state->rev++;
    *effect = (spill_effect_t){.kind = SPILL_EFFECT_REPLACE, .seq = request->change.seq};
    return SPILL_DONE;
}

static spill_outcome_t remove_in_head(const spill_request_t *request, const spill_facts_t *facts,
                                      spill_state_t *state, spill_effect_t *effect)
{
    if (!at_rev(request, state) || !has_element(request, facts, state) ||
        !spill_step_allows_top(request, state))
        return SPILL_REFUSED_GUARD;
    delete_element(request, facts, state, effect);
    spill_step_changes_top(request, facts, NULL, state);
    spill_sum_subtract(&state->sum, &request->change.sum_removed);
    if (!keeps_newest(request))
        state->removed++;
    else if (!is_referenced(request))
        fold_leading_deleted(state);
    raise_watermark(request, state);
    return SPILL_DONE;
}

static spill_outcome_t prepare(const spill_request_t *request, const spill_facts_t *facts,
                               spill_state_t *state)
{
    if (!at_rev(request, state) || state->intent ||
        (!request->change.edit && !spill_step_allows_top(request, state)))
        return SPILL_REFUSED_GUARD;
    if (!request->change.edit)
        spill_step_changes_top(request, facts, NULL, state);
    state->intent = true;
    state->intent_seq = request->change.seq;
    state->intent_page = request->change.intent_page;
    state->intent_edit = request->change.edit;
    state->intent_value = request->change.sum_added;
    spill_sum_subtract(&state->sum, &request->change.sum_removed);
    spill_sum_add(&state->sum, &request->change.sum_added);
    if (!request->change.edit)
        state->removed++;
    state->rev++;
    state->intent_source_rev = request->change.edit ? state->rev : 0;
    return SPILL_DONE;
}

static spill_outcome_t delete_in_page(const spill_request_t *request, const spill_facts_t *facts,
                                      spill_state_t *state, spill_effect_t *effect)
{
    if (!at_incarnation(request, state) || !has_element(request, facts, state))
        return SPILL_REFUSED_GUARD;
    delete_element(request, facts, state, effect);
    return SPILL_DONE;
}

static spill_outcome_t complete(const spill_request_t *request, const spill_facts_t *facts,
                                spill_state_t *state)
{
    if (!at_rev(request, state) || !state->intent || state->intent_seq != request->change.seq ||
        state->intent_page != request->change.intent_page ||
        (state->intent_edit && !spill_step_allows_top(request, state)))
        return SPILL_REFUSED_GUARD;
    if (state->intent_edit) {
        spill_step_changes_top(request, facts, request->change.element, state);
        spill_sum_subtract(&state->sum, &state->intent_value);
        spill_sum_add(&state->sum, &request->change.sum_added);
    }
    state->intent = false;
    state->intent_edit = false;
    state->intent_source_rev = 0;
    state->intent_value = (spill_sum_t){0};
    state->intent_seq = 0;
    state->intent_page = 0;
    state->rev++;
    return SPILL_DONE;
}

/* TRIM with `begins`: the elements to come have numbers from `watermark` on. */
static spill_outcome_t begin_at(const spill_request_t *request, spill_state_t *state)
{
    int64_t end = spill_state_end(state);
    bool has_pages = is_referenced(request) ? state->watermark < state->pages : state->pages > 0;
    if (!at_rev(request, state) || state->intent || state->sealed || has_pages ||
        spill_state_slots(state) > 0 || request->change.end != end ||
        request->change.watermark <= end)
        return SPILL_REFUSED_GUARD;
    state->first = state->watermark = request->change.watermark;
    state->removed = 0;
    if (is_referenced(request))
        state->pages = state->first;
    state->rev++;
    return SPILL_DONE;
}

static spill_outcome_t trim(const spill_request_t *request, const spill_facts_t *facts,
                            spill_state_t *state, spill_effect_t *effect)
{
    int64_t end = spill_state_end(state);
    if (request->change.begins)
        return begin_at(request, state);
    if (!at_rev(request, state) || state->intent || request->change.watermark <= state->watermark ||
        (request->change.end > 0 && request->change.end != end) ||
        !spill_step_allows_top(request, state))
        return SPILL_REFUSED_GUARD;
    spill_step_changes_top(request, facts, NULL, state);
    int64_t first = request->change.watermark < end ? request->change.watermark : end;
    state->watermark = request->change.watermark;
    state->removed = request->change.removed;
    spill_sum_subtract(&state->sum, &request->change.sum_removed);
    state->rev++;
    if (first > state->first) {
        int64_t deleted = (int64_t)spill_seqs_count_below(&state->deleted, first);
        *effect = (spill_effect_t){.kind = SPILL_EFFECT_ERASE, .seq = state->first, .end = first};
        state->live -= first - state->first - deleted;
        state->live_bytes -= facts->erased_bytes;
        state->window_stats = facts->window_stats;
        state->first = first;
        spill_seqs_drop_below(&state->deleted, first);
    }
    if (is_referenced(request))
        state->pages = state->first;
    else if (keeps_newest(request))
        fold_leading_deleted(state);
    raise_watermark(request, state);
    return SPILL_DONE;
}

/* Old elements count as trimmed. An operation that was tried before is now stale, not repeated. */
static spill_outcome_t rewrite(const spill_request_t *request, const spill_facts_t *facts,
                               spill_state_t *state, spill_effect_t *effect)
{
    if (!at_incarnation(request, state) || !at_rev(request, state) || state->pages > 0 ||
        state->intent || spill_state_end(state) != request->rewrite.end ||
        facts->seen.session != SPILL_SESSION_NEW)
        return SPILL_REFUSED_GUARD;
    state->first = request->rewrite.end;
    state->watermark = request->rewrite.end;
    state->removed = 0;
    spill_seqs_clear(&state->deleted);
    state->live = (int64_t)request->rewrite.run->count;
    state->live_bytes = spill_run_bytes(request->rewrite.run);
    state->op_count += request->definition->op_window;
    state->rev++;
    effect->kind = SPILL_EFFECT_FILL;
    return SPILL_DONE;
}

/* How many elements the document has, given the range of numbers in the request. */
static int64_t live_in_range(const spill_request_t *request, const spill_state_t *state)
{
    size_t below = spill_seqs_count_below(&state->deleted, request->recount.first);
    size_t all =
        spill_seqs_count_below(&state->deleted, request->recount.first + request->recount.slots);
    return request->recount.slots - (int64_t)(all - below);
}

/* The document's own counts follow from its elements; the request has the array's counts. */
static spill_outcome_t recount_elements(const spill_request_t *request, const spill_facts_t *facts,
                                        spill_state_t *state)
{
    bool head = request->page == SPILL_HEAD, newest = keeps_newest(request);
    int64_t live = request->recount.range ? live_in_range(request, state) : state->live;
    if (request->recount.range && spill_state_end(state) != request->recount.end)
        return SPILL_REFUSED_GUARD; /* an append came since */
    if ((head && !newest && state->pages != request->recount.pages) ||
        (facts->measured ? facts->live : state->live) != live)
        return SPILL_REFUSED_GUARD;
    if (request->recount.range) {
        state->first = request->recount.first;
        state->live = live;
        spill_seqs_drop_below(&state->deleted, request->recount.first);
        spill_seqs_keep_below(&state->deleted, request->recount.first + request->recount.slots);
    }
    if (facts->measured)
        state->live_bytes = facts->live_bytes;
    if (spill_schema_of(request->definition)->has_windows)
        state->window_stats = facts->window_stats;
    if (head) {
        state->removed = request->recount.removed;
        state->pages = request->recount.pages;
        state->total = newest ? state->total : request->recount.total;
        raise_watermark(request, state);
    }
    state->rev++;
    return SPILL_DONE;
}

static spill_outcome_t recount(const spill_request_t *request, const spill_facts_t *facts,
                               spill_state_t *state)
{
    if (!at_rev(request, state) || (state->intent && !request->recount.indexes))
        return SPILL_REFUSED_GUARD;
    if (request->recount.indexes) {
        state->rev++;
        return SPILL_DONE;
    }
    if (request->recount.counts)
        return recount_elements(request, facts, state);
    if (is_referenced(request) && spill_state_end(state) != request->recount.end)
        return SPILL_REFUSED_GUARD;
    if (is_referenced(request)) {
        state->sum = request->recount.sum;
        spill_step_replaces_top(request, state);
    }
    state->rev++;
    return SPILL_DONE;
}

/* ---- dropping documents ---------------------------------------------------------------------- */

static spill_outcome_t empty_page(const spill_request_t *request, const spill_facts_t *facts,
                                  spill_state_t *state, spill_effect_t *effect)
{
    if (!at_incarnation(request, state) || is_leased(facts, state))
        return SPILL_REFUSED_GUARD;
    if (keeps_newest(request))
        return drop_document(state, effect);
    if (!state->sealed)
        return SPILL_REFUSED_GUARD;
    empty_document(state, effect);
    return SPILL_DONE;
}

static spill_outcome_t drop_head(const spill_request_t *request, spill_state_t *state,
                                 spill_effect_t *effect)
{
    if (!at_incarnation(request, state) || state->pages != request->drop_head.pages)
        return SPILL_REFUSED_GUARD;
    return drop_document(state, effect);
}

static spill_outcome_t drop_page(const spill_request_t *request, const spill_facts_t *facts,
                                 spill_state_t *state, spill_effect_t *effect)
{
    if (!state->present || state->incarnation > request->incarnation || is_leased(facts, state))
        return SPILL_REFUSED_GUARD;
    if (keeps_newest(request))
        return drop_document(state, effect);
    empty_document(state, effect);
    state->sealed = true;
    state->closed = true;
    return SPILL_DONE;
}

/* ---- unmanaged arrays ------------------------------------------------------------------------ */

static spill_outcome_t adopt(const spill_request_t *request, const spill_facts_t *facts,
                             spill_state_t *state, spill_effect_t *effect)
{
    bool late = request->adopt.until > 0 && facts->now_us >= request->adopt.until;
    if (state->present || !facts->unmanaged || late)
        return SPILL_REFUSED_GUARD;
    make_document(request, state, 0, request->incarnation);
    state->live = (int64_t)facts->unmanaged->count;
    state->live_bytes = spill_run_bytes(facts->unmanaged);
    state->fields_bytes = facts->fields_bytes;
    effect->kind = SPILL_EFFECT_FILL;
    return SPILL_DONE;
}

static spill_outcome_t adopt_split(const spill_request_t *request, const spill_facts_t *facts,
                                   spill_state_t *state, spill_effect_t *effect)
{
    if (facts->differs || facts->now_us >= request->adopt.until ||
        facts->dropped_rev >= request->incarnation ||
        adopt(request, facts, state, effect) != SPILL_DONE)
        return SPILL_REFUSED_GUARD;
    state->first = request->adopt.slots;
    state->pages = 1 + request->adopt.more_pages;
    state->rev++;
    return SPILL_DONE;
}

static spill_outcome_t unmanage(const spill_request_t *request, const spill_facts_t *facts,
                                spill_state_t *state, spill_effect_t *effect)
{
    if (!at_incarnation(request, state) || !at_rev(request, state) ||
        state->pages != request->unmanage.pages || state->intent ||
        facts->fields_bytes > SPILL_DOCUMENT_BYTES_MAX)
        return SPILL_REFUSED_GUARD;
    return drop_document(state, effect);
}

size_t spill_append_skipped(const spill_request_t *append, const spill_effect_t *effect)
{
    size_t skipped = 0;
    while (skipped < append->append.element_count &&
           spill_request_seq(append, effect->seq, skipped) < effect->end)
        skipped++;
    return skipped;
}

spill_outcome_t spill_transition(const spill_request_t *request, const spill_facts_t *facts,
                                 spill_state_t *state, spill_effect_t *effect)
{
    *effect = (spill_effect_t){.kind = SPILL_EFFECT_NONE};
    switch (request->kind) {
    case SPILL_REQUEST_APPEND:
        return append(request, facts, state, effect);
    case SPILL_REQUEST_PUT_PAGE:
        return put_page(request, facts, state, effect);
    case SPILL_REQUEST_CUT:
        return cut(request, facts, state, effect);
    case SPILL_REQUEST_SEAL:
        return seal(request, state);
    case SPILL_REQUEST_ADVANCE:
        return advance(request, state);
    case SPILL_REQUEST_CREATE_PAGE:
        return create_page(request, state, effect);
    case SPILL_REQUEST_EDIT:
        return edit(request, facts, state, effect);
    case SPILL_REQUEST_REMOVE:
        return remove_in_head(request, facts, state, effect);
    case SPILL_REQUEST_PREPARE:
        return prepare(request, facts, state);
    case SPILL_REQUEST_DELETE:
        return delete_in_page(request, facts, state, effect);
    case SPILL_REQUEST_COMPLETE:
        return complete(request, facts, state);
    case SPILL_REQUEST_TRIM:
        return trim(request, facts, state, effect);
    case SPILL_REQUEST_REWRITE:
        return rewrite(request, facts, state, effect);
    case SPILL_REQUEST_RECOUNT:
        return recount(request, facts, state);
    case SPILL_REQUEST_EMPTY_PAGE:
        return empty_page(request, facts, state, effect);
    case SPILL_REQUEST_UPDATE_FIELDS:
        return update_fields(request, facts, state);
    case SPILL_REQUEST_FORGET: /* the store removes the entries, which are not in the state */
        return state->present ? SPILL_DONE : SPILL_REFUSED_GUARD;
    case SPILL_REQUEST_DROP_HEAD:
        return drop_head(request, state, effect);
    case SPILL_REQUEST_DROP_PAGE:
        return drop_page(request, facts, state, effect);
    case SPILL_REQUEST_ADOPT:
        return adopt(request, facts, state, effect);
    case SPILL_REQUEST_ADOPT_SPLIT:
        return adopt_split(request, facts, state, effect);
    case SPILL_REQUEST_UNMANAGE:
        return unmanage(request, facts, state, effect);
    case SPILL_REQUEST_READ:
    case SPILL_REQUEST_KIND_COUNT:
        break;
    }
    assert(request->kind < SPILL_REQUEST_READ); /* a READ changes nothing */
    return SPILL_REFUSED_GUARD;
}
