/* The update operators that an append may carry, applied to a head's other fields. */
#ifndef SPILL_BSON_UPDATE_H
#define SPILL_BSON_UPDATE_H

#include <spillway/error.h>

#include <bson/bson.h>

/*
 * Is `update` made of $set, $unset, $inc, $min and $max with well-formed arguments, and does it
 * leave alone _id and every name in `reserved` (ended by NULL; a dotted path counts by its first
 * part)? SPILL_INVALID names the operator and the field.
 */
spill_code_t spill_update_check(const bson_t *update, const char *const *reserved,
                                spill_error_t *error);

/*
 * fields -> result, which the call initializes whatever it returns. Semantics follow MongoDB:
 * dotted paths reach into sub-documents and make them, $inc on a missing field sets it, int32
 * widens to int64 on overflow, $min and $max compare in BSON order. SPILL_INVALID for a path
 * through a value that is not a document (arrays included: no positions), for $inc of what is not a
 * number or is a decimal128, or past 64 bits. SPILL_CORRUPT where `fields` is malformed. Cost: one
 * copy of `fields` for each changed field.
 */
spill_code_t spill_update_apply(const bson_t *fields, const bson_t *update, bson_t *result,
                                spill_error_t *error);

/* The same in place of *fields, on the heap; where it fails they are destroyed, and NULL. */
spill_code_t spill_update_replace(bson_t **fields, const bson_t *update, spill_error_t *error);

#endif
