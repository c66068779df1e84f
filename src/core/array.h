/* Checks that several of the array's functions make on what the caller passes. */
#ifndef SPILL_CORE_ARRAY_H
#define SPILL_CORE_ARRAY_H

#include "layout/outlier.h"

/* Only known operators, and none of the fields that the array itself lives in. */
spill_code_t spill_array_check_update(const spill_array_t *array, const bson_t *update,
                                      spill_error_t *error);

/* Well-formed, and not beyond any document. `index` is its place in the batch, for the message. */
spill_code_t spill_array_check_element(const spill_value_t *element, size_t index,
                                       spill_error_t *error);

#endif
