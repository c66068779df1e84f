/*
 * Document sources: a source cuts its input into blocks of whole documents, and each worker gets
 * one block at a time. Damage is reported and skipped, as far as the documents behind it can be
 * found.
 */
#ifndef SPILL_TOOLS_SCAN_DOCUMENT_SOURCE_H
#define SPILL_TOOLS_SCAN_DOCUMENT_SOURCE_H

#include "store/raw_reader.h"
#include "tools/import_records.h"
#include "util/buffer.h"

#define SPILL_BLOCK_BYTES (1024 * 1024) /* size of a block, unless one document is larger */

typedef struct spill_document_source_record {
    size_t at; /* in the block */
    size_t size_bytes;
    int64_t place; /* its offset in the decompressed input, or its line */
} spill_document_source_record_t;

typedef struct spill_block {
    spill_buffer_t data;
    spill_document_source_record_t *records;
    size_t count;
    size_t capacity;
    size_t collection; /* an index that the source assigns */
} spill_block_t;

void spill_block_clear(spill_block_t *block); /* also frees the memory of a huge document */
void spill_block_release(spill_block_t *block);
void spill_block_add(spill_block_t *block, size_t at, size_t size_bytes, int64_t place);

/*
 * Report damage in the input. `place`: as in records; -1 if it is unknown. `text` ends a sentence,
 * as in "the document is cut off".
 */
typedef void (*spill_document_source_problem_fn)(void *context, int64_t place, const char *text);

enum { SPILL_DOCUMENT_SOURCE_REPORTS = 1000 };

typedef struct spill_document_source spill_document_source_t;

typedef struct spill_document_source_ops {
    /* Fill an empty block with the next documents; at the end it stays empty. */
    spill_code_t (*next)(spill_document_source_t *document_source, spill_block_t *block,
                         spill_error_t *error);
    void (*close)(spill_document_source_t *document_source);
    /* NULL if the source has one collection. Return a collection's name, borrowed; *ended: the
     * source has no further documents of it. */
    const char *(*collection)(const spill_document_source_t *document_source, size_t index,
                              bool *ended);
    /* NULL if not supported. A collection's description as mongodump writes it, or NULL. */
    const char *(*metadata)(const spill_document_source_t *document_source, size_t index);
    bool text;    /* records are Extended JSON */
    bool by_line; /* places are lines */
} spill_document_source_ops_t;

struct spill_document_source {
    const spill_document_source_ops_t *ops;
    spill_source_t *source; /* NULL if it is no file */
    const char *name;       /* of the file, for messages */
    int64_t done;           /* records so far, if it is no file */
    int64_t expected;       /* records in all, if it is no file; or -1 */
    spill_document_source_problem_fn problem;
    void *context;
    int64_t reports; /* so far; later ones than SPILL_DOCUMENT_SOURCE_REPORTS only have the place */
};

/*
 * Open a file's document source: BSON documents in sequence, or lines or documents of Extended
 * JSON. It owns `source` from then on. SPILL_IO, SPILL_PARSE. Close in every case.
 */
spill_code_t spill_document_source_bson(spill_source_t *source,
                                        spill_document_source_t **document_source,
                                        spill_error_t *error);
spill_code_t spill_document_source_text(spill_source_t *source, spill_format_t format,
                                        spill_document_source_t **document_source,
                                        spill_error_t *error);
spill_code_t spill_document_source_archive(spill_source_t *source,
                                           spill_document_source_t **document_source,
                                           spill_error_t *error);

/*
 * The document source of a server's collection: all documents, or with `sample` > 0 that number;
 * with `rate` > 0 at most that number per second. The reader is borrowed, and must have no other
 * source meanwhile.
 */
spill_document_source_t *spill_document_source_server(spill_raw_reader_t *reader,
                                                      const char *collection, int64_t sample,
                                                      int64_t rate);
void spill_document_source_close(spill_document_source_t *document_source); /* NULL is allowed */

void spill_document_source_report(spill_document_source_t *document_source, int64_t place,
                                  const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Report whether it is a pipe: whether it has any bytes is not known before the first read. */
bool spill_document_source_has_no_size(const spill_document_source_t *document_source);

/* ---- for document sources of bytes ----------------------------------------------------------- */

/* A file's bytes: some are in a block, and some were read beyond it. */
typedef struct spill_document_source_window {
    spill_buffer_t rest; /* read, but in no block yet */
    int64_t offset;      /* of the block's first byte */
    bool ended;
    bool failed; /* it ended with a read error, which was reported */
} spill_document_source_window_t;

/* Move the rest to the block, which is empty. */
void spill_document_source_window_begin(spill_document_source_window_t *window,
                                        spill_block_t *block);
/* Read until the block has at least `wanted` bytes or the input ends. */
void spill_document_source_window_fill(spill_document_source_t *document_source,
                                       spill_document_source_window_t *window, spill_block_t *block,
                                       size_t wanted);
/* Report whether the scan was interrupted. Loops over damage poll this. */
bool spill_document_source_interrupted(const spill_document_source_t *document_source);

/* Remove the block's first bytes. */
void spill_document_source_window_drop(spill_document_source_window_t *window, spill_block_t *block,
                                       size_t count);
/* Move what is behind the block's first `count` bytes to the rest, for the next block. */
void spill_document_source_window_keep(spill_document_source_window_t *window, spill_block_t *block,
                                       size_t count);

#endif
