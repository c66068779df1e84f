/* From bytes to records: finds the first and last byte of each record, and its line. */
#ifndef SPILL_TOOLS_IMPORT_RECORDS_H
#define SPILL_TOOLS_IMPORT_RECORDS_H

#include "tools/import_source.h"

#include <stdbool.h>

typedef enum spill_format {
    SPILL_FORMAT_NDJSON, /* one document per line */
    SPILL_FORMAT_JSON,   /* one array of documents, or documents in sequence, on any lines */
    SPILL_FORMAT_CSV,    /* RFC 4180, with a header */
    SPILL_FORMAT_BSON    /* documents in sequence, as mongodump writes them */
} spill_format_t;

/* Longest text of a record. An element of 16 MiB needs less, unless most of it is white space. */
#define SPILL_RECORD_BYTES_MAX (32 * 1024 * 1024)

/* A record's bytes and place; borrowed from the reader until the next call. */
typedef struct spill_record {
    const uint8_t *data;
    size_t size;
    int64_t offset; /* of its first byte, in decompressed bytes */
    int64_t line;   /* 1-based; 0 for bson */
} spill_record_t;

typedef struct spill_records spill_records_t;

/*
 * Start reading. This skips a byte order mark and an array's opening bracket, and reads the header
 * of CSV. The caller keeps the source. Close in every case.
 */
spill_code_t spill_records_open(spill_source_t *source, spill_format_t format,
                                spill_records_t **records, spill_error_t *error);
void spill_records_close(spill_records_t *records); /* NULL is allowed */

/* The header's record, CSV only. */
const spill_record_t *spill_records_header(const spill_records_t *records);

/*
 * Read the next record; *end is true at the end of the input. SPILL_PARSE and SPILL_TOO_BIG: this
 * record is bad, and *more says whether the reader can find the record after it.
 */
spill_code_t spill_records_next(spill_records_t *records, spill_record_t *record, bool *end,
                                bool *more, spill_error_t *error);

/* The offset and line at which the reader continues. */
int64_t spill_records_offset(const spill_records_t *records);
int64_t spill_records_line(const spill_records_t *records);

/* Continue from such a place further on. SPILL_REFUSED: the input ends before it. */
spill_code_t spill_records_seek(spill_records_t *records, int64_t offset, int64_t line,
                                spill_error_t *error);

/* "events.ndjson:17", or "dump.bson: byte 4096"; cut if it is longer than the buffer. */
#define SPILL_PLACE_SIZE 320
void spill_records_place(const spill_records_t *records, int64_t line, int64_t offset,
                         char place[SPILL_PLACE_SIZE]);

#endif
