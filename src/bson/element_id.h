/*
 * An element's id and time, each at a path from the definition. A path has names with '.' between
 * them and goes through documents, not into arrays: a member of an array is not an id.
 */
#ifndef SPILL_BSON_ELEMENT_ID_H
#define SPILL_BSON_ELEMENT_ID_H

#include "util/buffer.h"

#include <spillway/value.h>

/* Most bytes of an id's key (bson/key.h). */
#define SPILL_ELEMENT_ID_MAX 1024

/*
 * Append the key of an id. Ids that compare as equal (1 and 1.0) have the same key. SPILL_INVALID
 * if the value cannot be an id: null, undefined, an array, a regular expression, malformed, or too
 * long; `key` is then unchanged.
 */
spill_code_t spill_element_id_key(const spill_value_t *id, spill_buffer_t *key,
                                  spill_error_t *error);

/*
 * Append the key of the element's id at `path`. Return false if it has no value there, or one that
 * cannot be an id.
 */
bool spill_element_key(const spill_value_t *element, const char *path, spill_buffer_t *key);

/*
 * The time at `path`, in milliseconds since 1970: a date, an ObjectId, or a timestamp. Return false
 * if it has none of these.
 */
bool spill_element_time_ms(const spill_value_t *element, const char *path, int64_t *time_ms);

#endif
