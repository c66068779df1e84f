/*
 * A strict check of JSON text (RFC 8259) before libbson reads it. libbson's reader accepts only
 * documents, ignores text after the first one, wraps integers beyond 64 bits, and does not report
 * the position of an error.
 */
#ifndef SPILL_BSON_JSON_H
#define SPILL_BSON_JSON_H

#include <spillway/error.h>

#include <stddef.h>

/* The deepest nesting: libbson's limit, less one level for the document around the text. */
#define SPILL_JSON_NESTING_MAX 97

typedef enum spill_json_kind {
    SPILL_JSON_DOCUMENT, /* an object; its first name does not begin with '$' */
    SPILL_JSON_SPECIAL,  /* an object that may stand for another type: {"$numberLong": ...} */
    SPILL_JSON_OTHER     /* an array, a string, a number, true, false, null */
} spill_json_kind_t;

/*
 * Is the text one JSON value, with only white space around it? SPILL_PARSE names the offset of the
 * first wrong byte. Cost: one pass, no memory.
 */
spill_code_t spill_json_check(const char *text, size_t size_bytes, spill_json_kind_t *kind,
                              spill_error_t *error);

#endif
