/*
 * Migrate: lay out the arrays of a definition that other programs keep in its heads' documents, or
 * have pushed to, while they go on. The documents themselves say what is done and what is not, so
 * there is no other record of progress: after a crash at any point the same call goes on.
 * docs/reference/allowed-writes.md lists what other programs may do meanwhile.
 */
#ifndef SPILL_TOOLS_MIGRATE_H
#define SPILL_TOOLS_MIGRATE_H

#include "tools/copy.h"
#include "tools/throttle.h"

#include <spillway/array.h>

/* What there is to do, or was done. Added to. */
typedef struct spill_migrate_result {
    int64_t owners;   /* whose array was looked at: to be laid out, or given back */
    int64_t plain;    /* ... of these, arrays of other programs, ... */
    int64_t full;     /* ... in documents that are full, or nearly; taken over and cut at once */
    int64_t elements; /* in their arrays */
    int64_t bytes;
    int64_t moved;   /* elements that went to pages, ... */
    int64_t pages;   /* ... so many */
    int64_t changed; /* pages that clients changed before they could be compared */
    int64_t failed;  /* owners that were passed over */
} spill_migrate_result_t;

/* What was done for one owner. */
typedef struct spill_migrated {
    const spill_value_t *owner;
    int64_t elements; /* in its array, when it was found; given back */
    int64_t moved, pages;
    uint64_t hash; /* of the elements that were moved, or compared, in their order */
    bool taken;    /* the array was of others */
    bool at_once;  /* ... and was cut in the update that took it over */
    bool given_back;
    bool caught_up; /* to the planned definition, and compared (tools/catch_up.h), ... */
    bool anew;      /* ... from the start again */
    bool gone;      /* it was dropped there, for it has gone from the original */
    const spill_error_t *failed; /* it was passed over, and why; or NULL */
} spill_migrated_t;

typedef struct spill_migrate_options {
    spill_throttle_t *throttle; /* in elements; NULL: none */
    int threads;                /* owners that are laid out at a time; 0: one */
    int64_t full_bytes;         /* documents from this size on are full; 0: as on a server */
    /*
     * The definition to which elements are copied from here; or NULL. An unmanaged array with an
     * element that it cannot have is left unchanged: its owner fails.
     */
    const spill_definition_t *planned;
    /* All may be NULL. Called by any of these threads, and by one at a time. */
    void (*migrated)(void *context, const spill_migrated_t *migrated);
    void (*progress)(void *context, const spill_migrate_result_t *result);
    void (*caught_up)(void *context, const spill_copy_result_t *result);
    void *context;
} spill_migrate_options_t;

/* Is it one owner's trouble alone, so that a pass goes on with the others? */
bool spill_migrate_is_the_owners(spill_code_t code);

/* Are the arrays of this definition laid out in place? SPILL_INVALID: only layout outlier, keep
 * newest. */
spill_code_t spill_migrate_check(const spill_definition_t *definition, spill_error_t *error);

/*
 * Count what there is to do; nothing is changed. `pages` are those that would be made, `failed` the
 * owners that would be passed over, whom options->migrated reports with the reason; of `options`
 * (may be NULL) that, the context and full_bytes are used. The definition need not be saved. One
 * store operation for each 256 owners, which looks at every head.
 */
spill_code_t spill_migrate_survey(spill_store_t *store, const spill_definition_t *definition,
                                  const spill_migrate_options_t *options,
                                  spill_migrate_result_t *result, spill_error_t *error);

/*
 * Which owners have an element that options->planned cannot have? `migrated` reports each, with its
 * first such element, and result->failed counts them; nothing is changed. The definition need not
 * be saved. Cost: a read of every element, unless the planned definition can have any.
 */
spill_code_t spill_migrate_predict(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_migrate_options_t *options,
                                   spill_migrate_result_t *result, spill_error_t *error);

/*
 * Is there an array, not empty, that other programs keep where the definition has its heads? The
 * definition need not be saved. Ends at the first array.
 */
spill_code_t spill_migrate_has_unmanaged(spill_store_t *store, const spill_definition_t *definition,
                                         bool *any, spill_error_t *error);

/*
 * One pass: take over each array of others, move what is too much in a head to pages, and make
 * counts anew that do not fit. An owner that fails (it is damaged, or a copy of it is in the way)
 * is passed over and told. Whatever ends the pass (SPILL_CANCELLED: the throttle's `stop`; a store
 * that is not there), the same call goes on.
 */
spill_code_t spill_migrate(spill_array_t *array, const spill_migrate_options_t *options,
                           spill_migrate_result_t *result, spill_error_t *error);

/*
 * Would spill_migrate_undo find that all fits? It looks at every owner (`migrated` tells each that
 * does not fit) and changes nothing; SPILL_TOO_BIG.
 */
spill_code_t spill_migrate_check_undo(spill_array_t *array, const spill_migrate_options_t *options,
                                      spill_migrate_result_t *result, spill_error_t *error);

/*
 * The same, and then make every array of the definition one of others again. Clients of the library
 * have to be stopped, and sweeps; plain pushes may come. The same call goes on after a crash.
 * SPILL_REFUSED: in the end some were Spillway's again.
 */
spill_code_t spill_migrate_undo(spill_array_t *array, const spill_migrate_options_t *options,
                                spill_migrate_result_t *result, spill_error_t *error);

#endif
