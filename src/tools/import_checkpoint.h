/*
 * The mark of an import: what the store's catalog remembers, so that the import goes on where it
 * was, applies nothing twice and leaves nothing out. It tells of the last chunk that was begun.
 */
#ifndef SPILL_TOOLS_IMPORT_CHECKPOINT_H
#define SPILL_TOOLS_IMPORT_CHECKPOINT_H

#include "tools/import_chunk.h"

#include <spillway/store.h>

typedef struct spill_import_checkpoint {
    /* What is imported, and how. Borrowed; from the stored document after a load. */
    const char *definition;
    const char *source;
    const char *format;
    const char *owner;
    const char *id; /* "" for none */
    bool strings;

    /* The chunk. `bases` has an entry for each owner, in the order of their first records. */
    int64_t run; /* raised by each import from the start */
    int64_t chunk;
    int64_t offset;
    int64_t line;
    int64_t end_offset;
    int64_t end_line;
    uint64_t hash;
    spill_bounds_t bounds; /* by which its batches are split, together with the window */
    int64_t op_window;
    int64_t records;   /* in it */
    int64_t before;    /* records of the chunks before it */
    bool applied;      /* all of it is in the store, or was found to be bad */
    bool finished;     /* ... and it is the last */
    int64_t *bases;    /* owned */
    size_t base_count; /* 0 where it was applied */
} spill_import_checkpoint_t;

/* The catalog's name for the mark of (definition, source). */
#define SPILL_IMPORT_CHECKPOINT_NAME_SIZE 192
void spill_import_checkpoint_name(const char *definition, const char *source,
                                  char name[SPILL_IMPORT_CHECKPOINT_NAME_SIZE]);

/* 16 hexadecimal digits that tell imports apart in operation ids. */
#define SPILL_IMPORT_ID_SIZE 17
void spill_import_id(const char *name, char id[SPILL_IMPORT_ID_SIZE]);

/*
 * Load. *stored is new (bson_destroy), NULL with a zeroed mark where there is none; the mark's
 * strings borrow from it. SPILL_CORRUPT. Release the mark in every case.
 */
spill_code_t spill_import_checkpoint_load(spill_store_t *store, const char *name, bson_t **stored,
                                          spill_import_checkpoint_t *checkpoint,
                                          spill_error_t *error);
void spill_import_checkpoint_release(spill_import_checkpoint_t *checkpoint);

/*
 * Save in the place of *stored (NULL: of none), which becomes what is saved. SPILL_CONFLICT where
 * something else stands there by now: another import of this name is under way.
 */
spill_code_t spill_import_checkpoint_save(spill_store_t *store, const char *name,
                                          const spill_import_checkpoint_t *checkpoint,
                                          bson_t **stored, spill_error_t *error);

/* Forget every import into a definition, which is about to be dropped. */
spill_code_t spill_import_marks_drop(spill_store_t *store, const char *definition,
                                     spill_error_t *error);

#endif
