/*
 * What the files of an import share: chunks of records by owner, the thread that parses them, the
 * job checkpoint, and the appends.
 */
#ifndef SPILL_TOOLS_IMPORT_IMPORT_CHUNK_H
#define SPILL_TOOLS_IMPORT_IMPORT_CHUNK_H

#include "tools/import/import_documents.h"
#include "tools/import/import_elements.h"
#include "tools/import/import_export_lines.h"
#include "tools/import/import_given.h"
#include "tools/import/import_records.h"
#include "util/buffer.h"

#include <spillway/array.h>
#include <spillway/store.h>

/* ---- chunks ---------------------------------------------------------------------------------- */

/*
 * A chunk: consecutive records, grouped by owner. Each owner's records are appended as one batch.
 * A chunk owns all its memory.
 */

typedef struct spill_chunk_record {
    size_t offset; /* of the element in `documents` */
    uint32_t size_bytes;
    uint8_t type;
    int64_t seq;      /* its number in an export; -1: none */
    uint32_t next;    /* the owner's next record, or SPILL_CHUNK_NONE */
    size_t id_offset; /* of the operation id in `ids`; id_bytes == 0: none */
    uint32_t id_bytes;
} spill_chunk_record_t;

typedef struct spill_chunk_owner {
    uint64_t hash;
    size_t key_offset; /* in `keys` */
    size_t key_bytes;
    size_t value_offset; /* its value, in `documents` */
    uint32_t value_bytes;
    uint8_t value_type;
    uint32_t first; /* record */
    uint32_t last;
    uint32_t count;
    int64_t parts; /* batches that fit a page; an upper bound */
    int64_t part_count;
    int64_t part_bytes;
} spill_chunk_owner_t;

/* An update of an owner's other fields. Both values are in `documents`. */
typedef struct spill_chunk_update {
    size_t owner_offset, update_offset;
    uint32_t owner_bytes, update_bytes;
    uint8_t owner_type;
} spill_chunk_update_t;

#define SPILL_CHUNK_NONE UINT32_MAX

/* A base that was not read, and one to read only after the chunks before this one were applied. */
enum { SPILL_BASE_UNREAD = -1, SPILL_BASE_LATER = -2 };

/* The limits that make a chunk full. */
typedef struct spill_chunk_bounds {
    size_t records_max;
    size_t bytes_max;
    int64_t parts_max; /* of one owner: each part needs an entry of the operation window */
    int64_t page_capacity;
    int64_t part_bytes_max; /* includes bookkeeping and owner */
    int64_t op_window;
    const char *without; /* a field of the record that its element does not store; or NULL */
} spill_chunk_bounds_t;

typedef struct spill_chunk {
    /* Its place in the input. */
    int64_t number;
    int64_t offset;
    int64_t line;
    int64_t end_offset; /* behind the last record, good or bad */
    int64_t end_line;
    int64_t items;       /* of the document at `offset`: these many are in earlier chunks; ... */
    int64_t end_items;   /* ... and of the one at `end_offset`, these many are in this one */
    uint64_t hash;       /* of the records' bytes */
    int64_t record_line; /* line of the last good record */
    int64_t record_offset;

    spill_chunk_record_t *records;
    size_t record_count;
    size_t record_capacity;
    spill_chunk_update_t *updates; /* made before the appends; after them if they have numbers */
    size_t update_count;
    size_t update_capacity;
    spill_chunk_owner_t *owners; /* in the order of their first records */
    size_t owner_count;
    size_t owner_capacity;
    uint32_t *by_key; /* spill_chunk_sort: the owners' indexes in the order of their keys */
    size_t by_key_capacity;
    int64_t *bases; /* with has_bases: each owner's, or one of SPILL_BASE_... */
    size_t base_capacity;
    bool has_bases;
    uint32_t *table; /* hash table of owners' indexes; a power of two, at most half full */
    size_t table_size;
    spill_buffer_t documents;
    spill_buffer_t keys;
    spill_buffer_t ids;
    bool full;
    spill_export_lines_t lines; /* what its records are */

    int64_t split;      /* documents whose last element is in it */
    int64_t missing;    /* arrays that these lack */
    int64_t skipped;    /* bad records in it */
    spill_buffer_t bad; /* their messages, each ended by NUL */

    /* How the input ended, in the last chunk. */
    bool last;
    spill_code_t code;
    spill_error_t error;
} spill_chunk_t;

void spill_chunk_release(spill_chunk_t *chunk);

/* Empty it for another use. Its memory is kept, unless a huge record has enlarged it. */
void spill_chunk_clear(spill_chunk_t *chunk);

/*
 * Add an element. The owner may lie within it. `id` (size 0: none) is borrowed. SPILL_PARSE: the
 * value is no valid owner, or the number is not above the owner's last one. Sets chunk->full if
 * another record might not fit.
 */
spill_code_t spill_chunk_add(spill_chunk_t *chunk, const spill_chunk_bounds_t *bounds,
                             const spill_input_item_t *item, const void *id, size_t id_bytes,
                             spill_error_t *error);

/* Add an update of the owner's other fields. */
void spill_chunk_add_update(spill_chunk_t *chunk, const spill_chunk_bounds_t *bounds,
                            const spill_value_t *owner, const bson_t *update);

void spill_chunk_add_bad(spill_chunk_t *chunk, const char *message);

/* Set by_key. A store reads and writes neighbouring owners faster than others. */
void spill_chunk_sort(spill_chunk_t *chunk);

/* The owner as a value, and a record's element as a value; both borrowed from the chunk. */
spill_value_t spill_chunk_owner_value(const spill_chunk_t *chunk, const spill_chunk_owner_t *owner);
spill_value_t spill_chunk_element(const spill_chunk_t *chunk, const spill_chunk_record_t *record);

/* ---- bases (import_bases.c) ------------------------------------------------------------------ */

/*
 * A reader of bases ahead of time: while the importing thread applies a chunk, the parsing thread
 * reads the bases of the next ones. It reads none of an owner that a waiting chunk has, because the
 * owner's count of operations will rise. 256 KB.
 */
typedef struct spill_bases_reader spill_bases_reader_t;

/* `waiting_max`: how many chunks before a new one may not be applied yet. */
spill_bases_reader_t *spill_bases_reader_new(spill_array_t *array, int waiting_max);
void spill_bases_reader_free(spill_bases_reader_t *reader); /* NULL is allowed */

/* The chunk was filled and sorted: decide which bases may be read ahead. Call it for each chunk. */
void spill_bases_begin(spill_bases_reader_t *reader, spill_chunk_t *chunk);

/* Read those of the owners [from, to) in the order of keys. One store operation for each. */
void spill_bases_read(spill_bases_reader_t *reader, spill_chunk_t *chunk, size_t from, size_t to);

/* Return a base for each owner, in the order of first records. Read those that are missing. */
spill_code_t spill_import_read_bases(spill_array_t *array, const spill_chunk_t *chunk,
                                     int64_t *bases, spill_error_t *error);

/* ---- the parsing side ------------------------------------------------------------------------ */

/*
 * The parsing side of an import: a thread that reads the input ahead of the writer. It passes
 * chunks, in order, through a queue of a few. Memory is bounded for inputs of any size.
 */

typedef struct spill_parser_options {
    const char *path;
    spill_codec_t codec;
    spill_format_t format;
    const spill_documents_input_t *documents; /* instead of these three; or NULL */
    spill_elements_options_t elements;
    spill_export_lines_t lines;           /* of an export; NONE: the first record decides */
    bool new_numbers;                     /* ignore the numbers in an export */
    const spill_array_t *array;           /* checks updates of other fields */
    const char *id;                       /* or NULL */
    const spill_definition_t *definition; /* layout bucket: decides a record's window */
    bool strings;
    int64_t skip_max;
    spill_chunk_bounds_t bounds;
    spill_array_t *bases_of; /* read the bases of its owners' operations ahead; NULL: do not */
    const atomic_bool *stop; /* borrowed; once true, no longer wait for a pipe. NULL: none */

    /* Where to continue. If the end is behind the start, the first chunk is exactly this part. */
    int64_t number;
    int64_t offset;
    int64_t line;
    int64_t items;
    int64_t end_offset;
    int64_t end_items;
} spill_parser_options_t;

/* The input, opened and positioned. Zero it before, and close it after each open. (import_check.c)
 */
typedef struct spill_input {
    spill_source_t *source; /* with `records`: a file of records, ... */
    spill_records_t *records;
    spill_documents_t *documents; /* ... or an archive or a server */
    spill_decoder_t decoder;
    spill_buffer_t id; /* the checked record's operation id */
    bson_t window;     /* and its window, as an owner */
    spill_split_t split;
} spill_input_t;

spill_code_t spill_input_open(const spill_parser_options_t *options, int64_t offset, int64_t line,
                              spill_input_t *input, spill_error_t *error);
void spill_input_close(spill_input_t *input);

/* As spill_records_next, spill_records_offset, and so on. */
spill_code_t spill_input_next(spill_input_t *input, spill_input_record_t *record, bool *end,
                              bool *more, spill_error_t *error);
int64_t spill_input_offset(const spill_input_t *input);
int64_t spill_input_line(const spill_input_t *input);
void spill_input_place(const spill_input_t *input, int64_t line, int64_t offset,
                       char place[SPILL_PLACE_SIZE]);

/* Bytes of the file (documents of a server) read so far, and their number or -1. */
int64_t spill_input_done(const spill_input_t *input);
int64_t spill_input_expected(const spill_input_t *input);

/*
 * Check that the item is an element of the definition, or a possible update. Set its owner to a
 * window, which borrows from the input, its number to -1 if it is not kept, and the input's id.
 */
spill_code_t spill_input_check(spill_input_t *input, const spill_parser_options_t *options,
                               spill_input_item_t *item, spill_error_t *error);

/*
 * Check every item of the document, with input->split. *storable is false if the layout cannot
 * store an element. SPILL_PARSE and others: the message names the owner, but not the place.
 */
spill_code_t spill_input_check_items(spill_input_t *input, const spill_parser_options_t *options,
                                     const bson_t *document, bool *storable, spill_error_t *error);

/* Put the record's place in front of an error's message. */
spill_code_t spill_input_fail(const spill_input_t *input, const spill_input_record_t *record,
                              spill_code_t code, spill_error_t *error);

/* `report` is called now and then with the bytes read so far and the size or -1. */
typedef struct spill_import_checking {
    void (*report)(void *context, int64_t checked, int64_t bytes_done, int64_t bytes_total);
    void *context;
} spill_import_checking_t;

/*
 * Layouts reference and subset: check, before anything is written, that every record from this
 * place on can be stored. SPILL_PARSE names the first one that cannot, and is not skipped because
 * of skip_max. Other layouts, inputs that cannot be read twice (pipes), and imports that skip all
 * bad records are not checked: SPILL_OK at once. Bad records of other kinds are left to the import.
 * Cost: reads and decodes the input; memory for one record.
 */
spill_code_t spill_import_check(const spill_parser_options_t *options, int64_t offset, int64_t line,
                                const spill_import_checking_t *checking, spill_error_t *error);

typedef struct spill_parser spill_parser_t;

/* Is the first chunk one that an earlier run has begun? */
bool spill_parser_continues(const spill_parser_options_t *options);

/* Open the input and start. The options' strings are borrowed. Stop in every case. */
spill_code_t spill_parser_start(const spill_parser_options_t *options, spill_parser_t **parser,
                                spill_error_t *error);
void spill_parser_stop(spill_parser_t *parser); /* waits for the thread; NULL is allowed */

/* Wait for the next chunk. After a chunk with `last` set, do not call it again. */
spill_chunk_t *spill_parser_next(spill_parser_t *parser);

/* Return a chunk after use: the parser fills it again. */
void spill_parser_return(spill_parser_t *parser, spill_chunk_t *chunk);

/* Bytes of the file read so far, and its size or -1. */
int64_t spill_parser_position(const spill_parser_t *parser);
int64_t spill_parser_size(const spill_parser_t *parser);

/* The name of a record of this input for messages. */
void spill_parser_place(const spill_parser_t *parser, int64_t line, int64_t offset,
                        char place[SPILL_PLACE_SIZE]);

/* ---- the checkpoint -------------------------------------------------------------------------- */

/*
 * The job checkpoint of an import in the store's catalog. It describes the last chunk that was
 * begun, so a resumed import applies nothing twice and leaves nothing out.
 */

typedef struct spill_import_checkpoint {
    /* What is imported, and how. Borrowed; after a load, from the stored document. */
    const char *definition;
    const char *source;
    const char *format;
    spill_import_given_t given;
    int64_t lines; /* spill_export_lines_t */

    /* The chunk. `bases` has an entry for each owner, in the order of their first records. */
    int64_t run; /* raised by each import from the start */
    int64_t chunk;
    int64_t offset;
    int64_t line;
    int64_t end_offset;
    int64_t end_line;
    int64_t items; /* as in the chunk */
    int64_t end_items;
    uint64_t hash;
    spill_bounds_t bounds; /* with op_window, they decide how batches are split */
    int64_t op_window;
    int64_t records;   /* in the chunk */
    int64_t before;    /* records of the chunks before it */
    bool applied;      /* every record of it is stored or was reported as bad */
    bool finished;     /* applied, and it is the last chunk */
    int64_t *bases;    /* owned */
    size_t base_count; /* 0 if the chunk was applied */
} spill_import_checkpoint_t;

/* The catalog's name for the checkpoint of (definition, source). */
#define SPILL_IMPORT_CHECKPOINT_NAME_SIZE 192
void spill_import_checkpoint_name(const char *definition, const char *source,
                                  char name[SPILL_IMPORT_CHECKPOINT_NAME_SIZE]);

/* 16 hexadecimal digits that identify an import in operation ids. */
#define SPILL_IMPORT_ID_SIZE 17
void spill_import_id(const char *name, char id[SPILL_IMPORT_ID_SIZE]);

/*
 * Load. *stored is new (bson_destroy); if no checkpoint is stored, it is NULL and the checkpoint is
 * zeroed. The checkpoint's strings borrow from *stored. SPILL_CORRUPT. Release the checkpoint in
 * every case.
 */
spill_code_t spill_import_checkpoint_load(spill_store_t *store, const char *name, bson_t **stored,
                                          spill_import_checkpoint_t *checkpoint,
                                          spill_error_t *error);
void spill_import_checkpoint_release(spill_import_checkpoint_t *checkpoint);

/*
 * Replace *stored (NULL: no checkpoint is stored yet), which becomes the document that was saved.
 * SPILL_CONFLICT: the catalog has another document, so another import of this name is running.
 */
spill_code_t spill_import_checkpoint_save(spill_store_t *store, const char *name,
                                          const spill_import_checkpoint_t *checkpoint,
                                          bson_t **stored, spill_error_t *error);

/* Delete the checkpoints of all imports into a definition that is about to be dropped. */
spill_code_t spill_import_checkpoints_drop(spill_store_t *store, const char *definition,
                                           spill_error_t *error);

/* ---- the appends ----------------------------------------------------------------------------- */

#define SPILL_IMPORT_PREFIX_SIZE 40

typedef struct spill_import_writer {
    spill_array_t *array;
    const char *input; /* its name in messages; borrowed */
    int64_t op_window;
    char prefix[SPILL_IMPORT_PREFIX_SIZE]; /* of operation ids; "": appends carry none */
    bool with_ids;                         /* each record is one operation */
    spill_element_t *elements;             /* scratch */
    size_t element_capacity;
    bool fill;             /* fill documents up (spill_append_options) */
    int64_t records;       /* appended, or recognized, so far */
    int64_t repeated;      /* of these, recognized */
    int64_t dropped;       /* of these, dropped at once because of a cap */
    int64_t duplicates;    /* of these, left out because a set has their ids */
    int64_t updates;       /* of other fields */
    spill_value_t *values; /* scratch */
    size_t value_capacity;
} spill_import_writer_t;

void spill_import_writer_release(spill_import_writer_t *writer);

/*
 * Append the chunk. With the bases of the first try, the chunk may be applied again after any
 * interruption. `bases` may be NULL if appends have no operation ids.
 */
spill_code_t spill_import_apply(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                const int64_t *bases, spill_error_t *error);

/*
 * Set the chunk's other fields of heads. A chunk that is applied again sets them to the same
 * values, before later chunks do.
 */
spill_code_t spill_import_apply_updates(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                        spill_error_t *error);

/* ---- records with numbers (import_numbered.c) ------------------------------------------------ */

/* Do the chunk's elements keep their numbers? */
bool spill_chunk_is_numbered(const spill_chunk_t *chunk, const spill_parser_options_t *options);

/*
 * Return, for each owner, the number from which the chunk's elements are appended. Compare those
 * below it with the owner's elements. SPILL_REFUSED: they differ. Nothing is written.
 */
spill_code_t spill_import_read_numbers(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                       int64_t *bases, spill_error_t *error);

/* spill_import_apply for such a chunk, with these bases. */
spill_code_t spill_import_apply_numbered(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                         const int64_t *bases, spill_error_t *error);

#endif
