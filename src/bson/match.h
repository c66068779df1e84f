/*
 * Does an element match a filter? A filter is a query as MongoDB has it, of these parts:
 *
 *   {path: value, ...}                  equality, all of them
 *   {path: {operator: value, ...}}      $eq $ne $gt $gte $lt $lte $in $nin $exists, all of them
 *   {operator: value, ...}              the same of the element itself, whatever it is
 *
 * A path is names with '.' between them. Where an array lies on it, each document in the array is
 * looked into, and a number among the names is a place in it as well; an array at its end matches
 * as a whole, or by any of its elements. What lies nowhere equals null. Values compare as MongoDB's
 * do: numbers of all types by value; $gt, $gte, $lt and $lte find values of one class only. $ne and
 * $nin are true where $eq and $in are not.
 */
#ifndef SPILL_BSON_MATCH_H
#define SPILL_BSON_MATCH_H

#include <spillway/value.h>

#include <stdbool.h>

/*
 * SPILL_INVALID names what is not supported: another operator, a regular expression or undefined
 * as a value, an array or MinKey or MaxKey to be greater or less than; and an empty filter, which
 * would match everything.
 */
spill_code_t spill_match_check(const bson_t *filter, spill_error_t *error);

/* Of a filter that has passed the check, and a well-formed element. O(sizes of both). */
bool spill_match(const bson_t *filter, const spill_value_t *element);

#endif
