#include "bson/value_hash.h"

#include "util/hash.h"

void spill_value_add_hash(const spill_value_t *value, uint64_t *hash)
{
    uint64_t parts[3] = {*hash, value->type, spill_hash(value->data, value->size_bytes)};
    *hash = spill_hash(parts, sizeof parts);
}
