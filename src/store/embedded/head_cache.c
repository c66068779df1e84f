#include "store/embedded/head_cache.h"

#include "util/hash.h"

#include <bson/bson.h>
#include <string.h>

static spill_head_slot_t *slot_of(const spill_head_cache_t *cache, const uint8_t *key,
                                  size_t key_bytes)
{
    return &cache->slots[spill_hash(key, key_bytes) % SPILL_HEAD_CACHE_SLOTS];
}

static bool holds(const spill_head_slot_t *slot, const uint8_t *key, size_t key_bytes)
{
    return slot->key_bytes == key_bytes && memcmp(slot->key, key, key_bytes) == 0;
}

const spill_head_slot_t *spill_head_cache_find(const spill_head_cache_t *cache, const uint8_t *key,
                                               size_t key_bytes)
{
    if (!cache->slots || key_bytes > SPILL_HEAD_CACHE_KEY_MAX)
        return NULL;
    const spill_head_slot_t *slot = slot_of(cache, key, key_bytes);
    return holds(slot, key, key_bytes) ? slot : NULL;
}

void spill_head_cache_put(spill_head_cache_t *cache, const uint8_t *key, size_t key_bytes,
                          const uint8_t *value, size_t value_bytes)
{
    if (key_bytes > SPILL_HEAD_CACHE_KEY_MAX)
        return;
    if (!cache->slots)
        cache->slots = bson_malloc0(SPILL_HEAD_CACHE_SLOTS * sizeof *cache->slots);
    spill_head_slot_t *slot = slot_of(cache, key, key_bytes);
    if (value && value_bytes <= SPILL_HEAD_CACHE_VALUE_MAX) {
        slot->key_bytes = (uint8_t)key_bytes;
        slot->value_bytes = (uint8_t)value_bytes;
        memcpy(slot->key, key, key_bytes);
        memcpy(slot->value, value, value_bytes);
    } else if (holds(slot, key, key_bytes)) {
        slot->key_bytes = 0;
    }
}

void spill_head_cache_clear(spill_head_cache_t *cache)
{
    bson_free(cache->slots);
    cache->slots = NULL;
}
