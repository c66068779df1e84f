/* One CSV record (RFC 4180): fields between commas, quoted if they contain commas or newlines. */
#ifndef SPILL_TOOLS_IMPORT_CSV_H
#define SPILL_TOOLS_IMPORT_CSV_H

#include "util/buffer.h"

#include <spillway/error.h>

#include <stdbool.h>

typedef struct spill_csv_field {
    const char *text; /* ended by NUL */
    size_t size;
    bool quoted;
} spill_csv_field_t;

/* Reads the fields of one record, from `at` to `end`, without its line end. */
typedef struct spill_csv {
    const uint8_t *at;
    const uint8_t *end;
    bool more;     /* another field follows */
    size_t column; /* 1-based, of the field last read */
    spill_buffer_t text;
} spill_csv_t;

void spill_csv_init(spill_csv_t *csv, const uint8_t *data, size_t size);
void spill_csv_release(spill_csv_t *csv);

/* Read the next field while csv->more; borrowed until the next call. SPILL_PARSE: the message
 * names the column. */
spill_code_t spill_csv_next(spill_csv_t *csv, spill_csv_field_t *field, spill_error_t *error);

#endif
