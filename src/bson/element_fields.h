/*
 * An element's id and time, each at a path from the definition, and whether it matches a filter. A
 * definition's path has names with '.' between them and goes through documents, not into arrays: a
 * member of an array is not an id. The path of an id may be ".": the element itself is its id.
 */
#ifndef SPILL_BSON_ELEMENT_FIELDS_H
#define SPILL_BSON_ELEMENT_FIELDS_H

#include "util/buffer.h"

#include <spillway/value.h>

#include <stdbool.h>

/* Is the path of an id "."? */
bool spill_is_whole_element(const char *id_path);

/* Most bytes of an id's key (bson/key.h). */
#define SPILL_ELEMENT_ID_MAX 1024

/*
 * Append the key of an id. Ids that compare as equal (1 and 1.0) have the same key. `any` is for an
 * array that keeps each id once. There every value but undefined is an id. A key that is too long
 * is replaced by its digest: a type byte and SHA-256. SPILL_INVALID if the value cannot be an id:
 * malformed or undefined; without `any` also null, an array, a regular expression, and a value with
 * a key that is too long. `key` is then unchanged. O(value).
 */
spill_code_t spill_element_id_key(const spill_value_t *id, bool any, spill_buffer_t *key,
                                  spill_error_t *error);

/* Length of the id's key that starts at `data`, or 0 if there is no complete key. */
size_t spill_element_id_key_length(const uint8_t *data, size_t size);

/* Find the element's value at the path of ids. It may be one that cannot be an id. */
bool spill_element_id(const spill_value_t *element, const char *path, spill_value_t *id);

/*
 * Append the key of the element's id at `path`. Return false if it has no value there, or one that
 * cannot be an id; `any` as above.
 */
bool spill_element_key(const spill_value_t *element, const char *path, bool any,
                       spill_buffer_t *key);

/*
 * The time at `path`, in milliseconds since 1970: a date, an ObjectId, or a timestamp. Return false
 * if it has none of these.
 */
bool spill_element_time_ms(const spill_value_t *element, const char *path, int64_t *time_ms);

/* ---- filters --------------------------------------------------------------------------------- */

/*
 * Does an element match a filter? A filter is a MongoDB query with these parts:
 *
 *   {path: value, ...}                  all values are equal
 *   {path: {operator: value, ...}}      all of $eq $ne $gt $gte $lt $lte $in $nin $exists hold
 *   {operator: value, ...}              the same for the element itself, of any type
 *
 * A path is names with '.' between them. If it goes through an array, each document in the array is
 * searched; a number in the path is also an index. An array at the end of the path matches as a
 * whole, or by any of its elements. A missing value equals null. Values compare as in MongoDB:
 * numbers of all types by value; $gt, $gte, $lt and $lte find only values of the same class. $ne
 * and $nin are the negations of $eq and $in.
 *
 * spill_match_check: SPILL_INVALID names what is not supported: another operator; a regular
 * expression or undefined as a value; a comparison by order with an array, MinKey or MaxKey; an
 * empty filter, which would match all elements.
 */
spill_code_t spill_match_check(const bson_t *filter, spill_error_t *error);

/* The filter has passed the check, and the element is well-formed. O(sizes of both). */
bool spill_match(const bson_t *filter, const spill_value_t *element);

/* Does a document match? An empty filter matches every document. */
bool spill_match_fields(const bson_t *filter, const bson_t *document);

#endif
