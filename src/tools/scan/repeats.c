/* Find a value that occurs twice in an array. */
#include "tools/scan/repeats.h"

#include "bson/value.h"
#include "util/buffer.h"

#include <string.h>

enum { SLOTS_MAX = 2 * SPILL_REPEATS_EXACT };

void spill_repeats_table_release(spill_repeats_table_t *table)
{
    bson_free(table->hashes);
    bson_free(table->stamps);
    *table = (spill_repeats_table_t){0};
}

/* Begin an array that needs `slots`: forget the hashes of the last one. */
static void begin_array(spill_repeats_table_t *table, uint32_t slots)
{
    if (slots > table->slots) {
        spill_repeats_table_release(table);
        table->hashes = bson_malloc(slots * sizeof *table->hashes);
        table->stamps = bson_malloc0(slots * sizeof *table->stamps);
        table->slots = slots;
    }
    if (++table->stamp == 0) {
        memset(table->stamps, 0, table->slots * sizeof *table->stamps);
        table->stamp = 1;
    }
}

/* Spread the bits: slots use the lowest ones, parts the highest. One result for one hash. */
static uint64_t mix(uint64_t hash)
{
    hash ^= hash >> 32;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_of_bytes(const spill_value_t *value, uint8_t type)
{
    return spill_hash(value->data, value->size_bytes) + type;
}

/*
 * Numbers of all types compare with each other. Integers can be ids; a number that is none, and a
 * date, is a measurement, which is unique by chance.
 */
static bool hash_number(const spill_value_t *value, uint64_t *hash)
{
    int64_t integer;
    spill_number_t number = spill_number_of(value);
    bool is_integer = spill_number_to_int64(&number, &integer);
    *hash = is_integer ? (uint64_t)integer : 0;
    return is_integer;
}

/* False: the value cannot be an element of a set of scalars. */
static bool hash_value(const spill_value_t *value, uint64_t *hash)
{
    switch (value->type) {
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_DECIMAL128:
        if (!hash_number(value, hash))
            return false;
        break;
    case BSON_TYPE_UTF8:
    case BSON_TYPE_SYMBOL: /* equals the string */
        *hash = hash_of_bytes(value, BSON_TYPE_UTF8);
        break;
    case BSON_TYPE_OID:
    case BSON_TYPE_BINARY:
    case BSON_TYPE_NULL:
        *hash = hash_of_bytes(value, (uint8_t)value->type);
        break;
    default:
        return false;
    }
    *hash = mix(*hash);
    return true;
}

/* Add a hash to the first `mask` + 1 slots of the table. True: it was there. */
static bool add_hash(spill_repeats_table_t *table, uint64_t hash, uint64_t mask)
{
    uint64_t at = hash & mask;
    for (; table->stamps[at] == table->stamp; at = (at + 1) & mask)
        if (table->hashes[at] == hash)
            return true;
    table->hashes[at] = hash;
    table->stamps[at] = table->stamp;
    return false;
}

void spill_repeats_check(spill_repeats_t *repeats, spill_repeats_table_t *table,
                         const uint8_t *data, uint32_t length)
{
    spill_fields_t elements = spill_fields_of(data);
    const char *name;
    spill_value_t value;
    uint64_t hash;
    uint32_t slots = 2, added = 0;
    int part = 0; /* one of 2^part values is checked, by the highest bits of its hash */
    while (length >> part > SPILL_REPEATS_EXACT)
        part++;
    while (slots < 2 * (uint64_t)length && slots < SLOTS_MAX)
        slots *= 2;
    begin_array(table, slots);
    while (!repeats->excluded && spill_fields_next(&elements, &name, &value)) {
        bool can_be = hash_value(&value, &hash);
        if (can_be && part > 0 && (hash >> (64 - part) != 0 || added == SPILL_REPEATS_EXACT))
            continue; /* half of the slots stay free */
        repeats->excluded = !can_be || add_hash(table, hash, slots - 1);
        added++;
    }
    repeats->arrays += length > 1;
    repeats->sampled = repeats->sampled || part > 0;
}

void spill_repeats_merge(spill_repeats_t *into, const spill_repeats_t *from)
{
    into->arrays += from->arrays;
    into->excluded = into->excluded || from->excluded;
    into->sampled = into->sampled || from->sampled;
}
