/*
 * Import: the records of a file become elements of their owners' arrays, in the file's order.
 *
 * Exactly once, whatever kills the process. The input is worked off in chunks. Before a chunk is
 * applied, a mark in the store's catalog says which bytes it is and, for each owner in it, the base
 * of the operation that will append its elements; then each owner gets one batch with operation id
 * "<import>.<run>:<chunk>". An import that is started again reads the marked chunk again and
 * applies it with the same ids and bases: what was applied is recognized, what was not is appended.
 *
 *      parser thread                         calling thread
 *      source -> records -> decode -> chunk  ---queue--->  bases, mark, appends, progress
 */
#ifndef SPILL_TOOLS_IMPORT_H
#define SPILL_TOOLS_IMPORT_H

#include <spillway/array.h>

typedef struct spill_import_progress {
    int64_t records;     /* of this run: appended, or recognized as appended before */
    int64_t skipped;     /* bad records */
    int64_t bytes_done;  /* of the file as it lies on disk */
    int64_t bytes_total; /* -1: not known */
} spill_import_progress_t;

typedef struct spill_import_options {
    const char *path;   /* "-": stdin */
    const char *as;     /* the import's name; NULL: the file's absolute path */
    const char *format; /* "ndjson", "json", "csv" or "bson", with ".gz" or ".zst" where it is
                           compressed; NULL: by the file's name, and ndjson for stdin */
    const char *owner;  /* the field that names a record's owner; dots reach into sub-documents */
    const char *id;     /* the field that is a record's operation id, or NULL */
    bool again;         /* from the start, whatever the mark says */
    bool strings;       /* CSV: every value stays a string */
    int64_t skip_max;   /* bad records to pass over; 0: stop at the first */

    /* Both may be NULL; called on the calling thread. */
    void (*bad)(void *context, const char *message); /* a record that is passed over */
    void (*progress)(void *context, const spill_import_progress_t *progress); /* after each chunk */
    void *context;
} spill_import_options_t;

typedef struct spill_import_result {
    int64_t records;  /* of this run */
    int64_t repeated; /* of which recognized as appended before */
    int64_t dropped;  /* layout capped: of which the cap did not keep when they came */
    int64_t skipped;  /* bad records passed over in this run */
    int64_t before;   /* records of earlier runs of this import */
    bool resumable;   /* is there a mark to go on from? */
} spill_import_result_t;

/*
 * Import a file into an array of the store. An import of stdin without a name of its own (`as`)
 * keeps no mark: it cannot be resumed.
 *
 * Errors: SPILL_PARSE (a malformed record, or one without a proper owner; the message names
 * file:line), SPILL_TOO_BIG (an element that no document can hold); everything before that record
 * is appended, nothing of it is, and the same call goes on from it once it is mended. SPILL_REFUSED
 * (imported already; or the input is not what the mark tells of), SPILL_UNKNOWN, and those of
 * spill_array_append. *result is filled in every case. One thread; memory: a few chunks, and 32 MiB
 * of text for the longest record.
 */
spill_code_t spill_import(spill_store_t *store, spill_array_t *array,
                          const spill_import_options_t *options, spill_import_result_t *result,
                          spill_error_t *error);

#endif
