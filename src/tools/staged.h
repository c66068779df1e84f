/*
 * A migration in two stages, to what is not laid out in place: the original's arrays are laid out
 * in place (spill_migrate), and brought into the planned definition (spill_catch_up), which is
 * forming meanwhile. Both passes are made again and again; the end is either of these two:
 *
 *      finish   all is compared once more, and the original dropped (spill_convert_finish)
 *      undo     the planned definition is dropped, and the original's arrays are plain ones again
 *
 * docs/internals/migrate.md lists what a crash leaves. One operator at a time.
 */
#ifndef SPILL_TOOLS_STAGED_H
#define SPILL_TOOLS_STAGED_H

#include "tools/catch_up.h"
#include "tools/planned.h"

typedef enum spill_stage {
    SPILL_STAGE_NONE,     /* not begun, or undone */
    SPILL_STAGE_BRINGING, /* arrays are, or may be, brought */
    SPILL_STAGE_DROPPING, /* all was compared; the original is being dropped */
    SPILL_STAGE_FINISHED,
    SPILL_STAGE_UNDOING /* the planned definition is being dropped */
} spill_stage_t;

typedef struct spill_staged {
    spill_store_t *store;
    const char *uri; /* of a server, to see collections that no definition is of; or NULL */
    const spill_planned_t *planned;
} spill_staged_t;

/*
 * How far is it? Changes nothing. SPILL_REFUSED: it cannot begin, since there is a definition or a
 * collection of a planned name already, or it would clash with a definition; or it was begun from
 * another original. And what spill_planned_check refuses.
 */
spill_code_t spill_staged_look(const spill_staged_t *staged, spill_stage_t *stage,
                               spill_error_t *error);

/* Save the mark and both definitions, where it is not begun yet. SPILL_REFUSED while it is being
 * undone, and once its end has begun. */
spill_code_t spill_staged_begin(const spill_staged_t *staged, spill_error_t *error);

/*
 * Compare all, drop the original, and let others change the planned definition. What is pushed to
 * the original after it was compared is lost: its writers have to be stopped. SPILL_REFUSED where
 * anything differs; nothing was dropped by this call then. The same call goes on after a crash, and
 * says SPILL_OK once it is done.
 */
spill_code_t spill_staged_finish(const spill_staged_t *staged,
                                 const spill_migrate_options_t *options,
                                 spill_copy_result_t *result, spill_error_t *error);

/*
 * Drop the planned definition, and make the original's arrays plain ones again, as
 * spill_migrate_undo does, which this checks first. SPILL_REFUSED once its end has begun.
 */
spill_code_t spill_staged_undo(const spill_staged_t *staged, const spill_migrate_options_t *options,
                               spill_migrate_result_t *result, spill_error_t *error);

/* What spill_staged_undo checks before it changes anything: spill_migrate_check_undo. */
spill_code_t spill_staged_check_undo(const spill_staged_t *staged,
                                     const spill_migrate_options_t *options,
                                     spill_migrate_result_t *result, spill_error_t *error);

/*
 * How many elements of the arrays that are ours already a cap will not keep (0 for other layouts).
 * One read for each owner.
 */
spill_code_t spill_staged_count_dropped(const spill_staged_t *staged, int64_t *dropped,
                                        spill_error_t *error);

#endif
