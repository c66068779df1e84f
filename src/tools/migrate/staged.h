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
#ifndef SPILL_TOOLS_MIGRATE_STAGED_H
#define SPILL_TOOLS_MIGRATE_STAGED_H

#include "tools/definition_jobs.h"
#include "tools/migrate/migrate.h"
#include "tools/migrate/planned.h"

/* ---- catch up -------------------------------------------------------------------------------- */

/*
 * Catch up: one pass that copies the arrays of a definition, the original, into its planned
 * definition, owner by owner. The original is an array migrated in place. The planned definition is
 * still building (core/array.h), so no other program writes to it. A pass is a copy
 * (tools/definition_jobs.h). If an owner no longer agrees with the original, the pass drops its
 * copy and copies it again. The pass only reads the original.
 */

/* A pass adds to these numbers. */
typedef struct spill_catch_up_result {
    spill_copy_result_t copied; /* `differences`: owners that changed during every attempt */
    int64_t recopied;           /* owners copied again from the start: they had been edited */
    int64_t deleted; /* owners dropped: the application has removed their document or array */
    int64_t failed;  /* owners that were skipped */
    uint64_t hash;   /* sum of one hash per owner: equal for equal arrays, in any order */
    bool resumed;    /* owners that an interrupted pass had visited were passed over */
} spill_catch_up_result_t;

/*
 * Check that the arrays of `original` are still to be copied into `name`. SPILL_REFUSED: the
 * migration is being finished or undone, or was finished or undone. Cost: one read of both job
 * checkpoints, or two.
 */
spill_code_t spill_catch_up_check(spill_store_t *store, const char *original, const char *name,
                                  spill_error_t *error);

/*
 * Check that the original has no pages without a head, except what an interrupted drop left. Such
 * pages may be the only copy of their elements: SPILL_REFUSED. `owner`: NULL checks all owners.
 */
spill_code_t spill_catch_up_check_pages(spill_array_t *original, const spill_value_t *owner,
                                        spill_error_t *error);

/*
 * Catch up all owners of `original` in `name`, and compare them element by element. SPILL_REFUSED:
 * the migration is being finished or undone. An owner that fails is skipped and reported, for
 * example if its array is damaged or the planned layout cannot store an element. After an
 * interruption, call again to continue (with `resumes` behind the owners that were visited). The
 * options' `progress` is not called. At its end the pass makes the indexes that `name` does not
 * have yet (make_indexes in store/store.h). Cost: as spill_copy; an owner that is already in `name`
 * is read and compared.
 */
spill_code_t spill_catch_up(spill_store_t *store, const char *original, const char *name,
                            const spill_migrate_options_t *options, spill_catch_up_result_t *result,
                            spill_error_t *error);

/* ---- both stages ----------------------------------------------------------------------------- */

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
 * SPILL_REFUSED: something differs, or elements were appended while everything was compared; this
 * call dropped nothing. After a crash the same call
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
