/* A batch: changes that an engine writes in one atomic step. */
#include "store/embedded/kv.h"

#include <bson/bson.h>
#include <string.h>

/* A batch keeps at most this much memory when it is cleared. */
enum { KEPT_BYTES_MAX = 4 * 1024 * 1024 };

static uint64_t tag_of(const uint8_t *key, size_t key_bytes)
{
    uint64_t tag = 0;
    size_t tail = key_bytes < sizeof tag ? key_bytes : sizeof tag;
    memcpy(&tag, key + key_bytes - tail, tail);
    return tag;
}

static spill_change_t *add(spill_batch_t *batch, spill_change_kind_t kind, const uint8_t *key,
                           size_t key_bytes, size_t value_bytes)
{
    if (batch->count == batch->capacity) {
        batch->capacity = batch->capacity == 0 ? 16 : batch->capacity * 2;
        batch->changes = bson_realloc(batch->changes, batch->capacity * sizeof *batch->changes);
    }
    spill_buffer_reserve(&batch->bytes, key_bytes + value_bytes);
    spill_change_t *change = &batch->changes[batch->count++];
    *change = (spill_change_t){
        .kind = kind,
        .key_bytes = (uint32_t)key_bytes,
        .value_bytes = (uint32_t)value_bytes,
        .key = batch->bytes.size,
        .value = batch->bytes.size + key_bytes,
        .tag = tag_of(key, key_bytes),
    };
    spill_buffer_append(&batch->bytes, key, key_bytes);
    batch->bytes.size += value_bytes;
    return change;
}

uint8_t *spill_batch_put_place(spill_batch_t *batch, const uint8_t *key, size_t key_bytes,
                               size_t value_bytes)
{
    const spill_change_t *change = add(batch, SPILL_CHANGE_PUT, key, key_bytes, value_bytes);
    return batch->bytes.data + change->value;
}

void spill_batch_put(spill_batch_t *batch, const uint8_t *key, size_t key_bytes, const void *value,
                     size_t value_bytes)
{
    uint8_t *place = spill_batch_put_place(batch, key, key_bytes, value_bytes);
    if (value_bytes > 0)
        memcpy(place, value, value_bytes);
}

spill_buffer_t *spill_batch_put_open(spill_batch_t *batch, const uint8_t *key, size_t key_bytes)
{
    add(batch, SPILL_CHANGE_PUT, key, key_bytes, 0);
    return &batch->bytes;
}

void spill_batch_put_close(spill_batch_t *batch)
{
    spill_change_t *change = &batch->changes[batch->count - 1];
    change->value_bytes = (uint32_t)(batch->bytes.size - change->value);
}

void spill_batch_delete(spill_batch_t *batch, const uint8_t *key, size_t key_bytes)
{
    add(batch, SPILL_CHANGE_DELETE, key, key_bytes, 0);
}

void spill_batch_delete_range(spill_batch_t *batch, const uint8_t *from, size_t from_bytes,
                              const uint8_t *to, size_t to_bytes)
{
    const spill_change_t *change =
        add(batch, SPILL_CHANGE_DELETE_RANGE, from, from_bytes, to_bytes);
    memcpy(batch->bytes.data + change->value, to, to_bytes);
}

const spill_change_t *spill_batch_find(const spill_batch_t *batch, const uint8_t *key,
                                       size_t key_bytes)
{
    uint64_t tag = tag_of(key, key_bytes);
    for (size_t i = batch->count; i > 0; i--) {
        const spill_change_t *change = &batch->changes[i - 1];
        if (change->tag == tag && change->key_bytes == key_bytes &&
            change->kind != SPILL_CHANGE_DELETE_RANGE &&
            memcmp(spill_batch_key(batch, change), key, key_bytes) == 0)
            return change;
    }
    return NULL;
}

const uint8_t *spill_batch_key(const spill_batch_t *batch, const spill_change_t *change)
{
    return batch->bytes.data + change->key;
}

const uint8_t *spill_batch_value(const spill_batch_t *batch, const spill_change_t *change)
{
    return batch->bytes.data + change->value;
}

spill_batch_savepoint_t spill_batch_savepoint(const spill_batch_t *batch)
{
    return (spill_batch_savepoint_t){.count = batch->count, .bytes = batch->bytes.size};
}

void spill_batch_rewind(spill_batch_t *batch, spill_batch_savepoint_t mark)
{
    batch->count = mark.count;
    batch->bytes.size = mark.bytes;
}

void spill_batch_clear(spill_batch_t *batch)
{
    batch->count = 0;
    spill_buffer_clear(&batch->bytes);
    if (batch->bytes.capacity > KEPT_BYTES_MAX)
        spill_buffer_release(&batch->bytes);
}

void spill_batch_release(spill_batch_t *batch)
{
    bson_free(batch->changes);
    spill_buffer_release(&batch->bytes);
    *batch = (spill_batch_t)SPILL_BATCH_INIT;
}
