/* The memory of the tail cache: the mapping, its segments, and blocks in them. */
#include "store/embedded/tail_memory.h"

#include <bson/bson.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE_BYTES = 64 };

/* Large pages of the processor's tables. Smaller ones serve the first part, so that a program that
 * caches little has little memory. */
enum { LARGE_PAGE_BYTES = 2 * 1024 * 1024 };

struct spill_tail_pool {
    uint8_t *map;
    size_t map_bytes;
    uint8_t *start;
    size_t segment_bytes;
    size_t segment_count;
    _Atomic size_t taken;
};

spill_tail_pool_t *spill_tail_pool_new(size_t segment_count, size_t segment_bytes)
{
    size_t bytes = segment_count * segment_bytes;
    size_t map_bytes = bytes + LARGE_PAGE_BYTES; /* a start between two large pages */
    uint8_t *map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    spill_tail_pool_t *pool = bson_malloc0(sizeof *pool);
    pool->map = map;
    pool->map_bytes = map_bytes;
    pool->start = map + (LARGE_PAGE_BYTES - (uintptr_t)map % LARGE_PAGE_BYTES) % LARGE_PAGE_BYTES;
    pool->segment_bytes = segment_bytes;
    pool->segment_count = segment_count;
    if (bytes > LARGE_PAGE_BYTES) /* advice: without large pages reads take a little longer */
        (void)madvise(pool->start + LARGE_PAGE_BYTES, bytes - LARGE_PAGE_BYTES, MADV_HUGEPAGE);
    return pool;
}

void spill_tail_pool_free(spill_tail_pool_t *pool)
{
    if (!pool)
        return;
    munmap(pool->map, pool->map_bytes);
    bson_free(pool);
}

void spill_tail_memory_init(spill_tail_memory_t *memory, spill_tail_pool_t *pool, size_t count_max)
{
    *memory = (spill_tail_memory_t){.pool = pool,
                                    .segments = bson_malloc0(count_max * sizeof *memory->segments),
                                    .count_max = count_max};
}

void spill_tail_memory_release(spill_tail_memory_t *memory)
{
    bson_free(memory->segments);
    *memory = (spill_tail_memory_t){0};
}

size_t spill_tail_block_size(size_t bytes)
{
    return (bytes + LINE_BYTES - 1) & ~(size_t)(LINE_BYTES - 1);
}

/* Free the blocks of the segment that are not in use, and move the others to its start. */
static void compact(spill_tail_segment_t *segment, spill_tail_moved_fn moved, void *context)
{
    size_t end = 0, bytes;
    for (size_t at = 0; at < segment->used_bytes; at += bytes) {
        spill_tail_block_t *block = (spill_tail_block_t *)(void *)(segment->start + at);
        spill_tail_block_t *to = (spill_tail_block_t *)(void *)(segment->start + end);
        bytes = block->bytes;
        if (block->live && !block->used)
            moved(context, block, NULL);
        if (!block->live || !block->used)
            continue;
        block->used = false;
        if (to != block) {
            memmove(to, block, bytes);
            moved(context, block, to);
        }
        end += bytes;
    }
    segment->used_bytes = end;
}

/* Go to a new segment, or compact the one that was filled first. */
static void next_segment(spill_tail_memory_t *memory, spill_tail_moved_fn moved, void *context)
{
    spill_tail_pool_t *pool = memory->pool;
    if (memory->count < memory->count_max) {
        size_t number = atomic_fetch_add(&pool->taken, 1);
        memory->current = memory->count++;
        memory->segments[memory->current].start = pool->start + number * pool->segment_bytes;
        return;
    }
    memory->current = memory->current + 1 < memory->count ? memory->current + 1 : 0;
    compact(&memory->segments[memory->current], moved, context);
}

spill_tail_block_t *spill_tail_memory_take(spill_tail_memory_t *memory, size_t bytes,
                                           spill_tail_moved_fn moved, void *context)
{
    size_t segment_bytes = memory->pool->segment_bytes;
    if (bytes > segment_bytes)
        return NULL;
    /* In a first turn, all blocks may be in use; in the second one, none of them is. */
    while (memory->count == 0 ||
           segment_bytes - memory->segments[memory->current].used_bytes < bytes)
        next_segment(memory, moved, context);
    spill_tail_segment_t *segment = &memory->segments[memory->current];
    spill_tail_block_t *block =
        (spill_tail_block_t *)(void *)(segment->start + segment->used_bytes);
    segment->used_bytes += bytes;
    *block = (spill_tail_block_t){.bytes = (uint32_t)bytes, .live = true};
    return block;
}

bool spill_tail_memory_has_room(const spill_tail_memory_t *memory, size_t live_bytes, size_t bytes)
{
    return memory->count < memory->count_max ||
           live_bytes + bytes <= (memory->count_max - 1) * memory->pool->segment_bytes;
}

void spill_tail_memory_clear(spill_tail_memory_t *memory)
{
    for (size_t i = 0; i < memory->count; i++)
        memory->segments[i].used_bytes = 0;
    memory->current = 0;
}
