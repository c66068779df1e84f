/*
 * The tail cache: the state of heads and their newest elements, in memory, for owners that were
 * read lately. A read of the newest elements of such an owner does not touch the engine. Any thread
 * reads and fills; the leader of the group commit updates. docs/internals/tail-cache.md has the
 * argument why no reader gets old data.
 *
 *   reader   spill_tail_cache_recall; if it returns NULL:
 *            spill_tail_cache_read; if it misses: read the engine, then spill_tail_cache_fill
 *   leader   spill_tail_cache_begin; write the engine; spill_tail_cache_end; acknowledge
 */
#ifndef SPILL_STORE_EMBEDDED_TAIL_CACHE_H
#define SPILL_STORE_EMBEDDED_TAIL_CACHE_H

#include "store/embedded/embedded_codec.h"
#include "store/embedded/kv.h"
#include "store/store.h"

/* Bounds of one entry. */
enum { SPILL_TAIL_ELEMENTS_MAX = 64, SPILL_TAIL_BYTES_MAX = 32 * 1024 };

typedef struct spill_tail_cache spill_tail_cache_t;

/* What a reader notes before it reads the engine. */
typedef struct spill_tail_ticket {
    bool open; /* false: a change of the owner was being written */
    uint64_t version;
} spill_tail_ticket_t;

/*
 * A cache of at most `bytes_max` bytes, besides at most 210 KiB for its locks, versions and missed
 * owners. 0: NULL, which all functions below accept as a cache that is always empty. It adds to the
 * counters tail_... of `counts`, which are borrowed.
 */
spill_tail_cache_t *spill_tail_cache_new(int64_t bytes_max, spill_counts_t *counts);
void spill_tail_cache_free(spill_tail_cache_t *cache);

/*
 * Answer the READ from the cache: set the response's state and run, and return true. Otherwise
 * leave them clear, and write the ticket for spill_tail_cache_fill. The cache answers only a READ
 * of a head that wants its state, alone or with its newest elements. O(elements).
 */
bool spill_tail_cache_read(spill_tail_cache_t *cache, const spill_record_key_t *owner,
                           const spill_request_t *request, spill_response_t *response,
                           spill_tail_ticket_t *ticket);

/*
 * Answer from the cache without a request: spill_store_ops_t.recall. The slice is the caller's.
 * NULL: the cache lacks an element of it, or does not know that. Counts hits only: a READ follows.
 */
spill_slice_t *spill_tail_cache_recall(spill_tail_cache_t *cache, const spill_recall_t *recall);

/*
 * Cache what the READ has read from the engine after it got the ticket. If a change of the owner
 * began since then, the call has no effect.
 */
void spill_tail_cache_fill(spill_tail_cache_t *cache, const spill_record_key_t *owner,
                           const spill_request_t *request, const spill_response_t *response,
                           const spill_tail_ticket_t *ticket);

/*
 * Before the leader writes the batch: stop answering for the batch's owners. After it: update their
 * entries, and answer again. `code` is the result of the write. If it failed, drop the entries;
 * after SPILL_UNKNOWN never answer for these owners again.
 */
void spill_tail_cache_begin(spill_tail_cache_t *cache, const spill_batch_t *batch);
void spill_tail_cache_end(spill_tail_cache_t *cache, const spill_batch_t *batch, spill_code_t code);

#endif
