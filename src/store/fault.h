/*
 * A store around another that lets calls go wrong, as networks and servers do. What happens to each
 * call is decided by a callback; nothing is random here.
 *
 * The store underneath stays its owner's: closing the wrapper leaves it open. Unlike other stores
 * this one is not for several threads at once (coroutines may take turns in its hooks).
 */
#ifndef SPILL_STORE_FAULT_H
#define SPILL_STORE_FAULT_H

#include "store/store.h"

/* X(name): what can happen to a call, once. */
#define SPILL_FAULTS(X)                                                                            \
    X(NONE)           /* it is passed on */                                                        \
    X(FAIL)           /* SPILL_IO, not applied */                                                  \
    X(LOST_APPLIED)   /* SPILL_UNKNOWN, applied */                                                 \
    X(LOST_UNAPPLIED) /* SPILL_UNKNOWN, not applied */                                             \
    X(DUPLICATE)      /* passed on, and applied again at a later spill_fault_deliver */            \
    X(LOST_DELAYED)   /* SPILL_UNKNOWN now, applied at a later spill_fault_deliver */

typedef enum spill_fault {
#define SPILL_FAULT_ENUM(name) SPILL_FAULT_##name,
    SPILL_FAULTS(SPILL_FAULT_ENUM)
#undef SPILL_FAULT_ENUM
        SPILL_FAULT_COUNT
} spill_fault_t;

const char *spill_fault_name(spill_fault_t fault);

/*
 * `index` counts the wrapper's calls from 0. `request` is NULL for calls that are not requests
 * (bind, owners, the catalog): there DUPLICATE is NONE, and LOST_DELAYED is LOST_UNAPPLIED.
 * `before` and `after` surround each call, whatever becomes of it. They may switch to another
 * coroutine, or not return at all when a client crashes; `after` comes once the store has done
 * what it does and before the caller learns of it. Any of the three may be NULL.
 */
typedef struct spill_fault_hooks {
    void *context;
    spill_fault_t (*decide)(void *context, int64_t index, const spill_request_t *request);
    void (*before)(void *context, int64_t index, const spill_request_t *request);
    void (*after)(void *context, int64_t index, const spill_request_t *request);
} spill_fault_hooks_t;

/* *store is closed with spill_store_close. */
void spill_fault_wrap(spill_store_t *inner, const spill_fault_hooks_t *hooks,
                      spill_store_t **store);

/* Calls so far, and how many of them had each fault. */
int64_t spill_fault_calls(const spill_store_t *store);
int64_t spill_fault_counter(const spill_store_t *store, spill_fault_t fault);

/*
 * Requests on their way: DUPLICATE and LOST_DELAYED put them here, in order of their calls. Deliver
 * applies one (index < pending) and forgets it; what the store answered to it is returned, for
 * those who count. The hooks are not called. Closing the wrapper forgets the rest.
 */
size_t spill_fault_pending(const spill_store_t *store);
const spill_request_t *spill_fault_peek(const spill_store_t *store, size_t index);
spill_outcome_t spill_fault_deliver(spill_store_t *store, size_t index);

/*
 * Hooks that let one call go wrong: the `at`-th, from 0. For loops that fail call 0, 1, 2, ...
 * until a run passes. The context is the caller's.
 */
typedef struct spill_fault_once {
    int64_t at;
    spill_fault_t fault;
} spill_fault_once_t;

spill_fault_hooks_t spill_fault_once(spill_fault_once_t *once);

#endif
