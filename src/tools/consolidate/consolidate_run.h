/* What the files of a consolidation share during a run. */
#ifndef SPILL_TOOLS_CONSOLIDATE_CONSOLIDATE_RUN_H
#define SPILL_TOOLS_CONSOLIDATE_CONSOLIDATE_RUN_H

#include "tools/consolidate/consolidate.h"

#include <pthread.h>
#include <stdbool.h>

/* ---- the checkpoint: what was begun ---------------------------------------------------------- */

/*
 *   (none) -> COPYING -> CUTTING -> CUT -> FINISHING -> FINISHED
 *                |          |        |
 *                |          |        +--> UNDOING --+
 *                +----------+-----------------------+--> RESTORING -> (none)
 */
typedef enum spill_consolidate_phase {
    SPILL_CONSOLIDATE_NONE,
    SPILL_CONSOLIDATE_COPYING,   /* the application uses the old collections */
    SPILL_CONSOLIDATE_CUTTING,   /* each in turn is renamed, and its slice is opened */
    SPILL_CONSOLIDATE_CUT,       /* the application uses the joint collection */
    SPILL_CONSOLIDATE_FINISHING, /* the old collections are being dropped */
    SPILL_CONSOLIDATE_FINISHED,
    SPILL_CONSOLIDATE_UNDOING,  /* what was written to the joint collection is copied back */
    SPILL_CONSOLIDATE_RESTORING /* the old collections are renamed back */
} spill_consolidate_phase_t;

const char *spill_consolidate_phase_name(spill_consolidate_phase_t phase);

/* The job checkpoint "INTO:consolidate" (store/job.h). */
typedef struct spill_consolidate_checkpoint {
    spill_consolidate_phase_t phase;
    bool copied;           /* a copy ended with all slices equal */
    bool views;            /* views have, or will get, the old names */
    bool back;             /* an undo with open slices: the joint collection is put aside */
    int64_t open;          /* with `back`: how many members' slices are copied back; 0: all */
    spill_value_t plan;    /* a document; borrows from `stored`, as the next one */
    spill_value_t indexes; /* of the joint collection, as merged at the beginning: an array */
    bson_t *stored;        /* the entry in the store, or NULL */
} spill_consolidate_checkpoint_t;

/* The progress of passes: the job checkpoint "INTO:consolidate.at". */
typedef struct spill_consolidate_place {
    spill_consolidate_phase_t phase; /* of the passes: in another phase they start over */
    int64_t pass;                    /* from 1; the first pass of a copy only inserts */
    size_t member;                   /* the current member; in CUTTING, those before it are open */
    bson_t *after;              /* owned: {id: _id} behind which the member continues, or empty */
    size_t changing;            /* members that differed in this pass */
    spill_value_t stored_after; /* `after` in the stored document */
    bson_oid_t by; /* unique to the run that saved it, so that no two saved places are equal */
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
    int64_t deadline_us;  /* in the throttle's time; 0: none. Until then nothing is throttled */
    bool late;            /* the deadline has passed, and the work ended because of that */
    size_t slow;          /* members whose estimated pause did not fit in the last pass */
    size_t slowest;       /* the member with the longest estimate of that pass ... */
    int64_t slowest_us;   /* ... and its estimate */
    bson_t listing;       /* the last one read; see spill_consolidate_list */
    pthread_mutex_t lock; /* during passes held over `listing` and `progress` */
    pthread_rwlock_t place_lock; /* held while the stored place is compared, or saved */
} spill_consolidate_run_t;

/*
 * Start a run and release it. The start reads the checkpoint and clears *result. SPILL_REFUSED: it
 * was begun with another plan. Release in every case.
 */
spill_code_t spill_consolidate_start(spill_consolidate_run_t *run, spill_raw_admin_t *admin,
                                     const spill_consolidation_t *group,
                                     const spill_consolidate_options_t *options,
                                     spill_consolidate_result_t *result, spill_error_t *error);
void spill_consolidate_release(spill_consolidate_run_t *run);

/* Save run->checkpoint with another phase. SPILL_CONFLICT: another run has changed it. */
spill_code_t spill_consolidate_enter(spill_consolidate_run_t *run, spill_consolidate_phase_t phase,
                                     spill_error_t *error);
/* Remove both entries. */
spill_code_t spill_consolidate_checkpoint_delete(spill_consolidate_run_t *run,
                                                 spill_error_t *error);

/*
 * Check that checkpoint and place (once it is loaded) are what this run stored or read last.
 * SPILL_CONFLICT: another run has continued meanwhile, so this one must not write any longer. Call
 * it before every change of a collection, because waits and stopped processes may take any time. It
 * cannot exclude a change by another run between the check and the write. One small read.
 */
spill_code_t spill_consolidate_check_own(spill_consolidate_run_t *run, spill_error_t *error);

/*
 * Create the indexes of the joint collection. In a first pass that need not spare the server's
 * latency, create only unique ones: the others cost a server most of the time of an insert. The
 * pass ends with the rest. Load the place before.
 */
spill_code_t spill_consolidate_create(spill_consolidate_run_t *run, spill_error_t *error);
spill_code_t spill_consolidate_create_rest(spill_consolidate_run_t *run, spill_error_t *error);

/* As the ops of these names, after spill_consolidate_check_own. */
spill_code_t spill_consolidate_create_view(spill_consolidate_run_t *run, const char *name,
                                           const bson_t *pipeline, spill_error_t *error);
spill_code_t spill_consolidate_rename(spill_consolidate_run_t *run, const char *from,
                                      const char *to, spill_error_t *error);
spill_code_t spill_consolidate_drop(spill_consolidate_run_t *run, const char *collection,
                                    spill_error_t *error);

spill_code_t spill_consolidate_place_load(spill_consolidate_run_t *run, spill_error_t *error);
/* The first save makes the place this run's own: a concurrent run gets SPILL_CONFLICT. */
spill_code_t spill_consolidate_place_save(spill_consolidate_run_t *run, spill_error_t *error);
/*
 * In CUTTING: make the place this run's own, so that no other run opens a slice. *open is the
 * number of members, the first ones, with slices that the application writes to. SPILL_CONFLICT:
 * another run saved the place meanwhile. SPILL_CORRUPT: there is no place, although collections
 * were put aside.
 */
spill_code_t spill_consolidate_own_place(spill_consolidate_run_t *run, size_t *open,
                                         spill_error_t *error);
spill_code_t spill_consolidate_place_delete(spill_consolidate_run_t *run, spill_error_t *error);

/* ---- existing collections -------------------------------------------------------------------- */

typedef enum spill_consolidate_kind {
    SPILL_CONSOLIDATE_ABSENT,
    SPILL_CONSOLIDATE_COLLECTION,
    SPILL_CONSOLIDATE_VIEW,
    SPILL_CONSOLIDATE_OTHER /* a time series */
} spill_consolidate_kind_t;

/* Read the list of collections into run->listing. One command. */
spill_code_t spill_consolidate_list(spill_consolidate_run_t *run, spill_error_t *error);

/* The kind by run->listing. `options` (may be NULL) borrows from it; it is empty if there are none.
 */
spill_consolidate_kind_t spill_consolidate_kind_of(const spill_consolidate_run_t *run,
                                                   const char *name, bson_t *options);

/*
 * By run->listing: SPILL_REFUSED if a collection was put aside, an old one or the joint one, and
 * its name is in use again.
 */
spill_code_t spill_consolidate_check_names(const spill_consolidate_run_t *run,
                                           spill_error_t *error);

/* Append a text to an array. */
void spill_consolidate_add_text(bson_t *array, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- checks.c -------------------------------------------------------------------------------- */

/*
 * Append to the array `refused` a text for each collection of the group that a saved definition
 * uses for its documents or its pages. One command.
 */
spill_code_t spill_consolidate_check_definitions(spill_consolidate_run_t *run, bson_t *refused,
                                                 spill_error_t *error);

/* If the array has texts, SPILL_REFUSED with the first one and the number of the others. */
spill_code_t spill_consolidate_refuse_first(const bson_t *texts, const char *before,
                                            spill_error_t *error);

/*
 * Check that no two documents of the joint collection would become one document of an old one: by
 * {FIELD: VALUE, id: X}, and by X itself, which the application has written. SPILL_REFUSED: the
 * message names it. Reads all _ids.
 */
spill_code_t spill_consolidate_check_ids(spill_consolidate_run_t *run, const char *joint,
                                         spill_error_t *error);

/* ---- indexes.c ------------------------------------------------------------------------------- */

/*
 * Merge the indexes of the old collections into `indexes`, an array for `create`. Append a text to
 * `refused` for what cannot be merged, and to `notes` for what is merged differently. The caller
 * initializes all three. One command per collection.
 */
spill_code_t spill_consolidate_merge_indexes(spill_consolidate_run_t *run, bson_t *indexes,
                                             bson_t *refused, bson_t *notes, spill_error_t *error);

/* ---- copy_pass.c ----------------------------------------------------------------------------- */

/* One collection and its slice: one of them is made equal to the other. */
typedef struct spill_copy_pass {
    spill_consolidate_run_t *run;
    spill_share_t slice;
    const char *old;   /* the collection of the old form, under its present name */
    const char *joint; /* the collection with the slice */
    bool back;         /* copy the slice to the old collection instead */
    bson_t *filter;    /* {FIELD: VALUE} */
    int64_t work_us;   /* spent on chunks, without the waits of the throttle */
    spill_consolidate_moved_t moved;
} spill_copy_pass_t;

/*
 * Wait for the throttle before a chunk. While a collection is put aside its writers wait: then do
 * not throttle, but bound the time. SPILL_CANCELLED: the work must stop.
 */
spill_code_t spill_consolidate_wait(spill_consolidate_run_t *run, spill_error_t *error);

/* Report a chunk to the throttle and, if it is counted in the progress, to the caller. */
void spill_consolidate_ran(spill_consolidate_run_t *run, size_t documents, bool counted,
                           int64_t took_us);

/* Set `after` to {id: _id} of the batch's last document. An empty batch leaves it. */
spill_code_t spill_consolidate_behind(const spill_raw_admin_batch_t *batch, bson_t *after,
                                      spill_error_t *error);

void spill_copy_pass_init(spill_copy_pass_t *copy_pass, spill_consolidate_run_t *run, size_t member,
                          const char *old, const char *joint, bool back);
void spill_copy_pass_release(spill_copy_pass_t *copy_pass);

/* The digest of one side's documents, in the old form. */
spill_code_t spill_copy_pass_digest(spill_copy_pass_t *copy_pass, bool of_slice,
                                    spill_digest_t *digest, spill_error_t *error);

/* Copy documents that the other side lacks or has in another state. */
spill_code_t spill_copy_pass_run(spill_copy_pass_t *copy_pass, spill_error_t *error);

/*
 * Insert the transformed documents of a chunk without reading, because the joint collection is
 * expected to have none of them. Documents that a unique index refuses are copied as above.
 */
spill_code_t spill_copy_pass_insert(spill_copy_pass_t *copy_pass,
                                    const spill_raw_admin_batch_t *documents, spill_error_t *error);

/*
 * Check that the collection that is copied from exists. SPILL_REFUSED: it was renamed or dropped,
 * which does not mean that its documents were deleted. One command, which reads run->listing again.
 */
spill_code_t spill_copy_pass_check_source(spill_copy_pass_t *copy_pass, spill_error_t *error);

/* Delete documents that the side that is copied from does not have. */
spill_code_t spill_copy_pass_remove(spill_copy_pass_t *copy_pass, spill_error_t *error);

/* ---- pass.c ---------------------------------------------------------------------------------- */

/* Which collections a pass copies from and to. */
typedef struct spill_consolidate_way {
    bool kept; /* the old collection is put aside under its other name */
    bool back;
    const char *joint;
    size_t members; /* only the first ones; 0: all */
} spill_consolidate_way_t;

/* The name that the member's old collection has now. */
const char *spill_consolidate_old_name(const spill_consolidate_run_t *run,
                                       const spill_consolidate_way_t *way, size_t member);

/* How many members a pass visits. */
size_t spill_consolidate_members(const spill_consolidate_run_t *run,
                                 const spill_consolidate_way_t *way);

/* The pass over the current member (run->place) has ended: count and report what it did. */
void spill_consolidate_count_member(spill_consolidate_run_t *run,
                                    const spill_consolidate_moved_t *moved, int64_t pause_us);

/* Report that this thread begins to work on a collection, and (NULL) ends that. */
void spill_consolidate_works(const spill_consolidate_run_t *run, const char *collection);

/* Continue behind the current member, and save the place. */
spill_code_t spill_consolidate_next_member(spill_consolidate_run_t *run, spill_error_t *error);

/* ---- first_pass.c ---------------------------------------------------------------------------- */

/*
 * The first pass of a copy from run->place on: insert the documents of all members, chunk by chunk,
 * by run->options->threads threads. The place is saved behind each chunk, in their order, so all
 * documents before it are copied.
 */
spill_code_t spill_consolidate_first_pass(spill_consolidate_run_t *run,
                                          const spill_consolidate_way_t *way, int64_t pause_us,
                                          spill_error_t *error);

/* ---- pass.c: repeated passes ----------------------------------------------------------------- */

/* As pause_us: only a pass that finds both sides equal is good enough. */
#define SPILL_CONSOLIDATE_EQUAL INT64_C(-1)

/*
 * Repeat passes over all members until one pass is good enough, or options->passes are made.
 * result->changing is the number of members for which the last pass was not good enough. The first
 * pass of a copy inserts without a comparison.
 *
 * pause_us: SPILL_CONSOLIDATE_EQUAL, or the longest pause in microseconds that each member may have
 * by its own estimate. run->slowest is the member with the longest estimate. It is the time of the
 * member's last pass without the throttle's waits, and of one more comparison if that pass found a
 * difference.
 */
spill_code_t spill_consolidate_passes(spill_consolidate_run_t *run,
                                      const spill_consolidate_way_t *way, int64_t pause_us,
                                      spill_error_t *error);

/*
 * The same for the current member alone (run->place). With a pause_us, passes continue while each
 * halves the estimate, until it is below a second. The place is not saved.
 */
spill_code_t spill_consolidate_conclude(spill_consolidate_run_t *run,
                                        const spill_consolidate_way_t *way, int64_t pause_us,
                                        spill_error_t *error);

/* ---- absorb.c -------------------------------------------------------------------------------- */

/*
 * Absorb a stray of the member: a collection in run->listing that was created under the old name
 * after the member was put aside. Insert its documents where they belong, and drop it. *found:
 * there was one, and run->listing is out of date. SPILL_REFUSED: the message names a document that
 * the target has in another state. A conflict found before the stray has its late name leaves
 * everything unchanged.
 */
spill_code_t spill_consolidate_absorb(spill_consolidate_run_t *run, size_t member, bool open,
                                      bool *found, spill_error_t *error);

/*
 * Absorb the strays of all members; the first `open` members are open. SPILL_REFUSED: also if a
 * stray was created meanwhile.
 */
spill_code_t spill_consolidate_absorb_all(spill_consolidate_run_t *run, size_t open,
                                          spill_error_t *error);

/* ---- transform.c: views ---------------------------------------------------------------------- */

/* Check that the server creates views: create one, check it, and drop it. SPILL_REFUSED: it does
 * not. */
spill_code_t spill_consolidate_try_views(spill_consolidate_run_t *run, spill_error_t *error);

/* Create the view of one member under its old name; run->listing may have it already. */
spill_code_t spill_consolidate_make_view(spill_consolidate_run_t *run, size_t member,
                                         spill_error_t *error);

/* Create the view of each member, and read the views back. SPILL_REFUSED: one differs. */
spill_code_t spill_consolidate_make_views(spill_consolidate_run_t *run, spill_error_t *error);

/* Drop the view of one member, if run->listing has it. */
spill_code_t spill_consolidate_drop_view(spill_consolidate_run_t *run, size_t member,
                                         spill_error_t *error);

/* Drop the views under all old names. */
spill_code_t spill_consolidate_drop_views(spill_consolidate_run_t *run, spill_error_t *error);

#endif
