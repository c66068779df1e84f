/* The owners that the passes of a job skip: a hash table. */
#include "cli/skipped_owners.h"

#include "bson/value.h"
#include "util/buffer.h"

#include <ctype.h>
#include <string.h>

enum { SLOTS_FIRST = 64 };

struct spill_cli_skipped_owner {
    bson_t *key; /* {NAME: OWNER}; NULL: the slot is free */
    uint64_t key_hash, reason_hash;
    int64_t pass; /* the last one that skipped it */
};

static bson_t *make_key(const char *name, const spill_value_t *owner)
{
    bson_t *key = bson_new();
    spill_value_append(owner, key, name);
    return key;
}

static uint64_t hash_key(const bson_t *key)
{
    return spill_hash(bson_get_data(key), key->len);
}

/* The hash of a text without its digits. */
static uint64_t hash_reason(const char *reason)
{
    char *words = bson_strdup(reason), *end = words;
    for (const char *at = reason; *at != '\0'; at++)
        if (!isdigit((unsigned char)*at))
            *end++ = *at;
    uint64_t hash = spill_hash(words, (size_t)(end - words));
    bson_free(words);
    return hash;
}

/* The slot of a key, or the free slot where it belongs. */
static spill_cli_skipped_owner_t *find_slot(const spill_cli_skipped_owners_t *owners,
                                            const bson_t *key)
{
    size_t mask = owners->slot_count - 1;
    uint64_t hash = hash_key(key);
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        spill_cli_skipped_owner_t *slot = &owners->slots[i];
        if (!slot->key || (slot->key_hash == hash && bson_equal(slot->key, key)))
            return slot;
    }
}

/*
 * Move the owners of `pass` and later to a table of this size; call `recovered` for the others,
 * unless it is NULL.
 */
static void rebuild(spill_cli_skipped_owners_t *owners, size_t slot_count, int64_t pass,
                    spill_cli_recovered_fn recovered, void *context)
{
    spill_cli_skipped_owners_t before = *owners;
    owners->slots = bson_malloc0(slot_count * sizeof *owners->slots);
    owners->slot_count = slot_count;
    owners->count = 0;
    for (size_t i = 0; i < before.slot_count; i++) {
        const spill_cli_skipped_owner_t *from = &before.slots[i];
        bson_iter_t iter;
        if (!from->key)
            continue;
        if (from->pass >= pass) {
            *find_slot(owners, from->key) = *from;
            owners->count++;
            continue;
        }
        if (recovered != NULL && bson_iter_init(&iter, from->key) && bson_iter_next(&iter)) {
            spill_value_t owner = spill_value_from_iter(&iter);
            recovered(context, bson_iter_key(&iter), &owner);
        }
        bson_destroy(from->key);
    }
    bson_free(before.slots);
}

bool spill_cli_skipped_note(spill_cli_skipped_owners_t *owners, const char *name,
                            const spill_value_t *owner, const char *reason)
{
    uint64_t reason_hash = hash_reason(reason);
    if (owners->count * 2 >= owners->slot_count)
        rebuild(owners, owners->slot_count == 0 ? SLOTS_FIRST : owners->slot_count * 2, 0, NULL,
                NULL);
    bson_t *key = make_key(name, owner);
    spill_cli_skipped_owner_t *slot = find_slot(owners, key);
    bool is_known = slot->key && slot->reason_hash == reason_hash;
    if (!slot->key && owners->count >= SPILL_CLI_SKIPPED_MAX) {
        bson_destroy(key);
        return true;
    }
    if (slot->key) {
        bson_destroy(key);
    } else {
        slot->key = key;
        slot->key_hash = hash_key(key);
        owners->count++;
    }
    slot->reason_hash = reason_hash;
    slot->pass = owners->pass;
    return !is_known;
}

void spill_cli_skipped_end_pass(spill_cli_skipped_owners_t *owners,
                                spill_cli_recovered_fn recovered, void *context)
{
    if (owners->count > 0)
        rebuild(owners, owners->slot_count, owners->pass, recovered, context);
    owners->pass++;
}

void spill_cli_skipped_release(spill_cli_skipped_owners_t *owners)
{
    for (size_t i = 0; i < owners->slot_count; i++)
        bson_destroy(owners->slots[i].key);
    bson_free(owners->slots);
    *owners = (spill_cli_skipped_owners_t){0};
}
