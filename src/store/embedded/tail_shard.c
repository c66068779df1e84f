/* The shards of the tail cache, and the entries in them. */
#include "store/embedded/tail_shard.h"

#include <bson/bson.h>
#include <string.h>

enum { SHARDS_MAX = 64, SHARD_BYTES_MIN = 256 * 1024, BYTES_MIN = 4096 };

/*
 * A shard has at least SEGMENTS_MIN segments, of about SEGMENT_BYTES each. Its table has at most
 * 1 / TABLE_SHARE of its bytes.
 */
enum { SEGMENTS_MIN = 4, SEGMENT_BYTES = 64 * 1024, TABLE_SHARE = 64 };

enum { STATE_SLACK = 16, SIZE_MASK = 0xffffff };

/* ---- the parts of a cache -------------------------------------------------------------------- */

static void add_bytes(const spill_tail_cache_t *cache, spill_tail_shard_t *shard, int64_t bytes)
{
    shard->bytes += (size_t)bytes;
    atomic_fetch_add_explicit(&cache->counts->tail_bytes, bytes, memory_order_relaxed);
}

/* Divide a shard's bytes: its buckets, and the number and size of its segments. */
static size_t divide(spill_tail_cache_t *cache, size_t shard_bytes, size_t *segment_bytes)
{
    cache->bucket_count = 1;
    while (cache->bucket_count * 2 * sizeof(spill_tail_entry_t *) <= shard_bytes / TABLE_SHARE)
        cache->bucket_count *= 2;
    size_t bytes = shard_bytes - cache->bucket_count * sizeof(spill_tail_entry_t *);
    size_t segments = (bytes + SEGMENT_BYTES - 1) / SEGMENT_BYTES;
    segments = segments > SEGMENTS_MIN ? segments : SEGMENTS_MIN;
    *segment_bytes = spill_tail_block_size(bytes / segments + 1) - spill_tail_block_size(1);
    return segments;
}

spill_tail_cache_t *spill_tail_cache_new(int64_t bytes_max, spill_counts_t *counts)
{
    if (bytes_max < BYTES_MIN)
        return NULL;
    size_t shards = 1, segment_bytes;
    while (shards < SHARDS_MAX && (size_t)bytes_max / (shards * 2) >= SHARD_BYTES_MIN)
        shards *= 2;
    spill_tail_cache_t *cache = bson_malloc0(sizeof *cache + shards * sizeof *cache->shards);
    cache->counts = counts;
    cache->shard_count = shards;
    size_t segments = divide(cache, (size_t)bytes_max / shards, &segment_bytes);
    cache->pool = spill_tail_pool_new(shards * segments, segment_bytes);
    if (!cache->pool) {
        bson_free(cache);
        return NULL;
    }
    cache->buckets = bson_malloc0(shards * cache->bucket_count * sizeof(spill_tail_entry_t *));
    cache->old_entry = bson_malloc(segment_bytes);
    for (size_t i = 0; i < shards; i++) {
        spill_tail_shard_t *shard = &cache->shards[i];
        pthread_mutex_init(&shard->lock, NULL);
        spill_tail_memory_init(&shard->memory, cache->pool, segments);
        shard->buckets = cache->buckets + i * cache->bucket_count;
    }
    return cache;
}

void spill_tail_cache_free(spill_tail_cache_t *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < cache->shard_count; i++) {
        spill_tail_shard_t *shard = &cache->shards[i];
        add_bytes(cache, shard, -(int64_t)shard->bytes);
        spill_tail_memory_release(&shard->memory);
        pthread_mutex_destroy(&shard->lock);
    }
    spill_tail_pool_free(cache->pool);
    bson_free(cache->buckets);
    bson_free(cache->old_entry);
    bson_free(cache);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Change a pointer of a bucket's list. A reader fetches the first entry before it has the lock. */
static void set_place(spill_tail_entry_t **place, spill_tail_entry_t *entry)
{
    __atomic_store_n(place, entry, __ATOMIC_RELAXED);
}

/* The pointer to the owner's entry; to NULL if there is none. */
static spill_tail_entry_t **find_place(const spill_tail_cache_t *cache,
                                       const spill_tail_shard_t *shard,
                                       const spill_record_key_t *owner, uint64_t hash)
{
    spill_tail_entry_t **place = spill_tail_bucket_of(cache, shard, hash);
    while (*place && ((*place)->hash != hash || (*place)->owner_bytes != owner->prefix ||
                      memcmp((*place)->owner, owner->data, owner->prefix) != 0))
        place = &(*place)->next;
    return place;
}

spill_tail_entry_t *spill_tail_find(const spill_tail_cache_t *cache,
                                    const spill_tail_shard_t *shard,
                                    const spill_record_key_t *owner, uint64_t hash)
{
    return *find_place(cache, shard, owner, hash);
}

/* Take the entry at this place out of its bucket. Its memory is still there. */
static void remove_entry(const spill_tail_cache_t *cache, spill_tail_shard_t *shard,
                         spill_tail_entry_t **place)
{
    spill_tail_entry_t *entry = *place;
    set_place(place, entry->next);
    entry->block.live = false;
    add_bytes(cache, shard, -(int64_t)entry->block.bytes);
}

void spill_tail_drop(const spill_tail_cache_t *cache, spill_tail_shard_t *shard,
                     const spill_record_key_t *owner, uint64_t hash)
{
    spill_tail_entry_t **place = find_place(cache, shard, owner, hash);
    if (*place)
        remove_entry(cache, shard, place);
}

void spill_tail_drop_all(const spill_tail_cache_t *cache, spill_tail_shard_t *shard)
{
    for (size_t i = 0; i < cache->bucket_count; i++)
        while (shard->buckets[i])
            remove_entry(cache, shard, &shard->buckets[i]);
    spill_tail_memory_clear(&shard->memory);
}

/* A shard whose memory moves or frees entries. */
typedef struct change {
    const spill_tail_cache_t *cache;
    spill_tail_shard_t *shard;
} change_t;

/* An entry is at another address; NULL: it is evicted. */
static void move_entry(void *context, spill_tail_block_t *from, spill_tail_block_t *to)
{
    const change_t *change = context;
    const spill_tail_entry_t *entry = (const spill_tail_entry_t *)(to ? to : from);
    spill_tail_entry_t **place = spill_tail_bucket_of(change->cache, change->shard, entry->hash);
    while ((spill_tail_block_t *)*place != from)
        place = &(*place)->next;
    if (to)
        set_place(place, (spill_tail_entry_t *)to);
    else
        remove_entry(change->cache, change->shard, place);
}

void spill_tail_bound(spill_tail_content_t *content)
{
    size_t from = content->item_count;
    size_t bytes = 0;
    while (from > 0 && content->item_count - from < content->wanted &&
           bytes + content->items[from - 1].size_bytes <= SPILL_TAIL_BYTES_MAX &&
           content->items[content->item_count - 1].seq - content->items[from - 1].seq <= UINT32_MAX)
        bytes += content->items[--from].size_bytes;
    content->item_count -= from;
    memmove(content->items, content->items + from, content->item_count * sizeof *content->items);
}

bool spill_tail_reaches(const spill_tail_entry_t *entry, int64_t first, int64_t last)
{
    return last - (entry->slot_count > 0 ? entry->base : first) <= UINT32_MAX;
}

void spill_tail_add_item(spill_tail_entry_t *entry, const spill_tail_item_t *item)
{
    if (entry->slot_count == 0)
        entry->base = item->seq;
    spill_tail_slots_of(entry)[entry->slot_count++] =
        (spill_tail_slot_t){.number = (uint32_t)(item->seq - entry->base),
                            .offset = entry->arena_bytes,
                            .size_bytes = item->size_bytes & SIZE_MASK,
                            .type = item->type};
    if (item->size_bytes > 0)
        memcpy(spill_tail_arena_of(entry) + entry->arena_bytes, item->data, item->size_bytes);
    entry->arena_bytes += item->size_bytes;
}

/* The parts of an entry's block. */
typedef struct sizes {
    size_t state, slots_offset, slots, arena, block;
} sizes_t;

/* `grows`: with room for half as many elements more. */
static sizes_t sizes_of(const spill_tail_content_t *content, bool grows)
{
    sizes_t sizes = {.slots = content->item_count};
    for (size_t i = 0; i < content->item_count; i++)
        sizes.arena += content->items[i].size_bytes;
    if (grows) {
        sizes.slots += sizes.slots / 2 + SPILL_TAIL_WANTED_MIN / 2;
        sizes.arena += content->item_count > 0
                           ? sizes.arena / content->item_count * (sizes.slots - content->item_count)
                           : 0;
    }
    sizes.state = content->state_bytes + STATE_SLACK + (grows ? content->state_bytes : 0);
    sizes.slots_offset = sizeof(spill_tail_entry_t) + content->owner->prefix + sizes.state;
    sizes.slots_offset =
        (sizes.slots_offset + _Alignof(spill_tail_slot_t) - 1) & ~(_Alignof(spill_tail_slot_t) - 1);
    sizes.block = spill_tail_block_size(sizes.slots_offset +
                                        sizes.slots * sizeof(spill_tail_slot_t) + sizes.arena);
    return sizes;
}

static void write_entry(spill_tail_entry_t *entry, const spill_tail_content_t *content,
                        const sizes_t *sizes)
{
    *entry =
        (spill_tail_entry_t){.block = {.bytes = (uint32_t)sizes->block, .live = true, .used = true},
                             .hash = content->hash,
                             .slots_offset = (uint32_t)sizes->slots_offset,
                             .incarnation = content->incarnation,
                             .owner_bytes = (uint32_t)content->owner->prefix,
                             .state_bytes = (uint32_t)content->state_bytes,
                             .state_capacity = (uint32_t)sizes->state,
                             .slot_capacity = (uint32_t)sizes->slots,
                             .arena_capacity = (uint32_t)sizes->arena,
                             .wanted = content->wanted};
    memcpy(entry->owner, content->owner->data, content->owner->prefix);
    memcpy(spill_tail_state_of(entry), content->state, content->state_bytes);
    for (size_t i = 0; i < content->item_count; i++)
        spill_tail_add_item(entry, &content->items[i]);
}

bool spill_tail_has_room(const spill_tail_shard_t *shard, const spill_tail_content_t *content)
{
    return spill_tail_memory_has_room(&shard->memory, shard->bytes, sizes_of(content, false).block);
}

void spill_tail_put(const spill_tail_cache_t *cache, spill_tail_shard_t *shard,
                    const spill_tail_content_t *content, bool grows)
{
    change_t change = {cache, shard};
    spill_tail_drop(cache, shard, content->owner, content->hash);
    if (content->state_bytes > SPILL_TAIL_BYTES_MAX)
        return;
    sizes_t sizes = sizes_of(content, grows);
    spill_tail_entry_t *entry = (spill_tail_entry_t *)spill_tail_memory_take(
        &shard->memory, sizes.block, move_entry, &change);
    if (!entry)
        return; /* larger than a segment */
    write_entry(entry, content, &sizes);
    spill_tail_entry_t **bucket = spill_tail_bucket_of(cache, shard, content->hash);
    entry->next = *bucket;
    set_place(bucket, entry);
    add_bytes(cache, shard, (int64_t)sizes.block);
}
