/* A document in memory: its state, its elements, its window of operations, and its limits. */
#include "store/state.h"

#include "definition/schema.h"
#include "store/content.h"

#include <assert.h>
#include <bson/bson.h>
#include <string.h>

/* Make room for `count` items in an array that has room for *capacity. */
static void *reserve(void *items, size_t item_bytes, size_t count, size_t *capacity)
{
    if (count <= *capacity)
        return items;
    size_t doubled = *capacity < 4 ? 4 : *capacity * 2;
    *capacity = doubled < count ? count : doubled;
    return bson_realloc(items, *capacity * item_bytes);
}

/* ---- sets of sequence numbers ---------------------------------------------------------------- */

static void reserve_seqs(spill_seqs_t *seqs, size_t count)
{
    seqs->runs = reserve(seqs->runs, sizeof *seqs->runs, count, &seqs->capacity);
}

/* The first run that ends after `seq`. */
static size_t seek_run(const spill_seqs_t *seqs, int64_t seq)
{
    size_t low = 0, high = seqs->run_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (seqs->runs[middle].end <= seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Update `before` of the runs from `from` on, and the total. */
static void recount(spill_seqs_t *seqs, size_t from)
{
    size_t before = 0;
    if (from > 0)
        before = seqs->runs[from - 1].before +
                 (size_t)(seqs->runs[from - 1].end - seqs->runs[from - 1].first);
    for (size_t i = from; i < seqs->run_count; i++) {
        seqs->runs[i].before = before;
        before += (size_t)(seqs->runs[i].end - seqs->runs[i].first);
    }
    seqs->count = before;
}

size_t spill_seqs_count_below(const spill_seqs_t *seqs, int64_t seq)
{
    size_t index = seek_run(seqs, seq);
    if (index == seqs->run_count)
        return seqs->count;
    const spill_seq_run_t *run = &seqs->runs[index];
    return run->before + (size_t)(seq > run->first ? seq - run->first : 0);
}

bool spill_seqs_contains(const spill_seqs_t *seqs, int64_t seq)
{
    size_t index = seek_run(seqs, seq);
    return index < seqs->run_count && seqs->runs[index].first <= seq;
}

bool spill_seqs_equal(const spill_seqs_t *left, const spill_seqs_t *right)
{
    bool equal = left->run_count == right->run_count;
    for (size_t i = 0; equal && i < left->run_count; i++)
        equal =
            left->runs[i].first == right->runs[i].first && left->runs[i].end == right->runs[i].end;
    return equal;
}

void spill_seqs_insert_run(spill_seqs_t *seqs, int64_t first, int64_t end)
{
    if (first >= end)
        return;
    size_t from = seek_run(seqs, first - 1),
           to = from; /* [from, to): runs that overlap it or are adjacent */
    while (to < seqs->run_count && seqs->runs[to].first <= end)
        to++;
    spill_seq_run_t whole = {.first = first, .end = end};
    if (from < to && seqs->runs[from].first < first)
        whole.first = seqs->runs[from].first;
    if (from < to && seqs->runs[to - 1].end > end)
        whole.end = seqs->runs[to - 1].end;
    if (from == to)
        reserve_seqs(seqs, seqs->run_count + 1);
    memmove(seqs->runs + from + 1, seqs->runs + to, (seqs->run_count - to) * sizeof *seqs->runs);
    seqs->run_count = seqs->run_count - to + from + 1;
    seqs->runs[from] = whole;
    recount(seqs, from);
}

void spill_seqs_insert(spill_seqs_t *seqs, int64_t seq)
{
    spill_seqs_insert_run(seqs, seq, seq + 1);
}

int64_t spill_seqs_pass(const spill_seqs_t *seqs, int64_t seq)
{
    size_t index = seek_run(seqs, seq);
    bool in = index < seqs->run_count && seqs->runs[index].first <= seq;
    return in ? seqs->runs[index].end : seq;
}

int64_t spill_seqs_pass_down(const spill_seqs_t *seqs, int64_t seq)
{
    if (seqs->run_count == 0)
        return seq;
    size_t index = seek_run(seqs, seq);
    bool in = index < seqs->run_count && seqs->runs[index].first <= seq;
    return in ? seqs->runs[index].first - 1 : seq;
}

int64_t spill_seqs_absent(const spill_seqs_t *seqs, int64_t from, int64_t passed)
{
    int64_t seq = from + passed;
    for (size_t index = seek_run(seqs, from); index < seqs->run_count; index++) {
        const spill_seq_run_t *run = &seqs->runs[index];
        if (run->first > seq)
            break;
        seq += run->end - (run->first > from ? run->first : from);
    }
    return seq;
}

void spill_seqs_drop_below(spill_seqs_t *seqs, int64_t seq)
{
    size_t dropped = seek_run(seqs, seq);
    bool cuts = dropped < seqs->run_count && seqs->runs[dropped].first < seq;
    if (dropped == 0 && !cuts)
        return;
    if (cuts)
        seqs->runs[dropped].first = seq;
    seqs->run_count -= dropped;
    memmove(seqs->runs, seqs->runs + dropped, seqs->run_count * sizeof *seqs->runs);
    recount(seqs, 0);
}

void spill_seqs_keep_below(spill_seqs_t *seqs, int64_t seq)
{
    size_t index = seek_run(seqs, seq);
    bool cuts = index < seqs->run_count && seqs->runs[index].first < seq;
    if (cuts)
        seqs->runs[index].end = seq;
    seqs->run_count = index + cuts;
    recount(seqs, 0);
}

void spill_seqs_clear(spill_seqs_t *seqs)
{
    seqs->run_count = 0;
    seqs->count = 0;
}

void spill_seqs_copy(const spill_seqs_t *from, spill_seqs_t *to)
{
    spill_seqs_clear(to);
    if (from->run_count == 0)
        return;
    reserve_seqs(to, from->run_count);
    memcpy(to->runs, from->runs, from->run_count * sizeof *from->runs);
    to->run_count = from->run_count;
    to->count = from->count;
}

void spill_seqs_release(spill_seqs_t *seqs)
{
    bson_free(seqs->runs);
    *seqs = (spill_seqs_t){0};
}

/* ---- the state of a document ----------------------------------------------------------------- */

int64_t spill_state_slots(const spill_state_t *state)
{
    return state->live + (int64_t)state->deleted.count;
}

int64_t spill_state_bounded(const spill_definition_t *definition, const spill_state_t *state)
{
    return spill_schema_of(definition)->is_capped ? state->live : spill_state_slots(state);
}

int64_t spill_state_end(const spill_state_t *state)
{
    return state->first + spill_state_slots(state);
}

/* A run that ends behind the last slot still does after some of its numbers are removed. */
bool spill_state_drop_strays(spill_state_t *state)
{
    size_t count = state->deleted.count;
    while (state->deleted.run_count > 0) {
        spill_seq_run_t last = state->deleted.runs[state->deleted.run_count - 1];
        if (last.end <= spill_state_end(state))
            break;
        spill_seqs_keep_below(&state->deleted, last.first);
    }
    return state->deleted.count < count;
}

int64_t spill_state_rank(const spill_state_t *state, int64_t seq)
{
    return seq - state->first - (int64_t)spill_seqs_count_below(&state->deleted, seq);
}

void spill_state_copy(const spill_state_t *from, spill_state_t *to)
{
    spill_seqs_t deleted = to->deleted;
    spill_top_t top = to->top;
    spill_buffer_t newest_ops = to->newest_ops;
    *to = *from;
    to->deleted = deleted;
    to->top = top;
    to->newest_ops = newest_ops;
    spill_buffer_clear(&to->newest_ops);
    spill_buffer_append(&to->newest_ops, from->newest_ops.data, from->newest_ops.size);
    spill_seqs_copy(&from->deleted, &to->deleted);
    spill_top_copy(&from->top, &to->top);
}

void spill_state_clear(spill_state_t *state)
{
    memset(state, 0, offsetof(spill_state_t, deleted));
    spill_seqs_clear(&state->deleted);
    spill_buffer_clear(&state->newest_ops);
    spill_top_clear(&state->top);
}

void spill_state_release(spill_state_t *state)
{
    spill_seqs_release(&state->deleted);
    spill_top_release(&state->top);
    spill_buffer_release(&state->newest_ops);
    *state = (spill_state_t){0};
}

int64_t spill_array_framing(int64_t count)
{
    int64_t bytes = 3 * count;
    for (int64_t power = 10; power < count; power *= 10)
        bytes += count - power;
    return bytes;
}

/* ---- runs of elements ------------------------------------------------------------------------ */

static void reserve_run(spill_run_t *run, size_t count)
{
    run->entries = reserve(run->entries, sizeof *run->entries, count, &run->capacity);
}

int64_t spill_run_next_limit(int64_t limit, int64_t most, int64_t bytes_most, int64_t count,
                             int64_t bytes)
{
    int64_t grown = limit < most / 8 ? limit * 8 : most;
    int64_t fitting = count > 0 ? bytes_most / (bytes / count + 1) + 1 : grown;
    return fitting < grown ? fitting : grown;
}

void spill_run_reserve(spill_run_t *run, size_t count, size_t bytes)
{
    reserve_run(run, run->count + count);
    spill_buffer_reserve(&run->arena, bytes);
}

void spill_run_add(spill_run_t *run, int64_t seq, const spill_value_t *value)
{
    reserve_run(run, run->count + 1);
    run->entries[run->count++] = (spill_run_entry_t){
        .seq = seq,
        .offset = run->arena.size,
        .size_bytes = value->size_bytes,
        .type = value->type,
    };
    if (value->size_bytes > 0)
        spill_buffer_append(&run->arena, value->data, value->size_bytes);
}

spill_element_t spill_run_element(const spill_run_t *run, size_t index)
{
    assert(index < run->count);
    const spill_run_entry_t *entry = &run->entries[index];
    return (spill_element_t){
        .seq = entry->seq,
        .value =
            {
                .data = entry->size_bytes > 0 ? run->arena.data + entry->offset : NULL,
                .size_bytes = entry->size_bytes,
                .type = entry->type,
            },
    };
}

void spill_run_add_from(const spill_run_t *from, int64_t watermark, spill_run_t *run)
{
    for (size_t i = 0; i < from->count; i++) {
        spill_element_t element = spill_run_element(from, i);
        if (element.seq >= watermark)
            spill_run_add(run, element.seq, &element.value);
    }
}

bool spill_run_begins_with(const spill_run_t *run, const spill_run_t *first)
{
    bool same = first->count <= run->count;
    for (size_t i = 0; same && i < first->count; i++) {
        spill_element_t left = spill_run_element(run, i), right = spill_run_element(first, i);
        same = spill_value_equal(&left.value, &right.value);
    }
    return same;
}

int64_t spill_run_bytes(const spill_run_t *run)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < run->count; i++)
        bytes += run->entries[i].size_bytes;
    return bytes;
}

void spill_run_copy(const spill_run_t *from, spill_run_t *to)
{
    spill_run_clear(to);
    if (from->count == 0)
        return;
    reserve_run(to, from->count);
    memcpy(to->entries, from->entries, from->count * sizeof *from->entries);
    to->count = from->count;
    if (from->arena.size > 0)
        spill_buffer_append(&to->arena, from->arena.data, from->arena.size);
}

void spill_run_clear(spill_run_t *run)
{
    run->count = 0;
    spill_buffer_clear(&run->arena);
}

void spill_run_release(spill_run_t *run)
{
    bson_free(run->entries);
    spill_buffer_release(&run->arena);
    *run = (spill_run_t){0};
}

/* ---- operations ------------------------------------------------------------------------------ */

bool spill_op_entry_is(const spill_op_entry_t *entry, const void *id, size_t id_bytes)
{
    return entry->id_bytes == id_bytes && memcmp(entry->id, id, id_bytes) == 0;
}

const spill_op_entry_t *spill_ops_find(const spill_ops_t *ops, const void *id, size_t id_bytes)
{
    for (size_t i = ops->count; i > 0; i--) {
        const spill_op_entry_t *entry = &ops->entries[i - 1];
        if (spill_op_entry_is(entry, id, id_bytes))
            return entry;
    }
    return NULL;
}

static void reserve_ops(spill_ops_t *ops, size_t count)
{
    ops->entries = reserve(ops->entries, sizeof *ops->entries, count, &ops->capacity);
}

void spill_ops_push(spill_ops_t *ops, const spill_op_entry_t *entry, size_t window)
{
    assert(window > 0);
    if (ops->count >= window) {
        size_t forget = ops->count - window + 1;
        ops->count -= forget;
        memmove(ops->entries, ops->entries + forget, ops->count * sizeof *ops->entries);
    }
    reserve_ops(ops, ops->count + 1);
    ops->entries[ops->count++] = *entry;
}

void spill_ops_copy(const spill_ops_t *from, spill_ops_t *to)
{
    to->count = from->count;
    if (from->count == 0)
        return;
    reserve_ops(to, from->count);
    memcpy(to->entries, from->entries, from->count * sizeof *from->entries);
}

void spill_ops_release(spill_ops_t *ops)
{
    bson_free(ops->entries);
    *ops = (spill_ops_t){0};
}

/* ---- limits ---------------------------------------------------------------------------------- */

bool spill_limits_fit(const spill_limits_t *limits, int64_t slots, int64_t live, int64_t bytes)
{
    int64_t bytes_max = live == 1 ? SPILL_DOCUMENT_BYTES_MAX : limits->bytes_max;
    return slots <= limits->slots_max && bytes <= bytes_max;
}
