/* The parts of the tail cache (tail_cache.h): its shards, and entries in them. */
#ifndef SPILL_STORE_EMBEDDED_TAIL_SHARD_H
#define SPILL_STORE_EMBEDDED_TAIL_SHARD_H

#include "store/embedded/tail_cache.h"
#include "store/embedded/tail_memory.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * Shards have a lock each. Owners of one stamp count as one when changes are noted: a change of one
 * of them stops the answers for all of them for a moment.
 */
enum { SPILL_TAIL_STAMPS = 64 };

/*
 * A full shard admits an owner when it is missed again, so an owner that is read once evicts none.
 * It remembers this many missed owners.
 */
enum { SPILL_TAIL_MISSED = 512 };

/* The elements that an entry at least has room for. */
enum { SPILL_TAIL_WANTED_MIN = 8 };

/* An element of an entry. */
typedef struct spill_tail_slot {
    uint32_t number; /* its sequence number - the entry's `base` */
    uint32_t offset; /* in the arena */
    uint32_t size_bytes : 24;
    uint32_t type : 8;
} spill_tail_slot_t;

/*
 * What the state says about the numbers of elements, for spill_tail_cache_recall. From `whole` on,
 * all numbers below `end` are live.
 */
typedef struct spill_tail_bounds {
    int64_t first; /* of the head */
    int64_t whole; /* at least `first` */
    int64_t end;
    int64_t watermark;
} spill_tail_bounds_t;

/*
 * An owner's head and some of its newest elements, in one block of memory. What a read compares
 * first lies next to each other:
 *
 *   entry, owner, state[state_capacity], slots[slot_capacity], arena[arena_capacity]
 *
 * Each slot has the current value of the element with that number. Slots ascend, but numbers may be
 * missing: a read compares them with the numbers that the state has.
 */
typedef struct spill_tail_entry {
    spill_tail_block_t block;
    uint64_t hash;
    struct spill_tail_entry *next; /* in its bucket */
    uint32_t owner_bytes;
    uint32_t slots_offset; /* from the start of the block */
    uint32_t slot_count, slot_capacity;
    int64_t base; /* the sequence number of the first element that it got */
    int64_t incarnation;
    spill_tail_bounds_t bounds; /* if has_bounds */
    uint32_t arena_bytes, arena_capacity;
    uint32_t state_bytes, state_capacity;
    uint16_t wanted; /* elements that reads want, at most SPILL_TAIL_ELEMENTS_MAX */
    bool has_bounds; /* a reader has derived them from the state */
    uint8_t owner[];
} spill_tail_entry_t;

typedef struct spill_tail_stamp {
    uint64_t version; /* raised by each change that begins */
    uint64_t pending; /* changes that have begun and not ended */
} spill_tail_stamp_t;

typedef struct spill_tail_shard {
    pthread_mutex_t lock;
    spill_tail_stamp_t stamps[SPILL_TAIL_STAMPS];
    spill_tail_entry_t **buckets; /* changed with spill_tail_set: readers fetch without the lock */
    size_t bytes;                 /* of the entries */
    spill_tail_memory_t memory;
    _Atomic size_t answer_bytes;        /* of the elements of the last answer */
    uint32_t missed[SPILL_TAIL_MISSED]; /* hashes of owners, each in one possible place */
} spill_tail_shard_t;

struct spill_tail_cache {
    spill_counts_t *counts;
    spill_tail_pool_t *pool;
    size_t shard_count;
    size_t bucket_count;           /* of a shard */
    spill_tail_entry_t **buckets;  /* of all shards */
    spill_tail_entry_t *old_entry; /* the leader's copy of an entry that it replaces: a segment */
    spill_tail_shard_t shards[];
};

/* An element that an entry gets. */
typedef struct spill_tail_item {
    int64_t seq;
    const uint8_t *data;
    uint32_t size_bytes;
    uint8_t type;
} spill_tail_item_t;

/* What an entry is made of. Items ascend. */
typedef struct spill_tail_content {
    const spill_record_key_t *owner;
    uint64_t hash;
    int64_t incarnation;
    const uint8_t *state;
    size_t state_bytes;
    uint16_t wanted;
    size_t item_count;
    spill_tail_item_t items[SPILL_TAIL_ELEMENTS_MAX];
} spill_tail_content_t;

static inline spill_tail_shard_t *spill_tail_shard_of(spill_tail_cache_t *cache, uint64_t hash)
{
    return &cache->shards[(hash >> 32) & (cache->shard_count - 1)];
}

static inline spill_tail_stamp_t *spill_tail_stamp_of(spill_tail_shard_t *shard, uint64_t hash)
{
    return &shard->stamps[(hash >> 48) % SPILL_TAIL_STAMPS];
}

static inline spill_tail_entry_t **spill_tail_bucket_of(const spill_tail_cache_t *cache,
                                                        const spill_tail_shard_t *shard,
                                                        uint64_t hash)
{
    return &shard->buckets[hash & (cache->bucket_count - 1)];
}

static inline uint8_t *spill_tail_state_of(spill_tail_entry_t *entry)
{
    return entry->owner + entry->owner_bytes;
}

static inline spill_tail_slot_t *spill_tail_slots_of(const spill_tail_entry_t *entry)
{
    return (spill_tail_slot_t *)((uintptr_t)entry + entry->slots_offset);
}

/* The sequence number of the element in a slot. */
static inline int64_t spill_tail_seq_of(const spill_tail_entry_t *entry, size_t slot)
{
    return entry->base + spill_tail_slots_of(entry)[slot].number;
}

static inline uint8_t *spill_tail_arena_of(const spill_tail_entry_t *entry)
{
    return (uint8_t *)(spill_tail_slots_of(entry) + entry->slot_capacity);
}

/* The following functions are called with the shard's lock. */

/* The owner's entry; NULL: none. */
spill_tail_entry_t *spill_tail_find(const spill_tail_cache_t *cache,
                                    const spill_tail_shard_t *shard,
                                    const spill_record_key_t *owner, uint64_t hash);

void spill_tail_drop(const spill_tail_cache_t *cache, spill_tail_shard_t *shard,
                     const spill_record_key_t *owner, uint64_t hash);
void spill_tail_drop_all(const spill_tail_cache_t *cache, spill_tail_shard_t *shard);

/* Keep the newest items that fit an entry. */
void spill_tail_bound(spill_tail_content_t *content);

/* Can the entry be made without evicting others? */
bool spill_tail_has_room(const spill_tail_shard_t *shard, const spill_tail_content_t *content);

/*
 * Replace the owner's entry; drop it if the new one is too large. Others may be moved or evicted,
 * so the content is not in the shard's memory. `grows`: with room for half as many elements more.
 */
void spill_tail_put(const spill_tail_cache_t *cache, spill_tail_shard_t *shard,
                    const spill_tail_content_t *content, bool grows);

/* Do the numbers of new elements, from `first` to `last`, fit slots of the entry? */
bool spill_tail_reaches(const spill_tail_entry_t *entry, int64_t first, int64_t last);

/* Add an element to an entry that has room for it, and that reaches it. Elements ascend. */
void spill_tail_add_item(spill_tail_entry_t *entry, const spill_tail_item_t *item);

#endif
