/*
 * A migration in two stages, to a layout that arrays do not get in place. First the original's
 * arrays are migrated in place (spill_migrate). Then they are copied into the planned definition
 * (spill_catch_up), which is building meanwhile. Both passes are repeated until one of two ends:
 *
 *      finish   compare everything again, and drop the original (spill_convert_finish)
 *      undo     drop the planned definition, and unmanage the original's arrays
 *
 * docs/internals/migrate.md lists what a crash leaves. One operator at a time.
 */
#ifndef SPILL_TOOLS_STAGED_H
#define SPILL_TOOLS_STAGED_H

#include "tools/catch_up.h"
#include "tools/planned.h"

typedef enum spill_stage {
    SPILL_STAGE_NONE,     /* not begun, or undone */
    SPILL_STAGE_COPYING,  /* arrays are copied, or may be */
    SPILL_STAGE_DROPPING, /* everything was compared; the original is being dropped */
    SPILL_STAGE_FINISHED,
    SPILL_STAGE_UNDOING /* the planned definition is being dropped */
} spill_stage_t;

typedef struct spill_staged {
    spill_store_t *store;
    const char *uri; /* of a server, to see collections without a definition; or NULL */
    const spill_planned_t *planned;
} spill_staged_t;

/*
 * Read the stage; change nothing. SPILL_REFUSED: it cannot begin because a definition or a
 * collection of a planned name exists already, or it would clash with a definition; or it was begun
 * from another original. And the errors of spill_planned_check.
 */
spill_code_t spill_staged_find_stage(const spill_staged_t *staged, spill_stage_t *stage,
                                     spill_error_t *error);

/* If it is not begun yet, save the building's checkpoint and both definitions. SPILL_REFUSED: it is
 * being undone, or being finished. */
spill_code_t spill_staged_begin(const spill_staged_t *staged, spill_error_t *error);

/*
 * Compare everything, drop the original, and let other programs write to the planned definition.
 * Elements pushed to the original after it was compared are lost, so its writers must be stopped.
 * SPILL_REFUSED: something differs, and this call dropped nothing. After a crash the same call
 * continues, and returns SPILL_OK once it is done.
 */
spill_code_t spill_staged_finish(const spill_staged_t *staged,
                                 const spill_migrate_options_t *options,
                                 spill_copy_result_t *result, spill_error_t *error);

/*
 * Drop the planned definition, and unmanage the original's arrays as spill_migrate_undo does, after
 * the checks of spill_staged_check_undo. SPILL_REFUSED: it is being finished, or was.
 */
spill_code_t spill_staged_undo(const spill_staged_t *staged, const spill_migrate_options_t *options,
                               spill_migrate_result_t *result, spill_error_t *error);

/* What spill_staged_undo checks before it changes anything, with spill_migrate_check_undo. */
spill_code_t spill_staged_check_undo(const spill_staged_t *staged,
                                     const spill_migrate_options_t *options,
                                     spill_migrate_result_t *result, spill_error_t *error);

/*
 * Count the elements of managed arrays that a cap will not keep (0 for other layouts). One read per
 * owner.
 */
spill_code_t spill_staged_count_dropped(const spill_staged_t *staged, int64_t *dropped,
                                        spill_error_t *error);

#endif
