/*
 * status --owners: the owners with unfinished operations, and the command that finishes each. Only
 * a walk over all owners finds them.
 */
#ifndef SPILL_TOOLS_UNFINISHED_OWNERS_H
#define SPILL_TOOLS_UNFINISHED_OWNERS_H

#include <spillway/array.h>

#include <stdbool.h>
#include <stdint.h>

/* Everything is borrowed. */
typedef struct spill_status_owner {
    /*
     * "removal" or "edit": an intent in the head. "lease": pages that a migration has copied from a
     * full document. "pages": pages without a head, of a drop that has not ended, or because
     * another program has deleted or replaced the document. "operation": another one, which the
     * state names.
     */
    const char *kind;
    const char *owner;  /* Extended JSON, relaxed */
    const char *state;  /* a sentence */
    const char *finish; /* the command that finishes it, or names what a person must look at */
    int64_t began_ms;   /* SPILL_DATE_UNKNOWN: it leaves no time; only a lease does */
} spill_status_owner_t;

typedef void (*spill_status_owner_fn)(void *context, const spill_status_owner_t *owner);

typedef struct spill_status_owners {
    int64_t count;    /* unfinished operations, and owners with pages without a head */
    int64_t headless; /* the latter: no killed program may be the cause, so a person must look */
} spill_status_owners_t;

/*
 * Visit the first `most` unfinished operations of the array's owners, and set *owners to the
 * numbers of all. `shown` is the store as the user named it. Changes nothing.
 * Cost: that of spill_find_half_done(), and one or two reads for each operation.
 */
spill_code_t spill_status_owners(spill_array_t *array, const char *shown, int64_t most,
                                 spill_status_owner_fn visit, void *context,
                                 spill_status_owners_t *owners, spill_error_t *error);

#endif
