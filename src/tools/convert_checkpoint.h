/*
 * The mark of a conversion's end: what the store's catalog remembers of the dropping of the old
 * definition. It is saved once all was compared, and before the first old document goes. Only where
 * it stands may the old arrays be shorter than the new ones because they are going.
 */
#ifndef SPILL_TOOLS_CONVERT_CHECKPOINT_H
#define SPILL_TOOLS_CONVERT_CHECKPOINT_H

#include <spillway/store.h>

typedef struct spill_convert_checkpoint {
    char as[SPILL_NAME_SIZE]; /* the definition that has the arrays; "" where there is no mark */
    bool emptied;             /* no array is left of the old one */
    bson_t *stored;           /* the mark as the catalog has it, or NULL */
} spill_convert_checkpoint_t;

/* Is `mark` that of a dropping which was begun and is not done? */
bool spill_convert_checkpoint_stands(const spill_convert_checkpoint_t *checkpoint);

/* Load the mark of a definition's dropping; release it in every case. SPILL_CORRUPT. One read. */
spill_code_t spill_convert_checkpoint_load(spill_store_t *store, const char *name,
                                           spill_convert_checkpoint_t *checkpoint,
                                           spill_error_t *error);
void spill_convert_checkpoint_release(spill_convert_checkpoint_t *checkpoint);

/*
 * Save that `name` is being dropped into `as`, or (emptied) that none of its arrays is left, in the
 * place of what was loaded. SPILL_CONFLICT where something else stands there by now. One write, in
 * the order and with the durability of the store's other writes. spill_import_marks_drop forgets
 * it.
 */
spill_code_t spill_convert_checkpoint_save(spill_store_t *store, const char *name, const char *as,
                                           bool emptied, spill_convert_checkpoint_t *checkpoint,
                                           spill_error_t *error);

#endif
