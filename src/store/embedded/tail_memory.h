/*
 * The memory of the tail cache: one mapping, cut into segments. Each shard of the cache takes
 * segments from it when it needs them, and writes blocks into them one after the other. If it has
 * all its segments, it goes through them in turn: it frees the blocks that were not used since its
 * last visit, and moves the others together.
 *
 * So no thread calls malloc or free while it holds a shard's lock, the bound is exact, and the
 * kernel can map the memory in large pages.
 */
#ifndef SPILL_STORE_EMBEDDED_TAIL_MEMORY_H
#define SPILL_STORE_EMBEDDED_TAIL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What each block begins with. The caller clears `live` to free a block, and sets `used`. */
typedef struct spill_tail_block {
    uint32_t bytes;
    bool live;
    bool used; /* since the shard was here last */
} spill_tail_block_t;

typedef struct spill_tail_pool spill_tail_pool_t;

/* NULL: the system has no such memory. Memory that no block was written to costs nothing. */
spill_tail_pool_t *spill_tail_pool_new(size_t segment_count, size_t segment_bytes);
void spill_tail_pool_free(spill_tail_pool_t *pool);

typedef struct spill_tail_segment {
    uint8_t *start;
    size_t used_bytes;
} spill_tail_segment_t;

/* The segments of one shard. The caller locks it. */
typedef struct spill_tail_memory {
    spill_tail_pool_t *pool;
    spill_tail_segment_t *segments;
    size_t count;   /* segments taken so far */
    size_t current; /* the one to write to */
    size_t count_max;
} spill_tail_memory_t;

void spill_tail_memory_init(spill_tail_memory_t *memory, spill_tail_pool_t *pool, size_t count_max);
void spill_tail_memory_release(spill_tail_memory_t *memory);

/*
 * A live block was moved from `from` to `to`; the bytes at `from` may be overwritten. NULL: the
 * block is freed, and its bytes are still there.
 */
typedef void (*spill_tail_moved_fn)(void *context, spill_tail_block_t *from,
                                    spill_tail_block_t *to);

/* The size of a block that holds `bytes` bytes: blocks begin at cache lines of the processor. */
size_t spill_tail_block_size(size_t bytes);

/*
 * A live block of `bytes` bytes (spill_tail_block_size), which may free and move other blocks. NULL
 * if it is larger than a segment. O(segment), if blocks are not all in use.
 */
spill_tail_block_t *spill_tail_memory_take(spill_tail_memory_t *memory, size_t bytes,
                                           spill_tail_moved_fn moved, void *context);

/* Can a block of this size be taken without freeing live ones, if `live_bytes` are in use? */
bool spill_tail_memory_has_room(const spill_tail_memory_t *memory, size_t live_bytes, size_t bytes);

/* Free all blocks. */
void spill_tail_memory_clear(spill_tail_memory_t *memory);

#endif
