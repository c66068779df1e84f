/* A hash over a sequence of values, for logs and reports that compare arrays. */
#ifndef SPILL_BSON_VALUE_HASH_H
#define SPILL_BSON_VALUE_HASH_H

#include <spillway/value.h>

/* Add a value: type and bytes. Start with 0. The order matters. */
void spill_value_add_hash(const spill_value_t *value, uint64_t *hash);

#endif
