/* From bytes to records: finds where each one begins and ends, and on which line it stands. */
#ifndef SPILL_TOOLS_IMPORT_RECORDS_H
#define SPILL_TOOLS_IMPORT_RECORDS_H

#include "tools/import_source.h"

#include <stdbool.h>

typedef enum spill_format {
    SPILL_FORMAT_NDJSON, /* a document a line */
    SPILL_FORMAT_JSON,   /* documents one after the other, on any lines, or one array of them */
    SPILL_FORMAT_CSV,    /* RFC 4180, with a header */
    SPILL_FORMAT_BSON    /* documents one after the other, as mongodump writes them */
} spill_format_t;

/* Longest text of a record. An element of 16 MiB takes less, unless most of it is white space. */
#define SPILL_RECORD_BYTES_MAX (32 * 1024 * 1024)

/* Where a record stands: borrowed from the reader until the next call. */
typedef struct spill_record {
    const uint8_t *data;
    size_t size;
    int64_t offset; /* of its first byte, in decompressed bytes */
    int64_t line;   /* 1-based; 0 for bson */
} spill_record_t;

typedef struct spill_records spill_records_t;

/*
 * Start reading. A byte order mark is passed over, an array's opening bracket too, and of CSV the
 * header is read. The source stays the caller's. Close in every case.
 */
spill_code_t spill_records_open(spill_source_t *source, spill_format_t format,
                                spill_records_t **records, spill_error_t *error);
void spill_records_close(spill_records_t *records); /* NULL is allowed */

/* The header's record, CSV only. */
const spill_record_t *spill_records_header(const spill_records_t *records);

/*
 * The next record; *end is true where there is none. SPILL_PARSE and SPILL_TOO_BIG: this record is
 * bad, and *more says whether what follows it can be found all the same.
 */
spill_code_t spill_records_next(spill_records_t *records, spill_record_t *record, bool *end,
                                bool *more, spill_error_t *error);

/* Where the next record will be looked for: an offset and a line to go on from. */
int64_t spill_records_offset(const spill_records_t *records);
int64_t spill_records_line(const spill_records_t *records);

/* Go on from such a place, further on. SPILL_REFUSED where the input ends before it. */
spill_code_t spill_records_seek(spill_records_t *records, int64_t offset, int64_t line,
                                spill_error_t *error);

/* "events.ndjson:17", or "dump.bson: byte 4096". The buffer holds any such text, cut if need be. */
#define SPILL_PLACE_SIZE 320
void spill_records_place(const spill_records_t *records, int64_t line, int64_t offset,
                         char place[SPILL_PLACE_SIZE]);

#endif
