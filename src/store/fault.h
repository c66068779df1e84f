/*
 * A store that wraps another and makes calls fail, as networks and servers do. A callback decides
 * what happens to each call; nothing here is random.
 *
 * Closing the wrapper leaves the inner store open. Unlike other stores, only one thread may use
 * this one (coroutines may switch in its hooks).
 */
#ifndef SPILL_STORE_FAULT_H
#define SPILL_STORE_FAULT_H

#include "store/store.h"

/* X(name): each thing that can happen to a call. */
#define SPILL_FAULTS(X)                                                                            \
    X(NONE)           /* passed on */                                                              \
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
 * `before` and `after` surround each call, whatever its fault. They may switch to another
 * coroutine, or never return if a client crashes. `after` is called when the store is done, before
 * the caller gets the result. Any of the three may be NULL.
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
 * Delayed requests, from DUPLICATE and LOST_DELAYED, in the order of their calls. Deliver applies
 * one (index < pending), removes it from the list and returns the store's answer. It does not call
 * the hooks. Closing the wrapper discards the rest.
 */
size_t spill_fault_pending(const spill_store_t *store);
const spill_request_t *spill_fault_peek(const spill_store_t *store, size_t index);
spill_outcome_t spill_fault_deliver(spill_store_t *store, size_t index);

/*
 * Hooks that make one call fail: the `at`-th, from 0. For loops that fail call 0, 1, 2, ... until a
 * run passes. The caller owns the context.
 */
typedef struct spill_fault_once {
    int64_t at;
    spill_fault_t fault;
} spill_fault_once_t;

spill_fault_hooks_t spill_fault_once(spill_fault_once_t *once);

#endif
