/* Applying a chunk: one batch for each owner, or one operation for each record with an id. */
#ifndef SPILL_TOOLS_IMPORT_APPLY_H
#define SPILL_TOOLS_IMPORT_APPLY_H

#include "tools/import_chunk.h"

#define SPILL_IMPORT_PREFIX_SIZE 40

typedef struct spill_import_writer {
    spill_array_t *array;
    int64_t op_window;
    char prefix[SPILL_IMPORT_PREFIX_SIZE]; /* of operation ids; "": appends carry none */
    bool with_ids;                         /* each record is an operation of its own */
    bool fill;                             /* documents to their bounds (spill_append_options) */
    int64_t records;                       /* appended, or recognized, so far */
    int64_t repeated;                      /* of which recognized */
    int64_t dropped;                       /* of which a cap did not keep when they came */
    spill_value_t *values;                 /* scratch */
    size_t value_capacity;
} spill_import_writer_t;

void spill_import_writer_release(spill_import_writer_t *writer);

/* A base for each owner of the chunk, in its order, into `bases`. A store operation an owner. */
spill_code_t spill_import_read_bases(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                     int64_t *bases, spill_error_t *error);

/*
 * Append the chunk. With the bases of the first try it may be applied again after any interruption.
 * `bases` may be NULL where no operation is carried.
 */
spill_code_t spill_import_apply(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                const int64_t *bases, spill_error_t *error);

#endif
