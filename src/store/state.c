#include "store/state.h"

#include <bson/bson.h>
#include <string.h>

/* ---- sets of sequence numbers ---------------------------------------------------------------- */

static void reserve(spill_seqs_t *seqs, size_t count)
{
    if (count <= seqs->capacity)
        return;
    size_t capacity = seqs->capacity < 4 ? 4 : seqs->capacity * 2;
    if (capacity < count)
        capacity = count;
    seqs->at = bson_realloc(seqs->at, capacity * sizeof *seqs->at);
    seqs->capacity = capacity;
}

size_t spill_seqs_count_below(const spill_seqs_t *seqs, int64_t seq)
{
    size_t low = 0, high = seqs->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (seqs->at[middle] < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool spill_seqs_contains(const spill_seqs_t *seqs, int64_t seq)
{
    size_t index = spill_seqs_count_below(seqs, seq);
    return index < seqs->count && seqs->at[index] == seq;
}

void spill_seqs_insert(spill_seqs_t *seqs, int64_t seq)
{
    size_t index = spill_seqs_count_below(seqs, seq);
    if (index < seqs->count && seqs->at[index] == seq)
        return;
    reserve(seqs, seqs->count + 1);
    memmove(seqs->at + index + 1, seqs->at + index, (seqs->count - index) * sizeof *seqs->at);
    seqs->at[index] = seq;
    seqs->count++;
}

void spill_seqs_drop_below(spill_seqs_t *seqs, int64_t seq)
{
    size_t dropped = spill_seqs_count_below(seqs, seq);
    if (dropped == 0)
        return;
    seqs->count -= dropped;
    memmove(seqs->at, seqs->at + dropped, seqs->count * sizeof *seqs->at);
}

void spill_seqs_keep_below(spill_seqs_t *seqs, int64_t seq)
{
    seqs->count = spill_seqs_count_below(seqs, seq);
}

void spill_seqs_copy(const spill_seqs_t *from, spill_seqs_t *to)
{
    to->count = from->count;
    if (from->count == 0)
        return;
    reserve(to, from->count);
    memcpy(to->at, from->at, from->count * sizeof *from->at);
}

void spill_seqs_release(spill_seqs_t *seqs)
{
    bson_free(seqs->at);
    *seqs = (spill_seqs_t){0};
}

/* ---- the state of a document ----------------------------------------------------------------- */

int64_t spill_state_slots(const spill_state_t *state)
{
    return state->live + (int64_t)state->gone.count;
}

int64_t spill_state_bounded(const spill_definition_t *definition, const spill_state_t *state)
{
    return definition->layout == SPILL_LAYOUT_CAPPED ? state->live : spill_state_slots(state);
}

int64_t spill_state_end(const spill_state_t *state)
{
    return state->first + spill_state_slots(state);
}

int64_t spill_state_rank(const spill_state_t *state, int64_t seq)
{
    return seq - state->first - (int64_t)spill_seqs_count_below(&state->gone, seq);
}

void spill_state_copy(const spill_state_t *from, spill_state_t *to)
{
    spill_seqs_t gone = to->gone;
    spill_top_t top = to->top;
    *to = *from;
    to->gone = gone;
    to->top = top;
    spill_seqs_copy(&from->gone, &to->gone);
    spill_top_copy(&from->top, &to->top);
}

void spill_state_clear(spill_state_t *state)
{
    spill_seqs_t gone = state->gone;
    spill_top_t top = state->top;
    gone.count = 0;
    spill_top_clear(&top);
    *state = (spill_state_t){.gone = gone, .top = top};
}

void spill_state_release(spill_state_t *state)
{
    spill_seqs_release(&state->gone);
    spill_top_release(&state->top);
    *state = (spill_state_t){0};
}
