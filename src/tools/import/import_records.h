/*
 * The input of an import or a scan, from bytes to documents: a source gives decompressed bytes,
 * records are found in them, and each is decoded.
 */
#ifndef SPILL_TOOLS_IMPORT_IMPORT_RECORDS_H
#define SPILL_TOOLS_IMPORT_IMPORT_RECORDS_H

#include <spillway/error.h>
#include <spillway/value.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- source: the bytes of a file or stdin ---------------------------------------------------- */

typedef enum spill_codec { SPILL_CODEC_PLAIN, SPILL_CODEC_GZIP, SPILL_CODEC_ZSTD } spill_codec_t;

typedef struct spill_source spill_source_t;

/* Open a file, or stdin ("-"). SPILL_NOT_FOUND, SPILL_DENIED, SPILL_IO. Close in every case. */
spill_code_t spill_source_open(const char *path, spill_codec_t codec, spill_source_t **source,
                               spill_error_t *error);
void spill_source_close(spill_source_t *source); /* NULL is allowed */

/*
 * Report whether the input can be read twice: it is a regular file, also as stdin. After the first
 * reading, `rewind` returns stdin to the place at which the source was opened; close the source
 * then.
 */
bool spill_source_repeats(const char *path);
void spill_source_rewind(spill_source_t *source);

/*
 * Once *stop is true, do not wait for bytes. If a pipe has no bytes at that time, its input ends
 * there. `stop` is borrowed until the source is closed.
 */
void spill_source_stop_by(spill_source_t *source, const atomic_bool *stop);
bool spill_source_stopped(const spill_source_t *source); /* *stop has ended the source */

/* Read *stop; if it is true, end the source. Long loops poll this. O(1). */
bool spill_source_check_stop(spill_source_t *source);

/*
 * Read up to `size` decompressed bytes; *got is 0 only at the end. SPILL_PARSE: the compressed data
 * is damaged or cut off. SPILL_IO: reading failed.
 */
spill_code_t spill_source_read(spill_source_t *source, uint8_t *data, size_t size, size_t *got,
                               spill_error_t *error);

/* Skip decompressed bytes; immediate in an uncompressed file. Past the end, *passed is less. */
spill_code_t spill_source_skip(spill_source_t *source, int64_t bytes, int64_t *passed,
                               spill_error_t *error);

const char *spill_source_name(const spill_source_t *source); /* the path, or "stdin" */

/*
 * Bytes of the file read so far (any thread may call it), and its size or -1. Stdin may begin
 * inside a file: both count from there.
 */
int64_t spill_source_position(const spill_source_t *source);
int64_t spill_source_size(const spill_source_t *source);

/* ---- records: the first and last byte of each, and its line ---------------------------------- */

typedef enum spill_format {
    SPILL_FORMAT_NDJSON, /* one document per line */
    SPILL_FORMAT_JSON,   /* one array of documents, or documents in sequence, on any lines */
    SPILL_FORMAT_CSV,    /* RFC 4180, with a header */
    SPILL_FORMAT_BSON    /* documents in sequence, as mongodump writes them */
} spill_format_t;

/* Longest text of a record. An element of 16 MiB needs less, unless most of it is white space. */
#define SPILL_RECORD_BYTES_MAX (32 * 1024 * 1024)

/* A record's bytes and place; borrowed from the reader until the next call. */
typedef struct spill_input_record {
    const uint8_t *data;
    size_t size;
    int64_t offset; /* of its first byte, in decompressed bytes */
    int64_t line;   /* 1-based; 0 for bson */
} spill_input_record_t;

typedef struct spill_records spill_records_t;

/*
 * Start reading. This skips a byte order mark and an array's opening bracket, and reads the header
 * of CSV. The caller keeps the source. Close in every case.
 */
spill_code_t spill_records_open(spill_source_t *source, spill_format_t format,
                                spill_records_t **records, spill_error_t *error);
void spill_records_close(spill_records_t *records); /* NULL is allowed */

/* The header's record, CSV only. */
const spill_input_record_t *spill_records_header(const spill_records_t *records);

/*
 * Read the next record; *end is true at the end of the input. SPILL_PARSE and SPILL_TOO_BIG: this
 * record is bad, and *more says whether the reader can find the record after it.
 */
spill_code_t spill_records_next(spill_records_t *records, spill_input_record_t *record, bool *end,
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

/*
 * Parse "ndjson.gz", or, with `is_path`, a file name that ends in ".ndjson.gz". False: the text
 * names no format.
 */
bool spill_import_format(const char *text, bool is_path, spill_format_t *format,
                         spill_codec_t *codec);

/* Find the end of the record that begins at `data`: a pure function for each format. */

/* How a scan ended. *length: of the record with its line end, or of what was scanned. */
typedef enum spill_record_end {
    SPILL_RECORD_WHOLE,
    SPILL_RECORD_MORE,
    SPILL_RECORD_BAD
} spill_record_end_t;

spill_record_end_t spill_record_end_line(const uint8_t *data, size_t size, size_t *length);

/* Quotes open only at the start of a field; within them a newline is text. */
spill_record_end_t spill_record_end_csv(const uint8_t *data, size_t size, size_t *length);

/* Find a document's end by its brackets. BAD: no document begins at `data`. */
spill_record_end_t spill_record_end_document(const uint8_t *data, size_t size, size_t *length);

/* ---- documents, and the fields with the owner and the operation id --------------------------- */

typedef struct spill_decoder {
    spill_format_t format;
    bool strings; /* CSV: values stay strings */
    char **names; /* CSV: the columns, from the header */
    size_t name_count;
} spill_decoder_t;

/* `header`: the record of the CSV header; ignored for other formats. */
spill_code_t spill_decoder_init(spill_decoder_t *decoder, spill_format_t format, bool strings,
                                const spill_input_record_t *header, spill_error_t *error);
void spill_decoder_release(spill_decoder_t *decoder);

/*
 * Decode the record into `document`, which the call initializes if it succeeds. JSON text gives
 * what libbson makes of it, BSON the same bytes, and a CSV line {column: value, ...}. SPILL_PARSE,
 * SPILL_TOO_BIG; the message does not name the record's place.
 */
spill_code_t spill_decode(const spill_decoder_t *decoder, const spill_input_record_t *record,
                          bson_t *document, spill_error_t *error);

/*
 * Find a field of the document: by its whole name, else by a path with dots. SPILL_PARSE: there is
 * no such field. The value borrows from the document.
 */
spill_code_t spill_decode_field(const bson_t *document, const char *field, spill_value_t *value,
                                spill_error_t *error);

#endif
