/* From a record's bytes to a document, and to the fields that name its owner and its operation. */
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

/* `header` is the CSV header's record, and not looked at for other formats. */
spill_code_t spill_decoder_init(spill_decoder_t *decoder, spill_format_t format, bool strings,
                                const spill_record_t *header, spill_error_t *error);
void spill_decoder_release(spill_decoder_t *decoder);

/*
 * The record as a document, into `document`, which is initialized by the call where it succeeds:
 * exactly what libbson makes of JSON text, exactly the bytes of a BSON document, and {column:
 * value, ...} of a CSV line. SPILL_PARSE, SPILL_TOO_BIG; the message does not name the place.
 */
spill_code_t spill_decode(const spill_decoder_t *decoder, const spill_record_t *record,
                          bson_t *document, spill_error_t *error);

/*
 * A field of the document: by its whole name, or else by a path with dots. SPILL_PARSE where there
 * is none. The value borrows from the document.
 */
spill_code_t spill_decode_field(const bson_t *document, const char *field, spill_value_t *value,
                                spill_error_t *error);

#endif
