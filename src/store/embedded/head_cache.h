/*
 * Records of heads that the combiner's leader has read or written last, so that an append to one of
 * them need not ask the engine. Only the leader touches it, and only the leader writes heads, so it
 * is never out of date; but what a failed write would have made of them is in it, and so it is
 * emptied then.
 */
#ifndef SPILL_STORE_EMBEDDED_HEAD_CACHE_H
#define SPILL_STORE_EMBEDDED_HEAD_CACHE_H

#include "util/buffer.h"

#include <stdbool.h>

#define SPILL_HEAD_CACHE_SLOTS 2048
#define SPILL_HEAD_CACHE_KEY_MAX 80 /* longer ones are not kept */
#define SPILL_HEAD_CACHE_VALUE_MAX 128

typedef struct spill_head_slot {
    uint8_t key_bytes; /* 0: nothing is here */
    uint8_t value_bytes;
    uint8_t key[SPILL_HEAD_CACHE_KEY_MAX];
    uint8_t value[SPILL_HEAD_CACHE_VALUE_MAX];
} spill_head_slot_t;

/* A key has one slot that it can be in. */
typedef struct spill_head_cache {
    spill_head_slot_t *slots; /* NULL until the first is kept */
} spill_head_cache_t;

/* NULL when it is not there; else valid until the next call. */
const spill_head_slot_t *spill_head_cache_find(const spill_head_cache_t *cache, const uint8_t *key,
                                               size_t key_bytes);
/* Keep the record, or forget what there was when it is too long or `value` is NULL. */
void spill_head_cache_put(spill_head_cache_t *cache, const uint8_t *key, size_t key_bytes,
                          const uint8_t *value, size_t value_bytes);
void spill_head_cache_clear(spill_head_cache_t *cache);

#endif
