/*
 * The job checkpoint of an import in the store's catalog. It describes the last chunk that was
 * begun, so a resumed import applies nothing twice and leaves nothing out.
 */
#ifndef SPILL_TOOLS_IMPORT_CHECKPOINT_H
#define SPILL_TOOLS_IMPORT_CHECKPOINT_H

#include "tools/import_chunk.h"

#include <spillway/store.h>

typedef struct spill_import_checkpoint {
    /* What is imported, and how. Borrowed; after a load, from the stored document. */
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

#endif
