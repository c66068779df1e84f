/*
 * Convert: copy the arrays of a definition into another layout. The old documents stay until
 * spill_convert_finish. A conversion is a copy (tools/copy.h) within one store: it keeps sequence
 * numbers, continues after an interruption, and compares every element.
 */
#ifndef SPILL_TOOLS_CONVERT_H
#define SPILL_TOOLS_CONVERT_H

#include "tools/copy.h"

/*
 * Make a definition named `as` from `from`, with this layout and `keep` (NULL: the default of the
 * layout, or as in `from`). It has the bounds and names of `from` and collections of its own:
 * `as` for the heads and `as`.pages for the pages. If the documents change their shape
 * (docs/how-to/copy.md), a preset gives bounds and names. Ids, times, retention and
 * statistics are copied from `from`, as far as the layout has them. A capped top-N definition is
 * made into a capped one of the same order. SPILL_INVALID: `as` is no valid name, a collection's
 * name would be too long, something is missing that the layout needs, or `keep` is given for a
 * layout without that choice.
 */
spill_code_t spill_convert_definition(const spill_definition_t *from, const char *as,
                                      spill_layout_t layout, const spill_keep_t *keep,
                                      spill_definition_t *definition, spill_error_t *error);

/*
 * Check that `name` may be converted into `as`, which need not exist. SPILL_INVALID: both are one
 * definition. SPILL_REFUSED: spill_convert_finish has begun to drop `name`. One read.
 */
spill_code_t spill_convert_check(spill_store_t *store, const char *name, const char *as,
                                 spill_error_t *error);

/*
 * Copy the arrays of `name` into `options->as`, a definition of the same store. Call again
 * to continue after an interruption, and to copy what was appended since. Errors and cost: as
 * spill_copy and spill_convert_check.
 */
spill_code_t spill_convert(spill_store_t *store, const char *name,
                           const spill_copy_options_t *options, spill_copy_result_t *result,
                           spill_error_t *error);

/*
 * Convert once more. If no owner differs, drop `name` with its old documents; other fields of heads
 * that both definitions share stay. From this call on no program may write to `name`: elements
 * appended after an owner was compared are dropped with the rest. SPILL_REFUSED: something differs,
 * and this call dropped nothing.
 *
 * A checkpoint in the catalog records that dropping has begun. After a crash, the same call
 * continues if the checkpoint exists: each array that is left must be the end of the array in `as`.
 * spill_convert and another `as` are then SPILL_REFUSED. Without the checkpoint, the arrays must be
 * equal. Before dropping a definition in another way, call spill_import_checkpoints_drop: its name
 * may be used again.
 */
spill_code_t spill_convert_finish(spill_store_t *store, const char *name,
                                  const spill_copy_options_t *options, spill_copy_result_t *result,
                                  spill_error_t *error);

/* Report whether `name` no longer exists and was dropped into `as`, which exists. Two reads. */
spill_code_t spill_convert_finished(spill_store_t *store, const char *name, const char *as,
                                    bool *finished, spill_error_t *error);

/* ---- the job checkpoint of a conversion's end ------------------------------------------------ */

/*
 * It records in the store's catalog that the old definition is being dropped. It is saved after
 * everything was compared and before the first old document is dropped. Only while it is stored may
 * the old arrays be shorter than the new ones.
 */
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
