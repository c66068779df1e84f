/* From a record's bytes to a document, and to the fields with its owner and its operation id. */
#ifndef SPILL_TOOLS_IMPORT_DECODE_H
#define SPILL_TOOLS_IMPORT_DECODE_H

#include "tools/import_records.h"

#include <spillway/value.h>

typedef struct spill_decoder {
    spill_format_t format;
    bool strings; /* CSV: values stay strings */
    char **names; /* CSV: the columns, from the header */
    size_t name_count;
} spill_decoder_t;

/* `header`: the record of the CSV header; ignored for other formats. */
spill_code_t spill_decoder_init(spill_decoder_t *decoder, spill_format_t format, bool strings,
                                const spill_record_t *header, spill_error_t *error);
void spill_decoder_release(spill_decoder_t *decoder);

/*
 * Decode the record into `document`, which the call initializes if it succeeds. JSON text gives
 * what libbson makes of it, BSON the same bytes, and a CSV line {column: value, ...}. SPILL_PARSE,
 * SPILL_TOO_BIG; the message does not name the record's place.
 */
spill_code_t spill_decode(const spill_decoder_t *decoder, const spill_record_t *record,
                          bson_t *document, spill_error_t *error);

/*
 * Find a field of the document: by its whole name, else by a path with dots. SPILL_PARSE: there is
 * no such field. The value borrows from the document.
 */
spill_code_t spill_decode_field(const bson_t *document, const char *field, spill_value_t *value,
                                spill_error_t *error);

#endif
