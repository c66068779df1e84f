/*
 * The owner key. Two _id values have equal keys exactly if they are the same owner, in every store.
 * Keys sort by type, then by value if that is cheap. No key is a prefix of another.
 */
#ifndef SPILL_BSON_KEY_H
#define SPILL_BSON_KEY_H

#include "util/buffer.h"

#include <spillway/value.h>

/* Most bytes of an _id in BSON, and of its key. */
#define SPILL_OWNER_KEY_MAX 2048

/*
 * Append the owner's key to `key`, which is unchanged after an error: SPILL_INVALID for a type that
 * cannot be an _id (array, regular expression, undefined), for malformed bytes, and for an _id or a
 * key that is too long.
 */
spill_code_t spill_owner_key(const spill_value_t *owner, spill_buffer_t *key, spill_error_t *error);

/* Can a value of this type be an _id? SPILL_INVALID names the type. */
spill_code_t spill_owner_check(const spill_value_t *owner, spill_error_t *error);

/*
 * Append an owner with this key to `storage` under an empty name. Of equal values (1, 1L, 1.0) it
 * may be any. False: it is not an owner key. O(key).
 */
bool spill_owner_from_key(const uint8_t *key, size_t key_bytes, bson_t *storage,
                          spill_value_t *owner);

/* Length of the owner key that starts at `data`, or 0 if there is no complete key. */
size_t spill_owner_key_length(const uint8_t *data, size_t size);

#endif
