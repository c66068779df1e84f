#include "store/ops.h"

#include <assert.h>
#include <string.h>

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

static void reserve(spill_ops_t *ops, size_t count)
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
    reserve(ops, ops->count + 1);
    ops->entries[ops->count++] = *entry;
}

void spill_ops_copy(const spill_ops_t *from, spill_ops_t *to)
{
    to->count = from->count;
    if (from->count == 0)
        return;
    reserve(to, from->count);
    memcpy(to->entries, from->entries, from->count * sizeof *from->entries);
}

void spill_ops_release(spill_ops_t *ops)
{
    bson_free(ops->entries);
    *ops = (spill_ops_t){0};
}
