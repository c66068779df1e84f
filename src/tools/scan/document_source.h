/*
 * Document sources: a source cuts its input into blocks of whole documents, and each worker gets
 * one block at a time. Damage is reported and skipped, as far as the documents behind it can be
 * found.
 */
#ifndef SPILL_TOOLS_SCAN_DOCUMENT_SOURCE_H
#define SPILL_TOOLS_SCAN_DOCUMENT_SOURCE_H

#include "store/raw_reader.h"
#include "tools/import/import_records.h"
#include "util/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- inputs ---------------------------------------------------------------------------------- */

/* The inputs of a source on disk: one file, or the files of a dump, one per collection. */

typedef struct spill_scan_input {
    char *path;
    char *collection; /* "shop.products" of a dump, "products" of a file; owned */
    spill_format_t format;
    spill_codec_t codec;
    bool archive;       /* of mongodump; `format` is not used */
    char *metadata;     /* path of the collection's description, or NULL; owned */
    int64_t size_bytes; /* of the file; -1: unknown */
} spill_scan_input_t;

typedef struct spill_scan_inputs {
    spill_scan_input_t *items;
    size_t count;
    int64_t size_bytes; /* of all; -1: unknown */
} spill_scan_inputs_t;

/* Report whether it is an embedded store: its folder, or "rocksdb:" and its path. */
bool spill_scan_is_store(const char *source);

/* Called for a file that should exist, or should not be empty. */
typedef void (*spill_scan_missing_fn)(void *context, const char *path, const char *text);

/*
 * Find the inputs of a path: a file, "-", or a folder as mongodump makes it, in the order of
 * collections' names. `format` (or NULL) is as import's --format. SPILL_NOT_FOUND, SPILL_INVALID:
 * it cannot be scanned. Release in every case.
 */
spill_code_t spill_scan_inputs(const char *path, const char *format, spill_scan_inputs_t *inputs,
                               spill_scan_missing_fn missing, void *context, spill_error_t *error);
/* Read an input's whole metadata; free with bson_free. NULL: it cannot be read. */
char *spill_scan_metadata(const spill_scan_input_t *input, size_t *size_bytes);
void spill_scan_inputs_release(spill_scan_inputs_t *inputs);

/* ---- document sources ------------------------------------------------------------------------ */

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
    int64_t work;    /* sources of bytes: bytes read, moved and examined so far, and other steps */
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
    int64_t work;        /* bytes read and moved; the source adds what it examines */
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

/* ---- documents behind damage ----------------------------------------------------------------- */

/*
 * Find documents again behind damage, in time that is linear in the bytes that are passed over.
 *
 * A document's fields form a chain: each field's type, name and length give the place of the next
 * one. The chain from a place does not depend on the document that the place lies in, and it ends
 * at the first byte that begins no field. So a document of `length` bytes is whole if and only if
 * the chain from its first field ends at its last byte, and that byte is 0.
 *
 * Bytes that only look like documents begin many chains, which soon run into each other. For each
 * place that a chain has passed, the search remembers a later place of the same chain, as a
 * union-find structure does. It measures each field once, however many candidates contain the
 * field.
 *
 * What is remembered is bounded (PLACES_MAX in resync.c), and so is the work: passing a byte earns
 * SPILL_RESYNC_CREDIT steps. Without credit a candidate counts as no document. Only input that was
 * made for this purpose uses up the credit.
 */

/* A longer document is skipped: no database of the family stores one. */
#define SPILL_SCAN_DOCUMENT_BYTES_MAX (24 * 1024 * 1024)

enum { SPILL_RESYNC_CREDIT = 2 };

typedef struct spill_resync spill_resync_t;

/* Bytes of the input that are in memory. */
typedef struct spill_resync_view {
    const uint8_t *data;
    size_t size;
    int64_t offset; /* of data[0] in the input */
    bool ended;     /* the input has no bytes behind these */
    bool ids;       /* all documents so far began with their _id */
} spill_resync_view_t;

typedef enum spill_sight {
    SPILL_SIGHT_NO,
    SPILL_SIGHT_YES,
    SPILL_SIGHT_CANNOT_TELL /* more bytes are needed */
} spill_sight_t;

/* One thread's. NULL may be freed. */
spill_resync_t *spill_resync_new(void);
void spill_resync_free(spill_resync_t *resync);

/* Does a document with _id as its first field begin here, and another one where it ends? O(1). */
bool spill_resync_two(const uint8_t *data, size_t size);

/*
 * Do the fields of the document of `length` bytes at data[at] end where the document ends? The
 * contents of nested documents are not checked. *passed: how far the fields go, as an index.
 * O(fields), and nothing is remembered.
 */
bool spill_resync_fits(const spill_resync_view_t *view, size_t at, size_t length, size_t *passed);

/* The same answer, from what is remembered as far as possible. */
bool spill_resync_whole(spill_resync_t *resync, const spill_resync_view_t *view, size_t at,
                        size_t length);

/*
 * Does a document begin at data[at]? One that is whole, and is followed by another whole one or by
 * the end of the input. With view->ids the first field of one of the two has to be _id. *wanted: if
 * more bytes are needed, their number from `at` on.
 */
spill_sight_t spill_resync_look(spill_resync_t *resync, const spill_resync_view_t *view, size_t at,
                                size_t *wanted);

/*
 * Move *at on to the first place where spill_resync_look sees a document, and return YES; NO at the
 * end of the input; CANNOT_TELL if `wanted` bytes from *at on are needed, or after a part of the
 * input (then *wanted is 0): poll for an interrupt, and call again.
 */
spill_sight_t spill_resync_find(spill_resync_t *resync, const spill_resync_view_t *view, size_t *at,
                                size_t *wanted);

/* Steps so far: fields measured, places followed, and bytes of long names. */
int64_t spill_resync_work(const spill_resync_t *resync);

#endif
