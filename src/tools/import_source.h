/* The bytes of an input: a file or stdin, decompressed while reading. */
#ifndef SPILL_TOOLS_IMPORT_SOURCE_H
#define SPILL_TOOLS_IMPORT_SOURCE_H

#include <spillway/error.h>

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef enum spill_codec { SPILL_CODEC_PLAIN, SPILL_CODEC_GZIP, SPILL_CODEC_ZSTD } spill_codec_t;

typedef struct spill_source spill_source_t;

/* Open a file, or stdin ("-"). SPILL_NOT_FOUND, SPILL_DENIED, SPILL_IO. Close in every case. */
spill_code_t spill_source_open(const char *path, spill_codec_t codec, spill_source_t **source,
                               spill_error_t *error);
void spill_source_close(spill_source_t *source); /* NULL is allowed */

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

/* Bytes of the file read so far (any thread may call it), and its size or -1. */
int64_t spill_source_position(const spill_source_t *source);
int64_t spill_source_size(const spill_source_t *source);

#endif
