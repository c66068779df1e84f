#include "store/run.h"

#include <assert.h>
#include <string.h>

static void reserve(spill_run_t *run, size_t count)
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
    reserve(run, run->count + 1);
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
    reserve(to, from->count);
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
