#include "store/step_top_n.h"

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
        spill_top_entry_t entry =
            spill_top_entry_of(request->definition, end + (int64_t)i, &request->append.elements[i]);
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
        crowded_out += top_n.at[top_n.count].seq < end;
    }
    state->live = (int64_t)top_n.count;
    spill_top_release(&top_n);
    return crowded_out;
}
