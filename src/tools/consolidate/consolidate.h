/*
 * Consolidate: merge many collections of one shape into one, the joint collection, with a field
 * that tells their documents apart. Meanwhile the application continues to write to the old
 * collections (docs/how-to/consolidate.md).
 *
 * - copy: each old document gets its transformed document in the joint collection.
 *   Passes are repeated until one finds each slice equal to its collection.
 *
 * - cut over: each old collection in turn is renamed to a name that no client writes to. What was
 *   written before is copied and compared. If wanted, a view gets the old name.
 *
 * - finish: drop the old collections.
 *
 * - undo, possible until then: copy what was written to the joint collection after the cut-over
 *   back, rename the old collections back, and drop the joint one.
 *
 * Every step may be killed and started again. A checkpoint in the store records the step
 * (consolidate_checkpoint.c), and a repeated step recognizes what it has done before.
 *
 * The folder's files, in the order to read:
 *   transform.c                the two forms of a document, and views under the old names
 *   consolidate_plan.c         the groups of a plan
 *   consolidate_checkpoint.c   the stored state, and changes of collections by its owner
 *   checks.c                   checks before anything is changed; indexes.c merges the indexes
 *   copy_pass.c                make one side equal to the other
 *   first_pass.c               insert the documents of all members
 *   pass.c                     passes over all members, repeated until both sides are equal
 *   consolidate_copy.c         the report, and the copy
 *   absorb.c                   documents that arrive late under an old name
 *   cutover.c                  cut over, and finish; undo.c undoes it
 */
#ifndef SPILL_TOOLS_CONSOLIDATE_CONSOLIDATE_H
#define SPILL_TOOLS_CONSOLIDATE_CONSOLIDATE_H

#include "store/raw_admin.h"
#include "tools/throttle.h"

#include <spillway/value.h>

/* ---- the transformed document ---------------------------------------------------------------- */

/*
 * The transformed document: the form of an old collection's document in the joint collection. The
 * discriminator follows _id, and all other fields follow it, byte for byte:
 *
 *      {_id: 7, text: "hi"}   <->   {_id: {room: "a", id: 7}, room: "a", text: "hi"}
 *
 * If the plan says that no two collections share an _id, the _id stays the same. The transformed
 * _id depends on nothing else, so every run finds the document again without a lookup table.
 */

/* The documents of one old collection in the joint one. Borrows. */
typedef struct spill_share {
    const char *field; /* the discriminator */
    spill_value_t value;
    bool keeps_ids; /* _id is the same in both */
} spill_share_t;

/* Append the transformed document's _id under a key. */
void spill_transform_id(const spill_share_t *slice, const spill_value_t *id, bson_t *to,
                        const char *key);

/*
 * Append the old document's _id under a key. An _id of another form is appended unchanged: the
 * application has written that document to the joint collection itself.
 */
void spill_transform_original_id(const spill_share_t *slice, const spill_value_t *id, bson_t *to,
                                 const char *key);

/*
 * Transform a document; `transformed` is initialized by the call. SPILL_REFUSED: the document has a
 * field of the discriminator's name already, or would be too large for a store. SPILL_CORRUPT: it
 * has no _id, or is malformed. O(size).
 */
spill_code_t spill_transform_make(const spill_share_t *slice, const bson_t *document,
                                  bson_t *transformed, spill_error_t *error);

/* Restore the old document, which the call initializes. Errors as spill_transform_make. */
spill_code_t spill_transform_reverse(const spill_share_t *slice, const bson_t *transformed,
                                     bson_t *document, spill_error_t *error);

/* The _id of a document. If it has none: null, and SPILL_CORRUPT. */
spill_code_t spill_transform_id_of(const bson_t *document, spill_value_t *id, spill_error_t *error);

/* A digest of documents in any order: their number, their bytes, and sums of two hashes of each. */
typedef struct spill_digest {
    int64_t documents;
    int64_t bytes;
    uint64_t sums[2];
} spill_digest_t;

void spill_digest_add(spill_digest_t *digest, const bson_t *document);
bool spill_digest_equal(const spill_digest_t *left, const spill_digest_t *right);

/* The sums as 32 hexadecimal digits. */
enum { SPILL_DIGEST_TEXT = 33 };
void spill_digest_text(const spill_digest_t *digest, char text[SPILL_DIGEST_TEXT]);

/* ---- the plan of a group --------------------------------------------------------------------- */

/*
 * What a plan says about one group of collections (docs/reference/plan-file.md): their names, the
 * discriminator's value for each, and the joint collection.
 */

/* The names of old collections that are put aside begin with this. */
#define SPILL_KEPT_PREFIX "spillway_kept_"

typedef struct spill_joined {
    char *collection;    /* the old name */
    char *kept;          /* its name while it is put aside */
    spill_value_t value; /* of the discriminator; borrowed from the consolidation's document */
} spill_joined_t;

typedef struct spill_consolidation {
    bson_t *document; /* the plan's fields that decide what is done, to detect a changed plan */
    char *pattern;    /* "messages_*", or "" */
    char *into;
    char *aside; /* the joint collection's name during an undo */
    char *field; /* the discriminator */
    bool keeps_ids;
    spill_joined_t *members;
    size_t count;
    bson_t *indexes;   /* in addition to the old collections' indexes */
    bson_t *leave_out; /* names of old indexes */
} spill_consolidation_t;

typedef struct spill_consolidations {
    spill_consolidation_t *items;
    size_t count;
} spill_consolidations_t;

/*
 * Read the groups of a plan's file that must be consolidated. *plan is filled in every case, for
 * spill_consolidations_release. SPILL_IO; SPILL_PARSE: it is no JSON; SPILL_INVALID: the message
 * names what is missing or wrong.
 */
spill_code_t spill_consolidations_read(const char *file, spill_consolidations_t *plan,
                                       spill_error_t *error);
void spill_consolidations_release(spill_consolidations_t *plan);

/* Read one group from its document in a plan. Errors as above. */
spill_code_t spill_consolidation_read(const bson_t *document, spill_consolidation_t *group,
                                      spill_error_t *error);
void spill_consolidation_release(spill_consolidation_t *group);

/* The slice of a member. It borrows from the group. */
spill_share_t spill_consolidation_share(const spill_consolidation_t *group, size_t member);

/* ---- the jobs on a group --------------------------------------------------------------------- */

/* Default for the most passes of a copy while the application writes. */
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
    bool compared;         /* the digests of both sides were compared */
    bool equal;            /* they were equal */
    spill_digest_t digest; /* of the side that is copied from */
    int64_t inserted;
    int64_t replaced;
    int64_t deleted;
    int64_t pause_us; /* if compared: the estimated pause if the collection were put aside now */
} spill_consolidate_moved_t;

/* A collection that was cut over: from now on its writers write to the joint collection. */
typedef struct spill_consolidate_opened {
    const spill_joined_t *member;
    int64_t pause_us; /* how long its writers waited; 0 if `before` */
    bool before;      /* an earlier run opened it */
} spill_consolidate_opened_t;

typedef struct spill_consolidate_progress {
    int64_t pass;
    size_t collections; /* done in this pass */
    size_t collections_all;
    int64_t documents;     /* handled in this pass */
    int64_t documents_all; /* that the pass must handle, by the server's estimate */
} spill_consolidate_progress_t;

typedef struct spill_consolidate_options {
    spill_throttle_options_t throttle; /* units are documents; `latency` is set internally */
    int threads;     /* of passes over all collections, up to SPILL_PARALLEL_MAX; 0: one */
    int64_t passes;  /* 0: SPILL_CONSOLIDATE_PASSES */
    int64_t pause_s; /* 0: SPILL_CONSOLIDATE_PAUSE_S */
    bool views;      /* when cutting over: put views in the place of the old collections */

    /* Both may be NULL; `context` is passed to them only. */
    void (*moved)(void *context, const spill_consolidate_moved_t *moved);
    void (*progress)(void *context, const spill_consolidate_progress_t *progress);
    /* May be NULL. A thread begins to copy or compare documents of a collection, and (NULL) ends
     * that. By several threads at a time. */
    void (*works)(void *context, const char *collection);
    /* May be NULL. When cutting over: a collection is open. At the beginning it reports the
     * collections that earlier runs have opened. */
    void (*opened)(void *context, const spill_consolidate_opened_t *opened);
    void *context;
} spill_consolidate_options_t;

typedef struct spill_consolidate_result {
    int64_t passes;
    int64_t inserted;
    int64_t replaced;
    int64_t deleted;
    int64_t documents; /* in the collections that the last pass found equal */
    size_t changing;   /* collections that differed in the last pass; 0: all are equal */
    bool done;         /* it was done before, so this call did nothing */
} spill_consolidate_result_t;

/*
 * Report on a group before anything is done: a document of {into, field, ids, phase, collections,
 * open, documents, missing: [], notInPlan: [], indexes: [], refused: [], notes: []}, initialized by
 * the call. If `refused` is not empty, a copy refuses for the same reasons. Only reads: one command
 * per collection and a few more.
 */
spill_code_t spill_consolidate_report(spill_raw_admin_t *admin, const spill_consolidation_t *group,
                                      bson_t *report, spill_error_t *error);

/*
 * Copy the documents, or continue to copy them. SPILL_REFUSED: it was begun with another plan, the
 * joint collection belongs to another consolidation or program, an index or a collection cannot be
 * merged, two documents have one _id, a document has a field of the discriminator's name, or it is
 * cut over. SPILL_CANCELLED: options->throttle.stop. SPILL_CONFLICT: another run is in progress.
 * *result is filled in every case. Memory: for each thread up to three chunks, of 4 MiB or
 * a single document each: as read, as transformed, and as the driver sends it.
 */
spill_code_t spill_consolidate_copy(spill_raw_admin_t *admin, const spill_consolidation_t *group,
                                    const spill_consolidate_options_t *options,
                                    spill_consolidate_result_t *result, spill_error_t *error);

/*
 * Cut over one collection after another. The application may write to an old collection until it is
 * put aside. It may write to the collection's documents in the joint one after options->opened has
 * reported them, or after this call. SPILL_REFUSED: a collection changes too fast (it is renamed
 * back), nothing was copied yet, a collection of an old name was created meanwhile, or the server
 * has no views. The same call continues. Otherwise as spill_consolidate_copy.
 */
spill_code_t spill_consolidate_cut_over(spill_raw_admin_t *admin,
                                        const spill_consolidation_t *group,
                                        const spill_consolidate_options_t *options,
                                        spill_consolidate_result_t *result, spill_error_t *error);

/*
 * Drop the old collections for good, after cutting over what is not cut over yet. SPILL_REFUSED: as
 * spill_consolidate_cut_over.
 */
spill_code_t spill_consolidate_finish(spill_raw_admin_t *admin, const spill_consolidation_t *group,
                                      const spill_consolidate_options_t *options,
                                      spill_consolidate_result_t *result, spill_error_t *error);

/*
 * Report what an undo would restore in the old collections and what it would lose: {phase,
 * collections: [{collection, before: N, now: N}] with the collections that differ, strangers: N,
 * refused: []}, initialized by the call. If it is cut over, reads both sides completely.
 */
spill_code_t spill_consolidate_report_undo(spill_raw_admin_t *admin,
                                           const spill_consolidation_t *group,
                                           const spill_consolidate_options_t *options,
                                           bson_t *report, spill_error_t *error);

/*
 * Undo it. SPILL_REFUSED: the old collections are being dropped, or a collection of an old name was
 * created meanwhile. Or the joint collection has documents of no old collection, or two documents
 * that would become one. Nothing was changed in these cases.
 */
spill_code_t spill_consolidate_undo(spill_raw_admin_t *admin, const spill_consolidation_t *group,
                                    const spill_consolidate_options_t *options,
                                    spill_consolidate_result_t *result, spill_error_t *error);

#endif
