/* Applying a chunk: one batch per owner, or one operation per record with an id. */
#ifndef SPILL_TOOLS_IMPORT_APPLY_H
#define SPILL_TOOLS_IMPORT_APPLY_H

#include "tools/import_chunk.h"

#define SPILL_IMPORT_PREFIX_SIZE 40

typedef struct spill_import_writer {
    spill_array_t *array;
    int64_t op_window;
    char prefix[SPILL_IMPORT_PREFIX_SIZE]; /* of operation ids; "": appends carry none */
    bool with_ids;                         /* each record is one operation */
    bool fill;                             /* fill documents up (spill_append_options) */
    int64_t records;                       /* appended, or recognized, so far */
    int64_t repeated;                      /* of these, recognized */
    int64_t dropped;                       /* of these, dropped at once because of a cap */
    spill_value_t *values;                 /* scratch */
    size_t value_capacity;
} spill_import_writer_t;

void spill_import_writer_release(spill_import_writer_t *writer);

/* Read a base for each owner of the chunk, in its order. One store operation per owner. */
spill_code_t spill_import_read_bases(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                     int64_t *bases, spill_error_t *error);

/*
 * Append the chunk. With the bases of the first try, the chunk may be applied again after any
 * interruption. `bases` may be NULL if appends have no operation ids.
 */
spill_code_t spill_import_apply(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                const int64_t *bases, spill_error_t *error);

#endif
