#include "store/step_best.h"

/* One more for the best: it goes, or the lowest of those that are too many. */
static void offer(spill_top_t *best, size_t most, const spill_top_entry_t *entry,
                  spill_seqs_t *dropped)
{
    const spill_top_entry_t *lowest = best->count > 0 ? &best->at[best->count - 1] : NULL;
    if (lowest && best->count >= most) {
        bool below = spill_top_compare(lowest, entry) > 0;
        spill_seqs_insert(dropped, below ? entry->seq : lowest->seq);
        if (below)
            return;
        best->count--;
    }
    spill_top_add(best, most, entry);
}

bool spill_step_knows_all(const spill_facts_t *facts, const spill_state_t *state)
{
    return (facts->journal ? (int64_t)facts->journal->count : 0) == state->live;
}

int64_t spill_step_keeps_best(const spill_request_t *request, const spill_facts_t *facts,
                              int64_t end, spill_state_t *state)
{
    spill_top_t best = {0};
    int64_t crowded = 0;
    size_t most = (size_t)request->limits.slots_max;
    for (size_t i = 0; facts->journal && i < facts->journal->count; i++)
        offer(&best, most, &facts->journal->at[i], &state->gone);
    for (size_t i = 0; i < request->element_count; i++) {
        spill_top_entry_t entry =
            spill_top_entry_of(request->definition, end + (int64_t)i, &request->elements[i]);
        offer(&best, most, &entry, &state->gone);
    }
    state->live_bytes = 0;
    for (size_t i = 0; i < best.count; i++)
        state->live_bytes += best.at[i].size_bytes;
    while (best.count > 0) {
        int64_t bytes = spill_state_document_bytes(request->definition, request->owner, true, state,
                                                   (int64_t)best.count, state->live_bytes);
        if (bytes <= (best.count > 1 ? request->limits.bytes_max : SPILL_DOCUMENT_BYTES_MAX))
            break;
        best.count--;
        state->live_bytes -= best.at[best.count].size_bytes;
        spill_seqs_insert(&state->gone, best.at[best.count].seq);
        crowded += best.at[best.count].seq < end;
    }
    state->live = (int64_t)best.count;
    spill_top_release(&best);
    return crowded;
}
