#include "store/embedded/insert_hints.h"

#include "bson/key.h"
#include "store/embedded/embedded_codec.h"
#include "util/buffer.h"

enum { ID_BYTES = 4, OWNERS = SPILL_INSERT_HINTS / 2 };

/*
 * The bytes of the owner in the key of a head or an element: the key begins with them. 0: another
 * record.
 */
static size_t owner_bytes(const uint8_t *key, size_t key_bytes)
{
    if (key_bytes <= ID_BYTES)
        return 0;
    size_t length = spill_owner_key_length(key + ID_BYTES, key_bytes - ID_BYTES);
    size_t owner = ID_BYTES + length;
    if (length == 0 || owner >= key_bytes)
        return 0;
    return key[owner] == SPILL_RECORD_HEAD || key[owner] == SPILL_RECORD_ELEMENT ? owner : 0;
}

void spill_insert_hints_set(spill_insert_hints_t *hints, bool on)
{
    hints->on = on;
}

size_t spill_insert_hints_find(spill_insert_hints_t *hints, const uint8_t *key, size_t key_bytes)
{
    size_t owner = hints->on ? owner_bytes(key, key_bytes) : 0;
    if (owner == 0)
        return SPILL_INSERT_HINT_NONE;
    uint64_t hash = spill_hash_quick(key, owner);
    size_t hint = (size_t)hash % OWNERS + (key[owner] == SPILL_RECORD_HEAD ? 0 : OWNERS);
    uint32_t last = hints->owners[hint];
    hints->owners[hint] = (uint32_t)(hash >> 32) | 1;
    return last == hints->owners[hint] ? hint : SPILL_INSERT_HINT_NONE;
}
