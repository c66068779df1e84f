/*
 * The head records that the combiner's leader has read or written last. An append to one of these
 * heads need not read the engine. Only the leader uses the cache and writes heads, so the cache is
 * never out of date. After a failed write it must be emptied, because it has the failed changes.
 */
#ifndef SPILL_STORE_EMBEDDED_HEAD_CACHE_H
#define SPILL_STORE_EMBEDDED_HEAD_CACHE_H

#include "util/buffer.h"

#include <stdbool.h>

#define SPILL_HEAD_CACHE_SLOTS 2048
#define SPILL_HEAD_CACHE_KEY_MAX 80 /* longer keys are not cached */
#define SPILL_HEAD_CACHE_VALUE_MAX 128

typedef struct spill_head_slot {
    uint8_t key_bytes; /* 0: empty */
    uint8_t value_bytes;
    uint8_t key[SPILL_HEAD_CACHE_KEY_MAX];
    uint8_t value[SPILL_HEAD_CACHE_VALUE_MAX];
} spill_head_slot_t;

/* Each key has exactly one possible slot. */
typedef struct spill_head_cache {
    spill_head_slot_t *slots; /* NULL until the first put */
} spill_head_cache_t;

/* NULL if the key is not cached; else valid until the next call. */
const spill_head_slot_t *spill_head_cache_find(const spill_head_cache_t *cache, const uint8_t *key,
                                               size_t key_bytes);
/* Cache the record. If it is too long or `value` is NULL, remove the key instead. */
void spill_head_cache_put(spill_head_cache_t *cache, const uint8_t *key, size_t key_bytes,
                          const uint8_t *value, size_t value_bytes);
void spill_head_cache_clear(spill_head_cache_t *cache);

#endif
