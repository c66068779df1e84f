/* The strings in a value: BSON requires UTF-8, but a writer may store any bytes. */
#ifndef SPILL_BSON_VALUE_TEXT_H
#define SPILL_BSON_VALUE_TEXT_H

#include <spillway/error.h>
#include <spillway/value.h>

/*
 * Check that all strings in a well-formed value, and the names of fields, are UTF-8. SPILL_INVALID:
 * the message names the string's path and the first wrong byte. Cost: one pass over the value.
 */
spill_code_t spill_value_check_text(const spill_value_t *value, spill_error_t *error);

#endif
