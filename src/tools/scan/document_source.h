/*
 * Where documents come from: a feed cuts its input into blocks of whole documents, which workers
 * take one at a time. What is damaged is reported, and passed over as far as what follows can be
 * found again.
 */
#ifndef SPILL_TOOLS_SCAN_DOCUMENT_SOURCE_H
#define SPILL_TOOLS_SCAN_DOCUMENT_SOURCE_H

#include "store/raw_reader.h"
#include "tools/import_records.h"
#include "util/buffer.h"

#define SPILL_BLOCK_BYTES (1024 * 1024) /* of a block, unless one document is larger */

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
    size_t collection; /* an index, given by the feed */
} spill_block_t;

void spill_block_clear(spill_block_t *block); /* what a huge document took is given back */
void spill_block_release(spill_block_t *block);
void spill_block_add(spill_block_t *block, size_t at, size_t size_bytes, int64_t place);

/*
 * Something is wrong in the input. `place` as of records, -1 where none can be told. `text` is a
 * sentence's end: "the document is cut off".
 */
typedef void (*spill_document_source_problem_fn)(void *context, int64_t place, const char *text);

enum { SPILL_DOCUMENT_SOURCE_REPORTS = 1000 };

typedef struct spill_document_source spill_document_source_t;

typedef struct spill_document_source_ops {
    /* The next block into an empty one; none where that is left empty. */
    spill_code_t (*next)(spill_document_source_t *document_source, spill_block_t *block,
                         spill_error_t *error);
    void (*close)(spill_document_source_t *document_source);
    /* Of feeds of several collections, else NULL: one's name, borrowed, and is there no more of it?
     */
    const char *(*collection)(const spill_document_source_t *document_source, size_t index,
                              bool *ended);
    /* Of feeds that have them, else NULL: one's description as mongodump writes it, or NULL. */
    const char *(*metadata)(const spill_document_source_t *document_source, size_t index);
    bool text;    /* records are Extended JSON */
    bool by_line; /* places are lines */
} spill_document_source_ops_t;

struct spill_document_source {
    const spill_document_source_ops_t *ops;
    spill_source_t *source; /* NULL where it is no file */
    const char *name;       /* of the file, for messages */
    int64_t done;           /* records so far, and how many there may be; of what is no file */
    int64_t expected;       /* or -1 */
    spill_document_source_problem_fn problem;
    void *context;
    int64_t reports; /* so far; after SPILL_DOCUMENT_SOURCE_REPORTS they only name the place */
};

/*
 * Open a file's feed: of documents one after the other in BSON, or of lines or documents of
 * Extended JSON. The source becomes the feed's. SPILL_IO, SPILL_PARSE. Close in every case.
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
 * The feed of a server's collection: all of it, or with `sample` > 0 so many documents; with `rate`
 * > 0 at most so many a second. The browser is borrowed, and has no other feed at the time.
 */
spill_document_source_t *spill_document_source_server(spill_raw_reader_t *reader,
                                                      const char *collection, int64_t sample,
                                                      int64_t rate);
void spill_document_source_close(spill_document_source_t *document_source); /* NULL is allowed */

void spill_document_source_report(spill_document_source_t *document_source, int64_t place,
                                  const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Is it a pipe, of which it is not known before that there is nothing in it? */
bool spill_document_source_has_no_size(const spill_document_source_t *document_source);

/* ---- what feeds of bytes are made of --------------------------------------------------------- */

/* A file's bytes, of which some are in a block and some were read beyond it. */
typedef struct spill_document_source_window {
    spill_buffer_t rest; /* read, and not in a block yet */
    int64_t offset;      /* of the block's first byte */
    bool ended;
    bool failed; /* ... and not by the end of the file; that was reported */
} spill_document_source_window_t;

/* The rest to the block, which is empty. */
void spill_document_source_window_begin(spill_document_source_window_t *window,
                                        spill_block_t *block);
/* Have at least `wanted` bytes in the block, unless the input ends before. */
void spill_document_source_window_fill(spill_document_source_t *document_source,
                                       spill_document_source_window_t *window, spill_block_t *block,
                                       size_t wanted);
/* Has the scan been interrupted? To be polled where damage is passed over. */
bool spill_document_source_interrupted(const spill_document_source_t *document_source);

/* Take the block's first bytes away. */
void spill_document_source_window_drop(spill_document_source_window_t *window, spill_block_t *block,
                                       size_t count);
/* What is behind the block's first `count` bytes is for the next one. */
void spill_document_source_window_keep(spill_document_source_window_t *window, spill_block_t *block,
                                       size_t count);

#endif
