/* What steps do to the top of a summary, and to a capped head that keeps the top-N. */
#include "definition/schema.h"
#include "store/transition.h"

static size_t top_most(const spill_request_t *request)
{
    return (size_t)request->definition->top_count;
}

bool spill_step_affects(const spill_request_t *request, int64_t seq)
{
    return request->kind == SPILL_REQUEST_TRIM ? seq < request->change.watermark
                                               : seq == request->change.seq;
}

bool spill_step_allows_top(const spill_request_t *request, const spill_state_t *state)
{
    for (size_t i = 0; !request->change.refill && i < state->top.count; i++)
        if (spill_step_affects(request, state->top.at[i].seq))
            return false;
    return true;
}

static bool is_in_run(const spill_run_t *run, int64_t seq)
{
    for (size_t i = 0; run && i < run->count; i++)
        if (run->entries[i].seq == seq)
            return true;
    return false;
}

/*
 * After a change of the top: show its leading elements, up to the first whose value is not known.
 * Known are the values of the request (numbers from `from` on, and number `seq`), of its
 * refill_run, of the journal, and of the elements that `old` showed.
 */
static void show_known(const spill_request_t *request, const spill_facts_t *facts,
                       const spill_top_t *old, int64_t from, int64_t seq, spill_top_t *top)
{
    const spill_run_t *refill_run = spill_request_refill_run(request);
    size_t known = 0;
    for (; known < top->count; known++) {
        int64_t number = top->at[known].seq;
        if (number < from && number != seq && !is_in_run(refill_run, number) &&
            !(facts->journal && spill_top_contains(facts->journal, number)) &&
            !spill_top_shows(old, number))
            break;
    }
    spill_top_show(top, request->definition, known);
}

void spill_step_appends_to_top(const spill_request_t *request, const spill_facts_t *facts,
                               int64_t end, spill_state_t *state)
{
    spill_top_t old = {0};
    bool enters = false;
    if (!spill_schema_of(request->definition)->has_top)
        return;
    spill_top_copy(&state->top, &old);
    for (size_t i = 0; i < request->append.element_count; i++) {
        spill_top_entry_t entry = spill_top_entry_of(
            request->definition, spill_request_seq(request, end, i), &request->append.elements[i]);
        spill_top_add(&state->top, top_most(request), &entry);
    }
    for (size_t i = 0; i < state->top.count; i++)
        enters = enters || state->top.at[i].seq >= end;
    if (enters)
        show_known(request, facts, &old, end, -1, &state->top);
    spill_top_release(&old);
}

static void add_unaffected(const spill_request_t *request, const spill_top_t *from,
                           spill_top_t *top)
{
    for (size_t i = 0; i < from->count; i++)
        if (!spill_step_affects(request, from->at[i].seq))
            spill_top_add(top, top_most(request), &from->at[i]);
}

void spill_step_changes_top(const spill_request_t *request, const spill_facts_t *facts,
                            const spill_value_t *edited, spill_state_t *state)
{
    spill_top_t *top = &state->top, old = {0};
    if (!spill_schema_of(request->definition)->has_top)
        return;
    spill_top_copy(top, &old);
    if (request->change.refill) {
        if (request->kind == SPILL_REQUEST_TRIM)
            spill_top_drop_below(top, request->change.watermark);
        else
            spill_top_remove(top, request->change.seq);
        add_unaffected(request, request->change.refill, top);
        if (facts->journal)
            add_unaffected(request, facts->journal, top);
    }
    if (edited) {
        spill_top_entry_t entry =
            spill_top_entry_of(request->definition, request->change.seq, edited);
        spill_top_add(top, top_most(request), &entry);
    }
    if (request->change.refill || (edited && spill_top_contains(top, request->change.seq)))
        show_known(request, facts, &old, INT64_MAX, edited ? request->change.seq : -1, top);
    spill_top_release(&old);
}

void spill_step_replaces_top(const spill_request_t *request, spill_state_t *state)
{
    spill_top_t *top = &state->top;
    size_t known = 0;
    if (!spill_schema_of(request->definition)->has_top)
        return;
    spill_top_copy(request->recount.refill, top);
    while (known < top->count && is_in_run(request->recount.refill_run, top->at[known].seq))
        known++;
    spill_top_show(top, request->definition, known);
}

/* ---- top-N capped heads ---------------------------------------------------------------------- */

/* Add an entry. If there are already `most`, drop the lowest-ranked and add it to `dropped`. */
static void add_if_among_highest(spill_top_t *top_n, size_t most, const spill_top_entry_t *entry,
                                 spill_seqs_t *dropped)
{
    const spill_top_entry_t *lowest = top_n->count > 0 ? &top_n->at[top_n->count - 1] : NULL;
    if (lowest && top_n->count >= most) {
        bool below = spill_top_compare(lowest, entry) > 0;
        spill_seqs_insert(dropped, below ? entry->seq : lowest->seq);
        if (below)
            return;
        top_n->count--;
    }
    spill_top_add(top_n, most, entry);
}

bool spill_step_knows_all(const spill_facts_t *facts, const spill_state_t *state)
{
    return (facts->journal ? (int64_t)facts->journal->count : 0) == state->live;
}

int64_t spill_step_keeps_top_n(const spill_request_t *request, const spill_facts_t *facts,
                               int64_t end, spill_state_t *state)
{
    spill_top_t top_n = {0};
    int64_t crowded_out = 0;
    size_t most = (size_t)request->limits.slots_max;
    for (size_t i = 0; facts->journal && i < facts->journal->count; i++)
        add_if_among_highest(&top_n, most, &facts->journal->at[i], &state->deleted);
    for (size_t i = 0; i < request->append.element_count; i++) {
        spill_top_entry_t entry = spill_top_entry_of(
            request->definition, spill_request_seq(request, end, i), &request->append.elements[i]);
        add_if_among_highest(&top_n, most, &entry, &state->deleted);
    }
    state->live_bytes = 0;
    for (size_t i = 0; i < top_n.count; i++)
        state->live_bytes += top_n.at[i].size_bytes;
    while (top_n.count > 0) {
        int64_t bytes = spill_state_document_bytes(request->definition, request->owner, true, state,
                                                   (int64_t)top_n.count, state->live_bytes);
        if (bytes <= (top_n.count > 1 ? request->limits.bytes_max : SPILL_DOCUMENT_BYTES_MAX))
            break;
        top_n.count--;
        state->live_bytes -= top_n.at[top_n.count].size_bytes;
        spill_seqs_insert(&state->deleted, top_n.at[top_n.count].seq);
        crowded_out += top_n.at[top_n.count].seq < end + request->append.skip;
    }
    state->live = (int64_t)top_n.count;
    spill_top_release(&top_n);
    return crowded_out;
}
