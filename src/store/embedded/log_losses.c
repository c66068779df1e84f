#include "store/embedded/log_losses.h"

#include "bson/key.h"
#include "store/embedded/keys.h"
#include "util/buffer.h"

#include <bson/bson.h>
#include <string.h>

enum { ID_BYTES = 4, SLOTS_FIRST = 256 };

static uint64_t hash_owner(const spill_log_losses_t *losses, const spill_log_owner_t *owner)
{
    return spill_hash(losses->bytes.data + owner->key, owner->key_bytes) ^
           (owner->array_id * UINT64_C(0x9e3779b97f4a7c15));
}

static void insert(spill_log_losses_t *losses, size_t index)
{
    size_t slot = (size_t)hash_owner(losses, &losses->owners[index]) % losses->slot_count;
    while (losses->slots[slot] != 0)
        slot = (slot + 1) % losses->slot_count;
    losses->slots[slot] = (uint32_t)index + 1;
}

static void grow(spill_log_losses_t *losses)
{
    losses->slot_count = losses->slot_count == 0 ? SLOTS_FIRST : losses->slot_count * 2;
    bson_free(losses->slots);
    losses->slots = bson_malloc0(losses->slot_count * sizeof *losses->slots);
    for (size_t i = 0; i < losses->count; i++)
        insert(losses, i);
}

/* Find or add an owner. Its key is at the end of the bytes; remove it there if it is known. */
static spill_log_owner_t *find_owner(spill_log_losses_t *losses, const spill_log_owner_t *wanted)
{
    if (losses->count * 2 >= losses->slot_count)
        grow(losses);
    size_t slot = (size_t)hash_owner(losses, wanted) % losses->slot_count;
    for (; losses->slots[slot] != 0; slot = (slot + 1) % losses->slot_count) {
        spill_log_owner_t *owner = &losses->owners[losses->slots[slot] - 1];
        if (owner->array_id == wanted->array_id && owner->key_bytes == wanted->key_bytes &&
            memcmp(losses->bytes.data + owner->key, losses->bytes.data + wanted->key,
                   wanted->key_bytes) == 0) {
            losses->bytes.size = wanted->key;
            return owner;
        }
    }
    if (losses->count == losses->capacity) {
        losses->capacity = losses->capacity == 0 ? SLOTS_FIRST : losses->capacity * 2;
        losses->owners = bson_realloc(losses->owners, losses->capacity * sizeof *losses->owners);
    }
    losses->owners[losses->count] = *wanted;
    losses->slots[slot] = (uint32_t)losses->count + 1;
    return &losses->owners[losses->count++];
}

/* The owner in a record's key, and the record's kind; NULL: the record is of no array. */
static spill_log_owner_t *owner_of(spill_log_losses_t *losses, const uint8_t *key, size_t bytes,
                                   uint8_t *kind)
{
    if (bytes < ID_BYTES)
        return NULL;
    uint32_t id = (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3];
    size_t length = spill_owner_key_length(key + ID_BYTES, bytes - ID_BYTES);
    if (id == 0 || length == 0 || ID_BYTES + length == bytes)
        return NULL; /* system records and other fields */
    *kind = key[ID_BYTES + length];
    spill_log_owner_t wanted = {
        .array_id = id, .key = losses->bytes.size, .key_bytes = length, .elements = 0};
    spill_buffer_append(&losses->bytes, key + ID_BYTES, length);
    return find_owner(losses, &wanted);
}

static void add_change(spill_log_losses_t *losses, const spill_log_change_t *change)
{
    uint8_t kind = 0;
    spill_log_owner_t *owner = owner_of(losses, change->key, change->key_bytes, &kind);
    if (!owner)
        return;
    bool element = kind == SPILL_RECORD_ELEMENT;
    if (change->kind == SPILL_CHANGE_PUT)
        owner->elements += element;
    else
        owner->deleted += element;
}

void spill_log_losses_add(spill_log_losses_t *losses, const uint8_t *record, size_t bytes)
{
    spill_log_batch_t batch;
    spill_log_change_t change;
    losses->records++;
    if (!spill_log_batch_open(&batch, record, bytes)) {
        losses->bad++;
        return;
    }
    while (spill_log_batch_next(&batch, &change))
        add_change(losses, &change);
    losses->bad += batch.at.bad != 0;
}

void spill_log_losses_release(spill_log_losses_t *losses)
{
    bson_free(losses->owners);
    bson_free(losses->slots);
    spill_buffer_release(&losses->bytes);
    *losses = (spill_log_losses_t)SPILL_LOG_LOSSES_INIT;
}
