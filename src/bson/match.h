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
 */
#ifndef SPILL_BSON_MATCH_H
#define SPILL_BSON_MATCH_H

#include <spillway/value.h>

#include <stdbool.h>

/*
 * SPILL_INVALID names what is not supported: another operator; a regular expression or undefined as
 * a value; a comparison by order with an array, MinKey or MaxKey; an empty filter, which would
 * match all elements.
 */
spill_code_t spill_match_check(const bson_t *filter, spill_error_t *error);

/* The filter has passed the check, and the element is well-formed. O(sizes of both). */
bool spill_match(const bson_t *filter, const spill_value_t *element);

#endif
