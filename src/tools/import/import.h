/*
 * Import: append the records of a file to their owners' arrays, in the file's order.
 *
 * Each record is appended exactly once, even if the process is killed. The input is processed in
 * chunks. Before a chunk is applied, a job checkpoint in the store's catalog records its bytes and,
 * for each owner in it, the base of the next append. Then each owner gets one batch with operation
 * id "<import>.<run>:<chunk>". An import that is started again reads that chunk again and applies
 * it with the same ids and bases. Batches that were applied are recognized, the others are
 * appended.
 *
 *      parser thread:   source -> records -> decode -> elements -> chunk -> queue
 *      calling thread:  queue -> bases -> checkpoint -> appends -> progress
 *
 * The files of an import, in the order to read:
 *   import_source.c    the bytes of an input, and its format
 *   import_records.c   records in these bytes; import_decode.c makes documents of them
 *   import_documents.c documents of an archive or a server
 *   import_elements.c  the elements of a document that has an array or a map; import_fields.c its
 *                      other fields
 *   import_export_lines.c  the lines of an export
 *   import_exported.c  heads and pages of an export; import_exported_items.c their elements
 *   import_names.c     the names in these documents, which the lines of heads carry
 *   import_given.c     the options that must not change between the runs of an import
 *   import_chunk.c     records by owner; import_bases.c reads the bases of their operations ahead
 *   import_check.c     an opened input; the check of reference and subset before the first write
 *   import_parser.c    the thread that fills chunks
 *   import_apply.c     the job checkpoint, and the appends of a chunk
 *   import_numbered.c  the appends of a chunk of an export, whose elements keep their numbers
 *   import.c           the whole import
 */
#ifndef SPILL_TOOLS_IMPORT_IMPORT_H
#define SPILL_TOOLS_IMPORT_IMPORT_H

#include <spillway/array.h>

typedef struct spill_import_progress {
    bool checks;     /* nothing is written yet: `records` were checked */
    int64_t records; /* of this run: appended, or recognized as already appended */
    bool elements;   /* these are elements (`checks`: documents); bytes of a server are documents */
    int64_t skipped; /* bad records */
    int64_t bytes_done;  /* of the file as stored on disk, before decompression */
    int64_t bytes_total; /* -1: unknown */
} spill_import_progress_t;

typedef struct spill_import_options {
    const char *path; /* "-": stdin; with `elements` also a folder, an archive or a server's URI */
    const char *as;   /* the import's name; NULL: the file's absolute path */
    const char *format; /* "ndjson", "json", "csv" or "bson", with ".gz" or ".zst" if it is
                           compressed; NULL: by the file's name, and ndjson for stdin */
    const char *owner;  /* the field that names a record's owner; dots reach into sub-documents.
                           NULL:  the records are lines of an export, whose elements keep their
                           numbers if  the array counts as the export does */
    bool new_numbers;   /* of an export: append to what the owners have */
    /*
     * The records are documents with an array: its path, or NULL. The other options are as those of
     * spill_elements_options_t; `collection` is as in spill_documents_find.
     */
    const char *elements;
    const char *entries_as;
    const char *owner_inner;
    const char *collection;
    bool fields;
    const char *id;   /* the field that is a record's operation id, or NULL */
    bool again;       /* import from the start and ignore the job checkpoint */
    bool strings;     /* CSV: every value stays a string */
    int64_t skip_max; /* bad records to skip; 0: stop at the first */

    /* Both may be NULL; called on the calling thread. */
    void (*bad)(void *context, const char *message); /* a record that is skipped */
    void (*progress)(void *context, const spill_import_progress_t *progress); /* after each chunk */
    void *context;
} spill_import_options_t;

typedef struct spill_import_result {
    int64_t records;    /* of this run; with `elements` these are elements */
    int64_t repeated;   /* of these, recognized as already appended */
    int64_t dropped;    /* layout capped: of these, dropped at once because of the cap. An export:
                           or trimmed in the array */
    int64_t duplicates; /* a set: of these, left out because the owner has their ids */
    int64_t renumbered; /* an export: of these, with other numbers than in the export */
    int64_t skipped;    /* bad records passed over in this run */
    int64_t before;     /* records of earlier runs of this import */
    /* With `elements`, of this run: */
    int64_t documents; /* documents whose elements were imported */
    int64_t missing;   /* arrays that these lack */
    int64_t updates;   /* heads whose other fields were set */
    bool at_least;     /* a chunk of an earlier run is imported in part, and not counted */
    bool resumable;    /* a job checkpoint exists, from which the import can continue */
} spill_import_result_t;

/*
 * Import a file into an array of the store. An import of stdin without a name (`as`) saves no job
 * checkpoint: it cannot be resumed.
 *
 * Errors: SPILL_PARSE (a malformed record, or one without a valid owner; the message names
 * file:line), SPILL_TOO_BIG (an element that fits no document). In both cases all records before
 * the bad one are appended; after the record is repaired, the same call continues with it. If the
 * input is a regular file and the layout reference or subset, a record with a field that cannot be
 * stored is reported before anything is written.
 * SPILL_REFUSED (already imported, or the input is not what the checkpoint describes; an export:
 * the owner has another element of a number; nothing of that chunk is then appended),
 * SPILL_UNKNOWN, and the errors of spill_array_append. *result is filled in every case. One thread;
 * memory: a few chunks, and 32 MiB of text for the longest record.
 */
spill_code_t spill_import(spill_store_t *store, spill_array_t *array,
                          const spill_import_options_t *options, spill_import_result_t *result,
                          spill_error_t *error);

#endif
