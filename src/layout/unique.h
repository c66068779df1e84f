/* Appends to an array that keeps each id once. */
#ifndef SPILL_LAYOUT_UNIQUE_H
#define SPILL_LAYOUT_UNIQUE_H

#include "layout/append.h"

/*
 * Append the elements of the part whose ids the array does not have. Each element has an id.
 * result->count counts all elements of the part, result->duplicates those that were left out.
 */
spill_code_t spill_unique_append(spill_owner_t *owner, const spill_part_t *part,
                                 spill_append_result_t *result, spill_error_t *error);

/*
 * Before an unmanaged array is adopted: SPILL_REFUSED if an element has no id, or the id of another
 * one. The message names owner and element. Other definitions: SPILL_OK. Cost: a read of the array.
 */
spill_code_t spill_unique_check_unmanaged(const spill_owner_t *owner, spill_error_t *error);

/*
 * Before elements are appended under their numbers, which no search precedes: SPILL_REFUSED if one
 * has no id, the id of another one, or an id that the array has. The message names owner and
 * element. Other definitions: SPILL_OK. Cost: one read for each element, and one of the head.
 */
spill_code_t spill_unique_check_new(spill_owner_t *owner, const spill_element_t *elements,
                                    size_t count, spill_error_t *error);

#endif
