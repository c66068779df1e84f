/* A batch: changes that an engine writes in one atomic step. */
#include "store/embedded/kv.h"

#include <bson/bson.h>
#include <string.h>

/* A batch keeps at most this much memory when it is cleared. */
enum { KEPT_BYTES_MAX = 4 * 1024 * 1024 };

/* A batch with fewer changes is searched one by one, without slots. */
enum { HASHED_MIN = 16, SLOTS_MIN = 64, SERIES_BYTES = sizeof(uint64_t) };

/* ---- hashes ---------------------------------------------------------------------------------- */

static uint32_t series_hash(const uint8_t *prefix, size_t prefix_bytes)
{
    return (uint32_t)spill_hash_quick(prefix, prefix_bytes);
}

static spill_batch_pair_t hash_of(const uint8_t *key, size_t key_bytes)
{
    uint64_t number = 0;
    size_t number_bytes = key_bytes < SERIES_BYTES ? key_bytes : SERIES_BYTES;
    size_t prefix_bytes = key_bytes - number_bytes;
    uint32_t series = series_hash(key, prefix_bytes);
    memcpy(&number, key + prefix_bytes, number_bytes);
    uint64_t hash = spill_hash_mix(spill_hash_mix(series, number), key_bytes);
    return (spill_batch_pair_t){.key = (uint32_t)hash, .series = series};
}

static spill_batch_pair_t *slot_of(const spill_batch_t *batch, uint32_t hash)
{
    return &batch->slots[hash & (batch->slot_count - 1)];
}

/* Make the change at `at` the newest one of its slots. */
static void link_change(spill_batch_t *batch, size_t at)
{
    spill_change_t *change = &batch->changes[at];
    spill_batch_pair_t *of_key = slot_of(batch, change->hash.key);
    spill_batch_pair_t *of_series = slot_of(batch, change->hash.series);
    change->older = (spill_batch_pair_t){.key = of_key->key, .series = of_series->series};
    of_key->key = of_series->series = (uint32_t)at + 1;
}

/* Remove the newest change from its slots. */
static void unlink_change(const spill_batch_t *batch, const spill_change_t *change)
{
    slot_of(batch, change->hash.key)->key = change->older.key;
    slot_of(batch, change->hash.series)->series = change->older.series;
}

/* Link all changes, with a slot for each at least. */
static void link_all(spill_batch_t *batch)
{
    batch->is_hashed = true;
    if (batch->slot_count < batch->count) {
        batch->slot_count = batch->slot_count == 0 ? SLOTS_MIN : 2 * batch->slot_count;
        bson_free(batch->slots);
        batch->slots = bson_malloc0(batch->slot_count * sizeof *batch->slots);
    }
    for (size_t i = 0; i < batch->count; i++)
        link_change(batch, i);
}

/* ---- changes --------------------------------------------------------------------------------- */

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
        .hash = hash_of(key, key_bytes),
    };
    if (batch->is_hashed && batch->count <= batch->slot_count)
        link_change(batch, batch->count - 1);
    else if (batch->count >= HASHED_MIN)
        link_all(batch);
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

/* ---- look-ups -------------------------------------------------------------------------------- */

static bool is_key(const spill_batch_t *batch, const spill_change_t *change, const uint8_t *key,
                   size_t key_bytes)
{
    return change->key_bytes == key_bytes && change->kind != SPILL_CHANGE_DELETE_RANGE &&
           memcmp(spill_batch_key(batch, change), key, key_bytes) == 0;
}

const spill_change_t *spill_batch_find(const spill_batch_t *batch, const uint8_t *key,
                                       size_t key_bytes)
{
    uint32_t hash = hash_of(key, key_bytes).key;
    size_t at = batch->is_hashed ? slot_of(batch, hash)->key : batch->count;
    while (at > 0) {
        const spill_change_t *change = &batch->changes[at - 1];
        if (change->hash.key == hash && is_key(batch, change, key, key_bytes))
            return change;
        at = batch->is_hashed ? change->older.key : at - 1;
    }
    return NULL;
}

static bool is_in_series(const spill_batch_t *batch, const spill_change_t *change,
                         const uint8_t *prefix, size_t prefix_bytes)
{
    return change->key_bytes == prefix_bytes + SERIES_BYTES &&
           change->kind != SPILL_CHANGE_DELETE_RANGE &&
           memcmp(spill_batch_key(batch, change), prefix, prefix_bytes) == 0;
}

const spill_change_t *spill_batch_find_series(const spill_batch_t *batch, const uint8_t *prefix,
                                              size_t prefix_bytes, const spill_change_t *newer)
{
    uint32_t hash = series_hash(prefix, prefix_bytes);
    size_t at = batch->is_hashed ? slot_of(batch, hash)->series : batch->count;
    if (newer)
        at = batch->is_hashed ? newer->older.series : (size_t)(newer - batch->changes);
    while (at > 0) {
        const spill_change_t *change = &batch->changes[at - 1];
        if (change->hash.series == hash && is_in_series(batch, change, prefix, prefix_bytes))
            return change;
        at = batch->is_hashed ? change->older.series : at - 1;
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
    while (batch->is_hashed && batch->count > mark.count)
        unlink_change(batch, &batch->changes[--batch->count]);
    batch->count = mark.count;
    batch->bytes.size = mark.bytes;
}

void spill_batch_clear(spill_batch_t *batch)
{
    spill_batch_rewind(batch, (spill_batch_savepoint_t){0});
    batch->is_hashed = false;
    if (batch->bytes.capacity > KEPT_BYTES_MAX)
        spill_buffer_release(&batch->bytes);
}

void spill_batch_release(spill_batch_t *batch)
{
    bson_free(batch->changes);
    bson_free(batch->slots);
    spill_buffer_release(&batch->bytes);
    *batch = (spill_batch_t)SPILL_BATCH_INIT;
}
