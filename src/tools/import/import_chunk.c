#include "tools/import/import_chunk.h"

#include "bson/key.h"
#include "util/buffer.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_SIZE_MIN 1024
#define KEEP_BYTES_MAX (6 * 1024 * 1024)

/* What a document needs: for itself, for each element and for each operation in its window. */
#define PAGE_OVERHEAD_BYTES 4096
#define ELEMENT_OVERHEAD_BYTES 16
#define OP_OVERHEAD_BYTES 192

void spill_chunk_release(spill_chunk_t *chunk)
{
    bson_free(chunk->records);
    bson_free(chunk->updates);
    bson_free(chunk->owners);
    bson_free(chunk->by_key);
    bson_free(chunk->bases);
    bson_free(chunk->table);
    spill_buffer_release(&chunk->documents);
    spill_buffer_release(&chunk->keys);
    spill_buffer_release(&chunk->ids);
    spill_buffer_release(&chunk->bad);
    *chunk = (spill_chunk_t){0};
}

void spill_chunk_clear(spill_chunk_t *chunk)
{
    if (chunk->documents.capacity > KEEP_BYTES_MAX)
        spill_buffer_release(&chunk->documents);
    spill_buffer_clear(&chunk->documents);
    spill_buffer_clear(&chunk->keys);
    spill_buffer_clear(&chunk->ids);
    spill_buffer_clear(&chunk->bad);
    if (chunk->table)
        memset(chunk->table, 0xFF, chunk->table_size * sizeof *chunk->table);
    spill_chunk_t kept = *chunk;
    *chunk = (spill_chunk_t){
        .records = kept.records,
        .record_capacity = kept.record_capacity,
        .updates = kept.updates,
        .update_capacity = kept.update_capacity,
        .owners = kept.owners,
        .owner_capacity = kept.owner_capacity,
        .by_key = kept.by_key,
        .by_key_capacity = kept.by_key_capacity,
        .bases = kept.bases,
        .base_capacity = kept.base_capacity,
        .table = kept.table,
        .table_size = kept.table_size,
        .documents = kept.documents,
        .keys = kept.keys,
        .ids = kept.ids,
        .bad = kept.bad,
    };
}

/* ---- owners ---------------------------------------------------------------------------------- */

static void table_insert(spill_chunk_t *chunk, uint32_t owner)
{
    size_t mask = chunk->table_size - 1;
    size_t at = chunk->owners[owner].hash & mask;
    while (chunk->table[at] != SPILL_CHUNK_NONE)
        at = (at + 1) & mask;
    chunk->table[at] = owner;
}

static void table_grow(spill_chunk_t *chunk)
{
    chunk->table_size = chunk->table_size ? chunk->table_size * 2 : TABLE_SIZE_MIN;
    chunk->table = bson_realloc(chunk->table, chunk->table_size * sizeof *chunk->table);
    memset(chunk->table, 0xFF, chunk->table_size * sizeof *chunk->table);
    for (size_t i = 0; i < chunk->owner_count; i++)
        table_insert(chunk, (uint32_t)i);
}

static uint32_t table_find(const spill_chunk_t *chunk, uint64_t hash, const uint8_t *key,
                           size_t key_bytes)
{
    size_t mask = chunk->table_size - 1;
    for (size_t at = hash & mask; chunk->table[at] != SPILL_CHUNK_NONE; at = (at + 1) & mask) {
        const spill_chunk_owner_t *owner = &chunk->owners[chunk->table[at]];
        if (owner->hash == hash && owner->key_bytes == key_bytes &&
            memcmp(chunk->keys.data + owner->key_offset, key, key_bytes) == 0)
            return chunk->table[at];
    }
    return SPILL_CHUNK_NONE;
}

/* Find the owner of the key at key_offset, the last one in `keys`. Remove a known key there. */
static uint32_t find_owner(spill_chunk_t *chunk, size_t key_offset, bool *made)
{
    if (chunk->owner_count * 2 >= chunk->table_size)
        table_grow(chunk);
    const uint8_t *key = chunk->keys.data + key_offset;
    size_t key_bytes = chunk->keys.size - key_offset;
    uint64_t hash = spill_hash(key, key_bytes);
    uint32_t found = table_find(chunk, hash, key, key_bytes);
    *made = found == SPILL_CHUNK_NONE;
    if (!*made) {
        chunk->keys.size = key_offset;
        return found;
    }
    if (chunk->owner_count == chunk->owner_capacity) {
        chunk->owner_capacity = chunk->owner_capacity ? chunk->owner_capacity * 2 : 256;
        chunk->owners = bson_realloc(chunk->owners, chunk->owner_capacity * sizeof *chunk->owners);
    }
    chunk->owners[chunk->owner_count] = (spill_chunk_owner_t){
        .hash = hash,
        .key_offset = key_offset,
        .key_bytes = key_bytes,
        .first = SPILL_CHUNK_NONE,
        .last = SPILL_CHUNK_NONE,
        .parts = 1,
    };
    table_insert(chunk, (uint32_t)chunk->owner_count);
    return (uint32_t)chunk->owner_count++;
}

/* Count another part of the owner's batch if this record does not fit the current one. */
static void count_parts(spill_chunk_owner_t *owner, const spill_chunk_bounds_t *bounds,
                        uint32_t size_bytes)
{
    int64_t bytes = (int64_t)size_bytes + ELEMENT_OVERHEAD_BYTES;
    int64_t room = bounds->part_bytes_max - PAGE_OVERHEAD_BYTES - 2 * (int64_t)owner->value_bytes -
                   bounds->op_window * OP_OVERHEAD_BYTES;
    if (owner->part_count > 0 &&
        (owner->part_count == bounds->page_capacity || owner->part_bytes + bytes > room)) {
        owner->parts++;
        owner->part_count = 0;
        owner->part_bytes = 0;
    }
    owner->part_count++;
    owner->part_bytes += bytes;
}

/* ---- records --------------------------------------------------------------------------------- */

static uint32_t add_record(spill_chunk_t *chunk, const spill_input_item_t *item, const void *id,
                           size_t id_bytes)
{
    if (chunk->record_count == chunk->record_capacity) {
        chunk->record_capacity = chunk->record_capacity ? chunk->record_capacity * 2 : 1024;
        chunk->records =
            bson_realloc(chunk->records, chunk->record_capacity * sizeof *chunk->records);
    }
    chunk->records[chunk->record_count] = (spill_chunk_record_t){
        .offset = chunk->documents.size,
        .size_bytes = item->element.size_bytes,
        .type = item->element.type,
        .seq = item->seq,
        .next = SPILL_CHUNK_NONE,
        .id_offset = chunk->ids.size,
        .id_bytes = (uint32_t)id_bytes,
    };
    spill_buffer_append(&chunk->documents, item->element.data, item->element.size_bytes);
    spill_buffer_append(&chunk->ids, id, id_bytes);
    return (uint32_t)chunk->record_count++;
}

spill_code_t spill_chunk_add(spill_chunk_t *chunk, const spill_chunk_bounds_t *bounds,
                             const spill_input_item_t *given, const void *id, size_t id_bytes,
                             spill_error_t *error)
{
    spill_input_item_t item = *given;
    const spill_value_t *owner = &item.owner;
    size_t key_offset = chunk->keys.size;
    if (spill_owner_key(owner, &chunk->keys, error) != SPILL_OK) {
        chunk->keys.size = key_offset;
        return error->code = SPILL_PARSE;
    }
    bool made = false;
    uint32_t index = find_owner(chunk, key_offset, &made);
    spill_chunk_owner_t *entry = &chunk->owners[index];
    bson_t kept;
    if (entry->last != SPILL_CHUNK_NONE && item.seq >= 0 &&
        item.seq <= chunk->records[entry->last].seq)
        return spill_fail(error, SPILL_PARSE,
                          "number %" PRId64 " follows number %" PRId64
                          " of the same owner: in an export the numbers of an owner rise",
                          item.seq, chunk->records[entry->last].seq);
    if (made) {
        const uint8_t *from = item.element.data;
        bool within =
            !bounds->without && owner->data >= from && owner->data < from + item.element.size_bytes;
        entry->value_offset = chunk->documents.size + (within ? (size_t)(owner->data - from) : 0);
        if (!within)
            spill_buffer_append(&chunk->documents, owner->data, owner->size_bytes);
        entry->value_bytes = owner->size_bytes;
        entry->value_type = owner->type;
    }
    if (bounds->without) {
        bson_t whole;
        bson_init_static(&whole, item.element.data, item.element.size_bytes);
        bson_init(&kept);
        bson_copy_to_excluding_noinit(&whole, &kept, bounds->without, NULL);
        item.element = spill_value_from_document(&kept);
    }
    uint32_t record = add_record(chunk, &item, id, id_bytes);
    if (entry->last == SPILL_CHUNK_NONE)
        entry->first = record;
    else
        chunk->records[entry->last].next = record;
    entry->last = record;
    entry->count++;
    count_parts(entry, bounds, item.element.size_bytes);
    if (bounds->without)
        bson_destroy(&kept);
    int64_t operations = id_bytes > 0 ? entry->count : entry->parts;
    chunk->full = chunk->full || chunk->record_count >= bounds->records_max ||
                  chunk->documents.size >= bounds->bytes_max || operations >= bounds->parts_max;
    return SPILL_OK;
}

void spill_chunk_add_update(spill_chunk_t *chunk, const spill_chunk_bounds_t *bounds,
                            const spill_value_t *owner, const bson_t *update)
{
    if (chunk->update_count == chunk->update_capacity) {
        chunk->update_capacity = chunk->update_capacity ? 2 * chunk->update_capacity : 64;
        chunk->updates =
            bson_realloc(chunk->updates, chunk->update_capacity * sizeof *chunk->updates);
    }
    chunk->updates[chunk->update_count++] =
        (spill_chunk_update_t){.owner_offset = chunk->documents.size,
                               .owner_bytes = owner->size_bytes,
                               .owner_type = owner->type,
                               .update_offset = chunk->documents.size + owner->size_bytes,
                               .update_bytes = update->len};
    spill_buffer_append(&chunk->documents, owner->data, owner->size_bytes);
    spill_buffer_append(&chunk->documents, bson_get_data(update), update->len);
    chunk->full = chunk->full || chunk->update_count >= bounds->records_max ||
                  chunk->documents.size >= bounds->bytes_max;
}

void spill_chunk_add_bad(spill_chunk_t *chunk, const char *message)
{
    spill_buffer_append(&chunk->bad, message, strlen(message) + 1);
    chunk->skipped++;
}

static int compare_owners(const void *left, const void *right, void *context)
{
    const spill_chunk_t *chunk = context;
    const spill_chunk_owner_t *a = &chunk->owners[*(const uint32_t *)left];
    const spill_chunk_owner_t *b = &chunk->owners[*(const uint32_t *)right];
    size_t common = a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
    int order = memcmp(chunk->keys.data + a->key_offset, chunk->keys.data + b->key_offset, common);
    return order != 0 ? order : (a->key_bytes > b->key_bytes) - (a->key_bytes < b->key_bytes);
}

void spill_chunk_sort(spill_chunk_t *chunk)
{
    if (chunk->by_key_capacity < chunk->owner_count) {
        chunk->by_key_capacity = chunk->owner_count;
        chunk->by_key = bson_realloc(chunk->by_key, chunk->by_key_capacity * sizeof *chunk->by_key);
    }
    for (size_t i = 0; i < chunk->owner_count; i++)
        chunk->by_key[i] = (uint32_t)i;
    if (chunk->owner_count > 0)
        qsort_r(chunk->by_key, chunk->owner_count, sizeof *chunk->by_key, compare_owners, chunk);
}

spill_value_t spill_chunk_owner_value(const spill_chunk_t *chunk, const spill_chunk_owner_t *owner)
{
    return (spill_value_t){chunk->documents.data + owner->value_offset, owner->value_bytes,
                           owner->value_type};
}

spill_value_t spill_chunk_element(const spill_chunk_t *chunk, const spill_chunk_record_t *record)
{
    return (spill_value_t){chunk->documents.data + record->offset, record->size_bytes,
                           record->type};
}
