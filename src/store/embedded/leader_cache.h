/*
 * What the leader of the group commit has read or written last: heads and windows of operations.
 * Only the leader uses these caches and writes such records, so they are never out of date. After a
 * failed write they must be emptied, because they have the failed changes.
 */
#ifndef SPILL_STORE_EMBEDDED_LEADER_CACHE_H
#define SPILL_STORE_EMBEDDED_LEADER_CACHE_H

#include "store/embedded/embedded_codec.h"
#include "util/buffer.h"

#include <stdbool.h>

/* ---- heads ----------------------------------------------------------------------------------- */

/* Records of heads. An append to one of these heads need not read the engine. */

#define SPILL_HEAD_CACHE_SLOTS 2048
#define SPILL_HEAD_CACHE_KEY_MAX 80    /* longer keys are not cached */
#define SPILL_HEAD_CACHE_VALUE_MAX 384 /* with seven operations of 36 bytes */

typedef struct spill_head_slot {
    uint8_t key_bytes; /* 0: empty */
    uint16_t value_bytes;
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

/* ---- windows of operations ------------------------------------------------------------------- */

/*
 * Windows of operations, as hashes of their ids. An append with an operation id to one of these
 * owners need not read the window's records, of which there may be 10 000.
 *
 * An id that a window does not have is certainly not among its operations. An id that it has may be
 * another one with the same hash: read the operation's record.
 */

/* A bound of the cache's memory, besides 64 KB for its slots. */
#define SPILL_OP_CACHE_BYTES_MAX (16 * 1024 * 1024)

typedef struct spill_op_cache {
    struct spill_op_window **slots; /* NULL until the first window */
    size_t bytes;
    size_t hand; /* the slot to look at next, if the cache must release a window */
} spill_op_cache_t;

/* The operations [from, end) of one incarnation of an owner, by ordinal. */
typedef struct spill_op_window {
    int64_t incarnation;
    int64_t from;
    int64_t end;
    struct spill_op_mark *marks; /* of operation `ordinal` at ordinal % capacity */
    int64_t *newest;             /* of each hash % capacity: the newest ordinal, perhaps < from */
    int64_t capacity;            /* a power of 2, or 0 */
    size_t owner_bytes;
    uint8_t owner[]; /* the prefix of the owner's keys */
} spill_op_window_t;

/*
 * The cached window of an owner's incarnation, if it ends at `end`; else NULL. The window is valid
 * until the next call with the cache. O(1).
 */
spill_op_window_t *spill_op_cache_find(const spill_op_cache_t *cache,
                                       const spill_record_key_t *owner, int64_t incarnation,
                                       int64_t end);

/* Cache an empty window that begins and ends at `from`, in place of an older one. */
spill_op_window_t *spill_op_cache_begin(spill_op_cache_t *cache, const spill_record_key_t *owner,
                                        int64_t incarnation, int64_t from);

/* Add the next operation, and drop all but the newest `window_max`. Amortized O(1). */
void spill_op_cache_add(spill_op_cache_t *cache, spill_op_window_t *window, const void *id,
                        size_t id_bytes, int64_t window_max);

/* The newest ordinal below `below` whose id has the same hash; -1 if there is none. O(1). */
int64_t spill_op_window_search(const spill_op_window_t *window, const void *id, size_t id_bytes,
                               int64_t below);

/* Forget the owner's window. */
void spill_op_cache_forget(spill_op_cache_t *cache, const spill_record_key_t *owner);

/* Forget all windows and release the memory. */
void spill_op_cache_clear(spill_op_cache_t *cache);

#endif
