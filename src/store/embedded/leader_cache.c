/* The leader of the group commit caches heads and windows of operations here. */
#include "store/embedded/leader_cache.h"

#include "util/buffer.h"

#include <assert.h>
#include <bson/bson.h>
#include <string.h>

/* ---- heads ----------------------------------------------------------------------------------- */

static spill_head_slot_t *head_slot_of(const spill_head_cache_t *cache, const uint8_t *key,
                                       size_t key_bytes)
{
    return &cache->slots[spill_hash_quick(key, key_bytes) % SPILL_HEAD_CACHE_SLOTS];
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
    const spill_head_slot_t *slot = head_slot_of(cache, key, key_bytes);
    return holds(slot, key, key_bytes) ? slot : NULL;
}

void spill_head_cache_put(spill_head_cache_t *cache, const uint8_t *key, size_t key_bytes,
                          const uint8_t *value, size_t value_bytes)
{
    if (key_bytes > SPILL_HEAD_CACHE_KEY_MAX)
        return;
    if (!cache->slots)
        cache->slots = bson_malloc0(SPILL_HEAD_CACHE_SLOTS * sizeof *cache->slots);
    spill_head_slot_t *slot = head_slot_of(cache, key, key_bytes);
    if (value && value_bytes <= SPILL_HEAD_CACHE_VALUE_MAX) {
        slot->key_bytes = (uint8_t)key_bytes;
        slot->value_bytes = (uint16_t)value_bytes;
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

/* ---- windows of operations ------------------------------------------------------------------- */

/* Each owner has exactly one possible slot. */
enum { SLOTS = 8192, CAPACITY_MIN = 8 };

/* One operation. The operations of the same hash % capacity form a chain, from the newest down. */
typedef struct spill_op_mark {
    uint64_t hash;
    int64_t older; /* the chain's next ordinal, perhaps < from; -1: none */
} mark_t;

static size_t window_slot_of(const spill_record_key_t *owner)
{
    return spill_hash_quick(owner->data, owner->prefix) % SLOTS;
}

static bool belongs(const spill_op_window_t *window, const spill_record_key_t *owner)
{
    return window->owner_bytes == owner->prefix &&
           memcmp(window->owner, owner->data, owner->prefix) == 0;
}

static size_t bytes_of(int64_t capacity)
{
    return (size_t)capacity * (sizeof(mark_t) + sizeof(int64_t));
}

static mark_t *mark_of(const spill_op_window_t *window, int64_t ordinal)
{
    return &window->marks[ordinal & (window->capacity - 1)];
}

static int64_t *newest_of(const spill_op_window_t *window, uint64_t hash)
{
    return &window->newest[hash & (uint64_t)(window->capacity - 1)];
}

/* ---- windows: memory ------------------------------------------------------------------------- */

static size_t own_bytes(const spill_op_window_t *window)
{
    return sizeof *window + window->owner_bytes + bytes_of(window->capacity);
}

static void release_slot(spill_op_cache_t *cache, size_t slot)
{
    spill_op_window_t *window = cache->slots[slot];
    if (!window)
        return;
    cache->bytes -= own_bytes(window);
    bson_free(window->marks);
    bson_free(window->newest);
    bson_free(window);
    cache->slots[slot] = NULL;
}

/* Release windows in the order of slots until the limit holds, but not this one. */
static void release_others(spill_op_cache_t *cache, const spill_op_window_t *window)
{
    for (; cache->bytes > SPILL_OP_CACHE_BYTES_MAX; cache->hand = (cache->hand + 1) % SLOTS)
        if (cache->slots[cache->hand] != window)
            release_slot(cache, cache->hand);
}

void spill_op_cache_clear(spill_op_cache_t *cache)
{
    for (size_t slot = 0; cache->slots && slot < SLOTS; slot++)
        release_slot(cache, slot);
    bson_free(cache->slots);
    *cache = (spill_op_cache_t){0};
}

void spill_op_cache_forget(spill_op_cache_t *cache, const spill_record_key_t *owner)
{
    size_t slot = window_slot_of(owner);
    if (cache->slots && cache->slots[slot] && belongs(cache->slots[slot], owner))
        release_slot(cache, slot);
}

/* ---- windows --------------------------------------------------------------------------------- */

spill_op_window_t *spill_op_cache_find(const spill_op_cache_t *cache,
                                       const spill_record_key_t *owner, int64_t incarnation,
                                       int64_t end)
{
    spill_op_window_t *window = cache->slots ? cache->slots[window_slot_of(owner)] : NULL;
    return window && belongs(window, owner) && window->incarnation == incarnation &&
                   window->end == end
               ? window
               : NULL;
}

spill_op_window_t *spill_op_cache_begin(spill_op_cache_t *cache, const spill_record_key_t *owner,
                                        int64_t incarnation, int64_t from)
{
    if (!cache->slots)
        cache->slots = bson_malloc0(SLOTS * sizeof(void *));
    size_t slot = window_slot_of(owner);
    release_slot(cache, slot);
    spill_op_window_t *window = bson_malloc0(sizeof *window + owner->prefix);
    memcpy(window->owner, owner->data, owner->prefix);
    window->owner_bytes = owner->prefix;
    window->incarnation = incarnation;
    window->from = window->end = from;
    cache->slots[slot] = window;
    cache->bytes += own_bytes(window);
    release_others(cache, window);
    return window;
}

static void link_mark(spill_op_window_t *window, int64_t ordinal, uint64_t hash)
{
    int64_t *newest = newest_of(window, hash);
    *mark_of(window, ordinal) = (mark_t){.hash = hash, .older = *newest};
    *newest = ordinal;
}

static void grow(spill_op_cache_t *cache, spill_op_window_t *window)
{
    mark_t *marks = window->marks;
    int64_t capacity = window->capacity;
    bson_free(window->newest);
    window->capacity = capacity > 0 ? capacity * 2 : CAPACITY_MIN;
    window->marks = bson_malloc((size_t)window->capacity * sizeof *window->marks);
    window->newest = bson_malloc((size_t)window->capacity * sizeof *window->newest);
    memset(window->newest, 0xff, (size_t)window->capacity * sizeof *window->newest); /* -1 */
    for (int64_t ordinal = window->from; ordinal < window->end; ordinal++)
        link_mark(window, ordinal, marks[ordinal & (capacity - 1)].hash);
    bson_free(marks);
    cache->bytes += bytes_of(window->capacity) - bytes_of(capacity);
    release_others(cache, window);
}

void spill_op_cache_add(spill_op_cache_t *cache, spill_op_window_t *window, const void *id,
                        size_t id_bytes, int64_t window_max)
{
    assert(window_max > 0);
    if (window->end - window->from >= window_max)
        window->from = window->end + 1 - window_max;
    if (window->end - window->from == window->capacity)
        grow(cache, window);
    link_mark(window, window->end++, spill_hash_quick(id, id_bytes));
}

int64_t spill_op_window_search(const spill_op_window_t *window, const void *id, size_t id_bytes,
                               int64_t below)
{
    uint64_t hash = spill_hash_quick(id, id_bytes);
    int64_t ordinal = window->end > window->from ? *newest_of(window, hash) : -1;
    if (below >= window->from && below < window->end && mark_of(window, below)->hash == hash)
        ordinal = mark_of(window, below)->older; /* continue a search */
    while (ordinal >= window->from && (ordinal >= below || mark_of(window, ordinal)->hash != hash))
        ordinal = mark_of(window, ordinal)->older;
    return ordinal >= window->from ? ordinal : -1;
}
