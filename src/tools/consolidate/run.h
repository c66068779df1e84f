/* What the parts of a consolidation share while one runs. */
#ifndef SPILL_TOOLS_CONSOLIDATE_RUN_H
#define SPILL_TOOLS_CONSOLIDATE_RUN_H

#include "tools/consolidate/consolidate.h"

#include <stdbool.h>

/* ---- marks: what was begun ------------------------------------------------------------------- */

/*
 *   (none) -> COPYING -> CUTTING -> CUT -> FINISHING -> FINISHED
 *                |          |        |
 *                |          |        +--> UNDOING --+
 *                +----------+-----------------------+--> RESTORING -> (none)
 */
typedef enum spill_consolidate_phase {
    SPILL_CONSOLIDATE_NONE,
    SPILL_CONSOLIDATE_COPYING,   /* the old collections are the application's */
    SPILL_CONSOLIDATE_CUTTING,   /* each in turn gets another name, and its slice is opened */
    SPILL_CONSOLIDATE_CUT,       /* the joint collection is the application's */
    SPILL_CONSOLIDATE_FINISHING, /* the old collections are being dropped */
    SPILL_CONSOLIDATE_FINISHED,
    SPILL_CONSOLIDATE_UNDOING,  /* what was written to the joint collection goes back */
    SPILL_CONSOLIDATE_RESTORING /* the old collections get their names again */
} spill_consolidate_phase_t;

const char *spill_consolidate_phase_name(spill_consolidate_phase_t phase);

/*
 * {phase, plan, copied, views, back, open, indexes}, as entry "INTO:consolidate". It changes by
 * compare and set alone, so that of two who are at it one is told.
 */
typedef struct spill_consolidate_checkpoint {
    spill_consolidate_phase_t phase;
    bool copied;     /* a copy ended with all of it equal */
    bool views;      /* views stand, or will stand, under the old names */
    bool back;       /* undoing when slices were open: the joint collection was put aside */
    int64_t open;    /* with `back`: the slices of the first members that go back; 0: of all */
    bson_t *indexes; /* of the joint collection, as they were merged at the beginning */
    bson_t *stored;  /* as it is in the store; NULL: it is not */
} spill_consolidate_checkpoint_t;

/* How far passes have come: entry "INTO:consolidate.at". */
typedef struct spill_consolidate_place {
    spill_consolidate_phase_t phase; /* whose passes: of another phase they begin anew */
    int64_t pass;                    /* from 1; the first one of a copy finds nothing there */
    size_t member;                   /* whose turn it is; in CUTTING those before it are open */
    bson_t after;                    /* {id: _id} behind which it goes on, or empty */
    size_t changing;                 /* members that differed in this pass */
    bson_oid_t by; /* the run that saved it: no two have the same, so a place does not come again */
    bson_t *stored;
} spill_consolidate_place_t;

typedef struct spill_consolidate_run {
    spill_raw_admin_t *admin;
    const spill_consolidation_t *group;
    const spill_consolidate_options_t *options;
    spill_consolidate_result_t *result;
    spill_throttle_t throttle;
    spill_consolidate_checkpoint_t checkpoint;
    spill_consolidate_place_t place;
    spill_consolidate_progress_t progress;
    int64_t deadline_us; /* of the throttle's time; 0: none. Until then nothing is throttled */
    bool late;           /* the deadline has passed, and the work ended because of that */
    int64_t work_us;     /* spent on chunks, without the waits of the throttle */
    size_t slow;         /* members whose estimated pause did not fit in the last pass */
    size_t slowest;      /* the member with the longest estimate of that pass ... */
    int64_t slowest_us;  /* ... and its estimate */
    bson_t listing;      /* as it was when it was read last; see spill_consolidate_list */
} spill_consolidate_run_t;

/*
 * Begin and end. The mark is read; *result is cleared. SPILL_REFUSED: the plan was another one when
 * it was begun. Release in every case.
 */
spill_code_t spill_consolidate_start(spill_consolidate_run_t *run, spill_raw_admin_t *admin,
                                     const spill_consolidation_t *group,
                                     const spill_consolidate_options_t *options,
                                     spill_consolidate_result_t *result, spill_error_t *error);
void spill_consolidate_release(spill_consolidate_run_t *run);

spill_code_t spill_consolidate_checkpoint_load(spill_consolidate_run_t *run, spill_error_t *error);
/* Save what run->mark says, with another phase. SPILL_CONFLICT: another one has. */
spill_code_t spill_consolidate_enter(spill_consolidate_run_t *run, spill_consolidate_phase_t phase,
                                     spill_error_t *error);
/* Remove both entries. */
spill_code_t spill_consolidate_checkpoint_delete(spill_consolidate_run_t *run,
                                                 spill_error_t *error);

/*
 * Are mark and place (once it was loaded) what this run stored or read last? SPILL_CONFLICT:
 * another one has gone on meanwhile, so nothing may be written any more. It is asked before every
 * change of a collection, since waits and stopped processes may take any time; between the answer
 * and the change is a window all the same. Two small reads.
 */
spill_code_t spill_consolidate_check_own(spill_consolidate_run_t *run, spill_error_t *error);

/* As ops of the same name, after spill_consolidate_check_own; create: of the joint collection. */
spill_code_t spill_consolidate_create(spill_consolidate_run_t *run, spill_error_t *error);
spill_code_t spill_consolidate_create_view(spill_consolidate_run_t *run, const char *name,
                                           const bson_t *pipeline, spill_error_t *error);
spill_code_t spill_consolidate_rename(spill_consolidate_run_t *run, const char *from,
                                      const char *to, spill_error_t *error);
spill_code_t spill_consolidate_drop(spill_consolidate_run_t *run, const char *collection,
                                    spill_error_t *error);

spill_code_t spill_consolidate_place_load(spill_consolidate_run_t *run, spill_error_t *error);
/* From the first save on the place is this run's: another one that is at it gets SPILL_CONFLICT. */
spill_code_t spill_consolidate_place_save(spill_consolidate_run_t *run, spill_error_t *error);
/*
 * In CUTTING: take the place over, so that no other run opens a slice any more. *open is the number
 * of members whose slices the application writes to, which are the first ones. SPILL_CONFLICT:
 * another run saved the place meanwhile. SPILL_CORRUPT: there is no place, although collections
 * were put aside.
 */
spill_code_t spill_consolidate_take_place(spill_consolidate_run_t *run, size_t *open,
                                          spill_error_t *error);
spill_code_t spill_consolidate_place_delete(spill_consolidate_run_t *run, spill_error_t *error);

/* ---- what is there --------------------------------------------------------------------------- */

typedef enum spill_consolidate_kind {
    SPILL_CONSOLIDATE_ABSENT,
    SPILL_CONSOLIDATE_COLLECTION,
    SPILL_CONSOLIDATE_VIEW,
    SPILL_CONSOLIDATE_OTHER /* a time series */
} spill_consolidate_kind_t;

/* Read into run->listing what collections there are. One command. */
spill_code_t spill_consolidate_list(spill_consolidate_run_t *run, spill_error_t *error);

/* By run->listing; `options` (may be NULL) borrows from it, and is empty where there are none. */
spill_consolidate_kind_t spill_consolidate_kind_of(const spill_consolidate_run_t *run,
                                                   const char *name, bson_t *options);

/*
 * By run->listing: SPILL_REFUSED where a name was taken again whose collection was put aside, that
 * of an old one or the joint one's.
 */
spill_code_t spill_consolidate_check_names(const spill_consolidate_run_t *run,
                                           spill_error_t *error);

/* Append a text to an array. */
void spill_consolidate_say(bson_t *array, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- checks.c -------------------------------------------------------------------------------- */

/*
 * Append to the array `refused` which collections of the group are those of a saved definition, for
 * its documents or its pages. One command.
 */
spill_code_t spill_consolidate_check_definitions(spill_consolidate_run_t *run, bson_t *refused,
                                                 spill_error_t *error);

/* The first text of an array, and how many more there are, as SPILL_REFUSED; if it has any. */
spill_code_t spill_consolidate_refuse_first(const bson_t *texts, const char *before,
                                            spill_error_t *error);

/*
 * Would two documents of the joint collection be one of an old collection, by {FIELD: VALUE, id: X}
 * and by X itself, which the application has written? SPILL_REFUSED names it. Reads all _ids.
 */
spill_code_t spill_consolidate_check_ids(spill_consolidate_run_t *run, const char *joint,
                                         spill_error_t *error);

/* ---- indexes.c ------------------------------------------------------------------------------- */

/*
 * The indexes of the joint collection, by those of the old ones, as an array for `create`; texts of
 * what cannot be merged go to the array `refused`, and of what is done otherwise to `notes`. All
 * three are initialized by the caller. A command for each collection.
 */
spill_code_t spill_consolidate_merge_indexes(spill_consolidate_run_t *run, bson_t *indexes,
                                             bson_t *refused, bson_t *notes, spill_error_t *error);

/* ---- copy_pass.c --------------------------------------------------------------------------------
 */

/* One collection and its slice, of which one becomes what the other is. */
typedef struct spill_copy_pass {
    spill_consolidate_run_t *run;
    spill_share_t slice;
    const char *old;   /* the collection of the old form, whatever its name is now */
    const char *joint; /* the collection with the slice */
    bool back;         /* the slice is copied to the old collection, not the other way round */
    bson_t filter;     /* {FIELD: VALUE} */
    spill_consolidate_moved_t moved;
} spill_copy_pass_t;

void spill_copy_pass_init(spill_copy_pass_t *copy_pass, spill_consolidate_run_t *run, size_t member,
                          const char *old, const char *joint, bool back);
void spill_copy_pass_release(spill_copy_pass_t *copy_pass);

/* What a side has, as the old form is. */
spill_code_t spill_copy_pass_digest(spill_copy_pass_t *copy_pass, bool of_slice,
                                    spill_digest_t *digest, spill_error_t *error);

/*
 * Bring what the other side does not have, or has otherwise. `fresh`: it is believed to have none
 * of it; so is where run->place is, and that is saved after each chunk.
 */
spill_code_t spill_copy_pass_run(spill_copy_pass_t *copy_pass, bool fresh, spill_error_t *error);

/*
 * Is there the collection that is copied from? SPILL_REFUSED: it was renamed, or dropped, which is
 * not that all its documents were deleted. One command, which reads run->listing anew.
 */
spill_code_t spill_copy_pass_check_source(spill_copy_pass_t *copy_pass, spill_error_t *error);

/* Remove what the side that is copied from does not have. */
spill_code_t spill_copy_pass_remove(spill_copy_pass_t *copy_pass, spill_error_t *error);

/* ---- pass.c ---------------------------------------------------------------------------------- */

/* Where a member's documents are copied from and to. */
typedef struct spill_consolidate_way {
    bool kept; /* the old collection has the name that it is kept aside by */
    bool back;
    const char *joint;
    size_t members; /* only the first ones; 0: all */
} spill_consolidate_way_t;

/* As pause_us: only a pass that finds all equal is good enough. */
#define SPILL_CONSOLIDATE_EQUAL INT64_C(-1)

/*
 * Pass over all members until one pass is good enough, or options->passes are made.
 * result->changing is the number of members for which the last pass was not good enough. The first
 * pass of a copy inserts without a comparison.
 *
 * pause_us: SPILL_CONSOLIDATE_EQUAL, or the longest pause in microseconds that each member may have
 * by its own estimate. run->slowest is the member with the longest one. The estimate is the time of
 * the member's last pass without the waits of the throttle, and of one more comparison if that pass
 * found a difference.
 */
spill_code_t spill_consolidate_passes(spill_consolidate_run_t *run,
                                      const spill_consolidate_way_t *way, int64_t pause_us,
                                      spill_error_t *error);

/*
 * The same for the member alone whose turn it is (run->place). With a pause_us the passes continue
 * while each halves the estimate, until it is below a second. The place is not saved.
 */
spill_code_t spill_consolidate_conclude(spill_consolidate_run_t *run,
                                        const spill_consolidate_way_t *way, int64_t pause_us,
                                        spill_error_t *error);

/* ---- member.c -------------------------------------------------------------------------------- */

/* --max-pause in microseconds. */
int64_t spill_consolidate_pause(const spill_consolidate_run_t *run);

/* After passes with a pause_us. SPILL_REFUSED: a member's estimate does not fit. */
spill_code_t spill_consolidate_refuse_slow(const spill_consolidate_run_t *run,
                                           spill_error_t *error);

/*
 * Cut over the member whose turn it is, and open its slice: the place is saved behind it. On an
 * error before that the member has its name again, if the store can be reached and no other run
 * goes on.
 */
spill_code_t spill_consolidate_cut_member(spill_consolidate_run_t *run, spill_error_t *error);

/* ---- absorb.c -------------------------------------------------------------------------------- */

/*
 * If run->listing has a stray of the member, a collection that was created under its old name after
 * it was put aside: insert its documents where they belong, and drop it. *found: there was one, and
 * run->listing is out of date. SPILL_REFUSED names a document that the target has otherwise; a
 * conflict that is found before the stray has its late name leaves everything unchanged.
 */
spill_code_t spill_consolidate_absorb(spill_consolidate_run_t *run, size_t member, bool open,
                                      bool *found, spill_error_t *error);

/*
 * Do that for all members, of which the first `open` ones are open. SPILL_REFUSED: also if a stray
 * was created meanwhile.
 */
spill_code_t spill_consolidate_absorb_all(spill_consolidate_run_t *run, size_t open,
                                          spill_error_t *error);

/* ---- views.c --------------------------------------------------------------------------------- */

/* The view's pipeline, an array initialized by the call. */
void spill_consolidate_view_pipeline(const spill_consolidation_t *group, size_t member,
                                     bson_t *pipeline);

/* Does the server make views? SPILL_REFUSED: no. Makes one, looks, and drops it. */
spill_code_t spill_consolidate_try_views(spill_consolidate_run_t *run, spill_error_t *error);

/* Put a view under one old name; by run->listing it may be there already. */
spill_code_t spill_consolidate_make_view(spill_consolidate_run_t *run, size_t member,
                                         spill_error_t *error);

/* Put a view under each old name, and read their definitions back. SPILL_REFUSED: one differs. */
spill_code_t spill_consolidate_make_views(spill_consolidate_run_t *run, spill_error_t *error);

/* Drop the view under one old name, if run->listing has it. */
spill_code_t spill_consolidate_drop_view(spill_consolidate_run_t *run, size_t member,
                                         spill_error_t *error);

/* Drop the views that stand under old names. */
spill_code_t spill_consolidate_drop_views(spill_consolidate_run_t *run, spill_error_t *error);

#endif
