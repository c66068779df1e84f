/*
 * A strict check of JSON text (RFC 8259) before libbson reads it. libbson's own reader takes only
 * documents, ignores what follows the first of them, wraps integers beyond 64 bits around, and
 * does not say where an error is.
 */
#ifndef SPILL_BSON_JSON_H
#define SPILL_BSON_JSON_H

#include <spillway/error.h>

#include <stddef.h>

/* Deepest nesting that is read: what libbson takes, less one level for wrapping the text. */
#define SPILL_JSON_NESTING_MAX 97

typedef enum spill_json_kind {
    SPILL_JSON_DOCUMENT, /* an object whose first name is an ordinary one */
    SPILL_JSON_SPECIAL,  /* an object that may stand for another type: {"$numberLong": ...} */
    SPILL_JSON_OTHER     /* an array, a string, a number, true, false, null */
} spill_json_kind_t;

/*
 * Is the text one JSON value, with nothing but white space around it? SPILL_PARSE names the offset
 * of the first byte that does not belong. Cost: one pass, no memory.
 */
spill_code_t spill_json_check(const char *text, size_t size_bytes, spill_json_kind_t *kind,
                              spill_error_t *error);

#endif
