/*
 * The job checkpoint of a conversion's end: it records in the store's catalog that the old
 * definition is being dropped. It is saved after everything was compared and before the first old
 * document is dropped. Only while it is stored may the old arrays be shorter than the new ones.
 */
#ifndef SPILL_TOOLS_CONVERT_CHECKPOINT_H
#define SPILL_TOOLS_CONVERT_CHECKPOINT_H

#include <spillway/store.h>

typedef struct spill_convert_checkpoint {
    char as[SPILL_NAME_SIZE]; /* the definition that has the arrays; "": no checkpoint */
    bool emptied;             /* no array of the old definition is left */
    bson_t *stored;           /* the checkpoint as stored in the catalog, or NULL */
} spill_convert_checkpoint_t;

/* Report whether dropping was begun and is not done. */
bool spill_convert_checkpoint_stands(const spill_convert_checkpoint_t *checkpoint);

/* Load the checkpoint of definition `name`; release it in every case. SPILL_CORRUPT. One read. */
spill_code_t spill_convert_checkpoint_load(spill_store_t *store, const char *name,
                                           spill_convert_checkpoint_t *checkpoint,
                                           spill_error_t *error);
void spill_convert_checkpoint_release(spill_convert_checkpoint_t *checkpoint);

/*
 * Replace the checkpoint that was loaded: `name` is being dropped into `as`, or (emptied) none of
 * its arrays is left. SPILL_CONFLICT: another process has changed the checkpoint. One write, in the
 * order and with the durability of the store's other writes. spill_import_checkpoints_drop deletes
 * the checkpoint.
 */
spill_code_t spill_convert_checkpoint_save(spill_store_t *store, const char *name, const char *as,
                                           bool emptied, spill_convert_checkpoint_t *checkpoint,
                                           spill_error_t *error);

#endif
