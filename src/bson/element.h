/*
 * What a definition says of an element: its id and its time, each at a path of names with '.'
 * between them, through documents. A path does not go into arrays: what lies in one is no id.
 */
#ifndef SPILL_BSON_ELEMENT_H
#define SPILL_BSON_ELEMENT_H

#include "util/buffer.h"

#include <spillway/value.h>

/* Most bytes of an id's key (bson/key.h). */
#define SPILL_ELEMENT_ID_MAX 1024

/*
 * Append the key by which an id is found, which is the same for ids that compare as equal (1 and
 * 1.0). SPILL_INVALID: it can be no element's id: null, undefined, an array, a regular expression,
 * malformed, or too long; `key` is unchanged then.
 */
spill_code_t spill_element_id_key(const spill_value_t *id, spill_buffer_t *key,
                                  spill_error_t *error);

/*
 * Append the key of the id that the element has at `path`. False where it has none, or a value that
 * can be no id.
 */
bool spill_element_key(const spill_value_t *element, const char *path, spill_buffer_t *key);

/*
 * The time at `path`, in milliseconds since 1970: of a date, an ObjectId, or a timestamp. False
 * where there is none of these.
 */
bool spill_element_time_ms(const spill_value_t *element, const char *path, int64_t *time_ms);

#endif
