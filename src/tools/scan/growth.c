#include "tools/scan/growth.h"

#include <bson/bson.h>
#include <stdbool.h>

void spill_growth_init(spill_growth_t *growth)
{
    *growth = (spill_growth_t){0};
    spill_history_init(&growth->all, SPILL_GROWTH_ALL_POINTS);
}

void spill_growth_release(spill_growth_t *growth)
{
    for (size_t i = 0; i < growth->owner_count; i++)
        spill_history_release(&growth->owners[i].history);
    bson_free(growth->owners);
    spill_history_release(&growth->all);
    spill_growth_init(growth);
}

/* The sample needs good high bits; FNV's low bits are better (MurmurHash3's finalizer). */
static uint64_t mix_hash(uint64_t hash)
{
    hash = (hash ^ (hash >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ (hash >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ (hash >> 33);
}

static void swap(spill_growth_owner_t *left, spill_growth_owner_t *right)
{
    spill_growth_owner_t kept = *left;
    *left = *right;
    *right = kept;
}

static void sift_up(spill_growth_owner_t *owners, size_t at)
{
    for (; at > 0 && owners[(at - 1) / 2].hash < owners[at].hash; at = (at - 1) / 2)
        swap(&owners[at], &owners[(at - 1) / 2]);
}

static void sift_down(spill_growth_owner_t *owners, size_t count)
{
    for (size_t at = 0, child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && owners[child + 1].hash > owners[child].hash)
            child++;
        if (owners[child].hash <= owners[at].hash)
            return;
        swap(&owners[at], &owners[child]);
    }
}

static void insert_owner(spill_growth_t *growth, uint64_t hash, const spill_history_t *history)
{
    spill_growth_owner_t owner = {.hash = hash};
    spill_history_copy(history, &owner.history);
    spill_history_sort(&owner.history);
    if (!growth->owners)
        growth->owners = bson_malloc0(SPILL_GROWTH_OWNERS * sizeof *growth->owners);
    if (growth->owner_count < SPILL_GROWTH_OWNERS) {
        growth->owners[growth->owner_count] = owner;
        sift_up(growth->owners, growth->owner_count++);
        return;
    }
    spill_history_release(&growth->owners[0].history);
    growth->owners[0] = owner;
    sift_down(growth->owners, growth->owner_count);
}

static bool belongs(const spill_growth_t *growth, uint64_t hash)
{
    return growth->owner_count < SPILL_GROWTH_OWNERS || hash < growth->owners[0].hash;
}

void spill_growth_add(spill_growth_t *growth, uint64_t owner, const spill_history_t *history)
{
    uint64_t hash = mix_hash(owner);
    spill_history_merge(&growth->all, history);
    if (history->seen >= SPILL_GROWTH_LENGTH_MIN && belongs(growth, hash))
        insert_owner(growth, hash, history);
}

void spill_growth_merge(spill_growth_t *growth, const spill_growth_t *from)
{
    spill_history_merge(&growth->all, &from->all);
    for (size_t i = 0; i < from->owner_count; i++)
        if (belongs(growth, from->owners[i].hash))
            insert_owner(growth, from->owners[i].hash, &from->owners[i].history);
}
