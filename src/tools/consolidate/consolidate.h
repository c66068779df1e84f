/*
 * Consolidate: many collections of one shape become one, with a field that tells them apart, while
 * the application goes on writing to the old ones (docs/how-to/consolidate.md).
 *
 *   copy       every old document has its image in the joint collection (transform.h); repeated
 * until a pass over all finds each slice equal to its collection cut over   each old collection in
 * turn gets another name, under which nobody writes; what was written up to then is copied and
 * compared; a view stands under the old name, if wanted finish     the old collections are dropped
 *   undo       up to then: what was written to the joint collection after the cut-over goes back,
 *              the old collections get their names again, and the joint one is dropped
 *
 * Every step may be killed and started again: a mark in the store says which one it was
 * (consolidate_checkpoint.h), and all that a step does is found done when it is done again.
 */
#ifndef SPILL_TOOLS_CONSOLIDATE_CONSOLIDATE_H
#define SPILL_TOOLS_CONSOLIDATE_CONSOLIDATE_H

#include "store/raw_admin.h"
#include "tools/consolidate/plan.h"
#include "tools/throttle.h"

/* Passes that a copy makes at most, while others write. */
#define SPILL_CONSOLIDATE_PASSES 10

/*
 * Cutting over beside writers. A collection is put aside only if its estimated pause fits into this
 * many seconds. If the pause takes longer, the collection gets its name back.
 */
#define SPILL_CONSOLIDATE_PAUSE_S 60

/* What one pass did to one collection. */
typedef struct spill_consolidate_moved {
    int64_t pass; /* from 1 */
    const spill_joined_t *member;
    bool compared;         /* the digest is of both sides, as they were found */
    bool equal;            /* both had that digest */
    spill_digest_t digest; /* of what was read of the side that is copied from */
    int64_t inserted;
    int64_t replaced;
    int64_t deleted;
    int64_t pause_us; /* if compared: the estimated pause, if the collection were put aside now */
} spill_consolidate_moved_t;

/* A collection of which the cut-over is done: from now on its writers write to the joint one. */
typedef struct spill_consolidate_opened {
    const spill_joined_t *member;
    int64_t pause_us; /* its writers waited; 0 if `before` */
    bool before;      /* an earlier run opened it */
} spill_consolidate_opened_t;

typedef struct spill_consolidate_progress {
    int64_t pass;
    size_t collections; /* done in this pass */
    size_t collections_all;
    int64_t documents;     /* worked off in this pass */
    int64_t documents_all; /* of it, that the server believes there are */
} spill_consolidate_progress_t;

typedef struct spill_consolidate_options {
    spill_throttle_options_t throttle; /* units are documents; `latency` is filled in here */
    int64_t passes;                    /* 0: SPILL_CONSOLIDATE_PASSES */
    int64_t pause_s;                   /* 0: SPILL_CONSOLIDATE_PAUSE_S */
    bool views; /* cutting over: put views in the place of the old collections */

    /* Both may be NULL; `context` is theirs alone. */
    void (*moved)(void *context, const spill_consolidate_moved_t *moved);
    void (*progress)(void *context, const spill_consolidate_progress_t *progress);
    /* May be NULL. Cutting over: a collection is open. For those of earlier runs at the beginning.
     */
    void (*opened)(void *context, const spill_consolidate_opened_t *opened);
    void *context;
} spill_consolidate_options_t;

typedef struct spill_consolidate_result {
    int64_t passes;
    int64_t inserted;
    int64_t replaced;
    int64_t deleted;
    int64_t documents; /* in the collections that the last pass found equal */
    size_t changing;   /* collections that differed in the last pass: 0, it is all the same */
    bool done;         /* it was done before; nothing was to do */
} spill_consolidate_result_t;

/*
 * What has to be said of a group before anything is done: a document of {into, field, ids, phase,
 * collections, open, documents, missing: [], notInPlan: [], indexes: [], refused: [], notes: []},
 * initialized by the call. Where `refused` is not empty a copy will say so, too. Reads only: one
 * command for each collection and a few.
 */
spill_code_t spill_consolidate_look(spill_raw_admin_t *admin, const spill_consolidation_t *group,
                                    bson_t *report, spill_error_t *error);

/*
 * Bring the documents, or go on with it. SPILL_REFUSED: the plan was another one when it was begun,
 * the joint collection is another's, an index or a collection cannot be merged, two documents have
 * one _id, the discriminator is a field already, or it is cut over. SPILL_CANCELLED:
 * options->throttle.stop. SPILL_CONFLICT: another one is at it. *result is filled in every case.
 * Memory: a chunk of each side, some MiB.
 */
spill_code_t spill_consolidate_copy(spill_raw_admin_t *admin, const spill_consolidation_t *group,
                                    const spill_consolidate_options_t *options,
                                    spill_consolidate_result_t *result, spill_error_t *error);

/*
 * Cut over, one collection after the other. The application may write to an old collection until
 * that one is put aside, and to its documents in the joint one once options->opened has reported
 * it, or after this call. SPILL_REFUSED: a collection changes too fast (it has its name again),
 * nothing was copied yet, a collection of an old name was made meanwhile, or the server has no
 * views. The same call continues. As above.
 */
spill_code_t spill_consolidate_cut_over(spill_raw_admin_t *admin,
                                        const spill_consolidation_t *group,
                                        const spill_consolidate_options_t *options,
                                        spill_consolidate_result_t *result, spill_error_t *error);

/*
 * Drop the old collections for good; what was not cut over yet is, first. SPILL_REFUSED: as there.
 */
spill_code_t spill_consolidate_finish(spill_raw_admin_t *admin, const spill_consolidation_t *group,
                                      const spill_consolidate_options_t *options,
                                      spill_consolidate_result_t *result, spill_error_t *error);

/*
 * What undoing it would bring back to the old collections and would lose: {phase, collections:
 * [{collection, before: N, now: N}] of those that differ, strangers: N, refused: []}, initialized
 * by the call. Reads all of both sides where it is cut over.
 */
spill_code_t spill_consolidate_look_undo(spill_raw_admin_t *admin,
                                         const spill_consolidation_t *group,
                                         const spill_consolidate_options_t *options, bson_t *report,
                                         spill_error_t *error);

/*
 * Undo it. SPILL_REFUSED: the old collections are being dropped, a collection of an old name was
 * made meanwhile, or the joint one has documents of no old collection, or two that would be one;
 * nothing was changed then.
 */
spill_code_t spill_consolidate_undo(spill_raw_admin_t *admin, const spill_consolidation_t *group,
                                    const spill_consolidate_options_t *options,
                                    spill_consolidate_result_t *result, spill_error_t *error);

#endif
