/* A table of hashes, without locks: a slot is one number. */
#include "gateway/translate/managed_owners.h"

#include "util/buffer.h"

#include <string.h>

enum { SECONDS_BITS = 24 };
#define SECONDS_MASK ((UINT64_C(1) << SECONDS_BITS) - 1)

static uint64_t hash_of(const char *scope, const spill_value_t *owner)
{
    uint64_t parts[3] = {spill_hash(scope, strlen(scope)),
                         spill_hash(owner->data, owner->size_bytes), owner->type};
    return spill_hash(parts, sizeof parts);
}

static size_t slot_of(uint64_t hash)
{
    return hash % SPILL_MANAGED_OWNERS_MAX;
}

static bool is_same(uint64_t slot, uint64_t hash)
{
    return slot != 0 && ((slot ^ hash) & ~SECONDS_MASK) == 0;
}

/* The first note of an owner keeps its time. */
void spill_managed_note(spill_managed_owners_t *owners, const char *scope,
                        const spill_value_t *owner, int64_t seconds)
{
    uint64_t hash = hash_of(scope, owner);
    atomic_uint_fast64_t *slot = &owners->slots[slot_of(hash)];
    if (!is_same(atomic_load(slot), hash))
        atomic_store(slot, (hash & ~SECONDS_MASK) | ((uint64_t)seconds & SECONDS_MASK));
}

void spill_managed_forget(spill_managed_owners_t *owners, const char *scope,
                          const spill_value_t *owner)
{
    uint64_t hash = hash_of(scope, owner);
    atomic_uint_fast64_t *slot = &owners->slots[slot_of(hash)];
    if (is_same(atomic_load(slot), hash))
        atomic_store(slot, 0);
}

size_t spill_managed_begin(spill_managed_owners_t *owners, const char *scope,
                           const spill_value_t *owner, bool *alone)
{
    size_t slot = slot_of(hash_of(scope, owner));
    *alone = atomic_fetch_add(&owners->pushes[slot], 1) == 0;
    return slot;
}

void spill_managed_end(spill_managed_owners_t *owners, size_t slot)
{
    atomic_fetch_sub(&owners->pushes[slot], 1);
}

int64_t spill_managed_since(const spill_managed_owners_t *owners, const char *scope,
                            const spill_value_t *owner, int64_t seconds)
{
    uint64_t hash = hash_of(scope, owner);
    uint64_t slot = atomic_load(&owners->slots[slot_of(hash)]);
    return is_same(slot, hash) ? (int64_t)(((uint64_t)seconds - slot) & SECONDS_MASK) : -1;
}
