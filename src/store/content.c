#include "store/content.h"

#include <assert.h>
#include <string.h>

static void reserve_run(spill_run_t *run, size_t count)
{
    if (count <= run->capacity)
        return;
    size_t capacity = run->capacity < 8 ? 8 : run->capacity * 2;
    if (capacity < count)
        capacity = count;
    run->entries = bson_realloc(run->entries, capacity * sizeof *run->entries);
    run->capacity = capacity;
}

int64_t spill_run_next_limit(int64_t limit, int64_t most, int64_t bytes_most, int64_t count,
                             int64_t bytes)
{
    int64_t grown = limit < most / 8 ? limit * 8 : most;
    int64_t fitting = count > 0 ? bytes_most / (bytes / count + 1) + 1 : grown;
    return fitting < grown ? fitting : grown;
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
    if (count <= ops->capacity)
        return;
    size_t capacity = ops->capacity < 4 ? 4 : ops->capacity * 2;
    if (capacity < count)
        capacity = count;
    ops->entries = bson_realloc(ops->entries, capacity * sizeof *ops->entries);
    ops->capacity = capacity;
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

bool spill_limits_allow(const spill_limits_t *limits, int64_t slots, int64_t live, int64_t bytes)
{
    int64_t bytes_max = live == 1 ? SPILL_DOCUMENT_BYTES_MAX : limits->bytes_max;
    return slots <= limits->slots_max && bytes <= bytes_max;
}
