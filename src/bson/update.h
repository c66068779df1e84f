/* The update operators that an append may carry, applied to a head's other fields. */
#ifndef SPILL_BSON_UPDATE_H
#define SPILL_BSON_UPDATE_H

#include <spillway/error.h>

#include <bson/bson.h>

/*
 * Check that `update` has only $set, $unset, $inc, $min and $max with well-formed arguments, and
 * does not change _id or a path in `reserved` (ended by NULL), something in it, or a document around
 * it. SPILL_INVALID names the operator and the field.
 */
spill_code_t spill_update_check(const bson_t *update, const char *const *reserved,
                                spill_error_t *error);

/*
 * The same for a server, which checks the rest itself: any operator may occur. $rename does not
 * move a field to a reserved name.
 */
spill_code_t spill_update_check_names(const bson_t *update, const char *const *reserved,
                                      spill_error_t *error);

/*
 * Apply the update to `fields`. The call initializes `result` in every case. Semantics follow
 * MongoDB: dotted paths go into sub-documents and make them; $inc of a missing field sets it; an
 * int32 becomes an int64 on overflow; $min and $max compare in BSON order. SPILL_INVALID: a path
 * goes through a value that is not a document (also an array); $inc of a value that is not a number
 * or is a decimal128; $inc beyond 64 bits. SPILL_CORRUPT: `fields` is malformed. Cost: one copy of
 * `fields` for each changed field.
 */
spill_code_t spill_update_apply(const bson_t *fields, const bson_t *update, bson_t *result,
                                spill_error_t *error);

/* The same; it replaces *fields, on the heap. After an error they are destroyed, and NULL. */
spill_code_t spill_update_replace(bson_t **fields, const bson_t *update, spill_error_t *error);

#endif
