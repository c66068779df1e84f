/*
 * The owner key: bytes that are equal exactly when two _id values are one owner, on every store.
 * It orders by type, then by value where that is cheap, and no key is a prefix of another.
 */
#ifndef SPILL_BSON_KEY_H
#define SPILL_BSON_KEY_H

#include "util/buffer.h"

#include <spillway/value.h>

/* Most bytes of an _id as BSON has it, and of its key. */
#define SPILL_OWNER_KEY_MAX 2048

/*
 * Append the owner's key to `key`, which is unchanged after an error: SPILL_INVALID for a type that
 * cannot be an _id (array, regular expression, undefined), for malformed bytes, and for an _id or a
 * key that is too long.
 */
spill_code_t spill_owner_key(const spill_value_t *owner, spill_buffer_t *key, spill_error_t *error);

/* Can it be an _id, by its type? SPILL_INVALID says which it is. */
spill_code_t spill_owner_check(const spill_value_t *owner, spill_error_t *error);

/*
 * An owner that has this key, appended to `storage` under an empty name; of those that are one
 * owner (1, 1L, 1.0) any. False: it is no owner key. O(key).
 */
bool spill_owner_from_key(const uint8_t *key, size_t key_bytes, bson_t *storage,
                          spill_value_t *owner);

/* Length of the owner key that starts at `data`, or 0 when there is no whole key. */
size_t spill_owner_key_length(const uint8_t *data, size_t size);

#endif
