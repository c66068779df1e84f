#include "gateway/translate/statement_numbers.h"

#include "bson/key.h"
#include "util/error.h"

#include <string.h>

enum { SLOTS_MIN = 16, FOUND_FIRST = 0x40000000 /* the first number of an owner that was found */ };

typedef struct slot {
    uint64_t key; /* a hash of the owner; 0: the slot is empty */
    int32_t used;
} slot_t;

/* Owners with the same hash share their numbers: that leaves gaps, and no number is given twice. */
static uint64_t key_of(const spill_value_t *owner, bool named)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t key = SPILL_BUFFER_INIT;
    uint64_t hash = spill_value_key(owner, &key, NULL) == SPILL_OK
                        ? spill_hash_quick(key.data, key.size)
                        : 0; /* malformed: no document has it */
    hash = spill_hash_mix(spill_hash_mix(hash, named), 0);
    return hash != 0 ? hash : 1;
}

static slot_t *slots_of(const spill_statement_numbers_t *numbers)
{
    return (slot_t *)numbers->slots.data;
}

static size_t capacity_of(const spill_statement_numbers_t *numbers)
{
    return numbers->slots.size / sizeof(slot_t);
}

/* The slot of the key, or the empty one that it can take. */
static slot_t *find_slot(const spill_statement_numbers_t *numbers, uint64_t key)
{
    size_t mask = capacity_of(numbers) - 1, at = (size_t)key & mask;
    slot_t *slots = slots_of(numbers);
    while (slots[at].key != 0 && slots[at].key != key)
        at = (at + 1) & mask;
    return &slots[at];
}

/* Keep at least half of the slots empty. */
static void make_room(spill_statement_numbers_t *numbers)
{
    size_t before = capacity_of(numbers), after = before > 0 ? 2 * before : SLOTS_MIN;
    if (2 * (numbers->count + 1) <= before)
        return;
    spill_buffer_t old = numbers->slots;
    numbers->slots = (spill_buffer_t)SPILL_BUFFER_INIT;
    memset(spill_buffer_reserve(&numbers->slots, after * sizeof(slot_t)), 0,
           after * sizeof(slot_t));
    numbers->slots.size = after * sizeof(slot_t);
    for (size_t i = 0; i < before; i++) {
        const slot_t *slot = (const slot_t *)old.data + i;
        if (slot->key != 0)
            *find_slot(numbers, slot->key) = *slot;
    }
    spill_buffer_release(&old);
}

int32_t spill_numbers_take(spill_statement_numbers_t *numbers, const spill_value_t *owner,
                           bool named, int64_t count)
{
    make_room(numbers);
    uint64_t key = key_of(owner, named);
    slot_t *slot = find_slot(numbers, key);
    if (slot->key == 0) {
        *slot = (slot_t){.key = key};
        numbers->count++;
    }
    int32_t first = slot->used;
    slot->used += count > 0 ? (int32_t)count : 1;
    return named ? first : FOUND_FIRST + first;
}

void spill_numbers_release(spill_statement_numbers_t *numbers)
{
    spill_buffer_release(&numbers->slots);
    numbers->count = 0;
}
