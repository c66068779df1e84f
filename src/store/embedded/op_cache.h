/*
 * The windows of operations that the combiner's leader has searched last, as hashes of their ids.
 * An append with an operation id to one of these owners need not read the window's records, of
 * which there may be 10 000. Only the leader uses the cache and writes operations, so the cache is
 * never out of date. After a failed write it must be emptied, because it has the failed operations.
 *
 * An id that a window does not have is certainly not among its operations. An id that it has may be
 * another one with the same hash: read the operation's record.
 */
#ifndef SPILL_STORE_EMBEDDED_OP_CACHE_H
#define SPILL_STORE_EMBEDDED_OP_CACHE_H

#include "store/embedded/keys.h"

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
