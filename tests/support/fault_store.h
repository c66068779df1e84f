/*
 * A store that wraps another and makes calls fail, as networks and servers do. A callback decides
 * what happens to each call; nothing here is random.
 *
 * Closing the wrapper leaves the inner store open. Unlike other stores, only one thread may use
 * this one (coroutines may switch in its hooks).
 */
#ifndef TESTS_SUPPORT_FAULT_STORE_H
#define TESTS_SUPPORT_FAULT_STORE_H

#include "store/store.h"

/* X(name): each thing that can happen to a call. */
#define FAULTS(X)                                                                                  \
    X(NONE)           /* passed on */                                                              \
    X(FAIL)           /* SPILL_IO, not applied */                                                  \
    X(LOST_APPLIED)   /* SPILL_UNKNOWN, applied */                                                 \
    X(LOST_UNAPPLIED) /* SPILL_UNKNOWN, not applied */                                             \
    X(DUPLICATE)      /* passed on, and applied again at a later fault_deliver */                  \
    X(LOST_DELAYED)   /* SPILL_UNKNOWN now, applied at a later fault_deliver */

typedef enum spill_fault {
#define FAULT_ENUM(name) FAULT_##name,
    FAULTS(FAULT_ENUM)
#undef FAULT_ENUM
        FAULT_COUNT
} fault_t;

const char *fault_name(fault_t fault);

/*
 * `index` counts the wrapper's calls from 0. `request` is NULL for calls that are not requests
 * (bind, owners, the catalog): there DUPLICATE is NONE, and LOST_DELAYED is LOST_UNAPPLIED.
 * `before` and `after` surround each call, whatever its fault. They may switch to another
 * coroutine, or never return if a client crashes. `after` is called when the store is done, before
 * the caller gets the result. Any of the three may be NULL.
 */
typedef struct fault_hooks {
    void *context;
    fault_t (*decide)(void *context, int64_t index, const spill_request_t *request);
    void (*before)(void *context, int64_t index, const spill_request_t *request);
    void (*after)(void *context, int64_t index, const spill_request_t *request);
} fault_hooks_t;

/* *store is closed with spill_store_close. */
void fault_wrap(spill_store_t *inner, const fault_hooks_t *hooks, spill_store_t **store);

/* Calls so far, and how many of them had each fault. */
int64_t fault_calls(const spill_store_t *store);
int64_t fault_counter(const spill_store_t *store, fault_t fault);

/*
 * Delayed requests, from DUPLICATE and LOST_DELAYED, in the order of their calls. Deliver applies
 * one (index < pending), removes it from the list and returns the store's answer. It does not call
 * the hooks. Closing the wrapper discards the rest.
 */
size_t fault_pending(const spill_store_t *store);
const spill_request_t *fault_peek(const spill_store_t *store, size_t index);
spill_outcome_t fault_deliver(spill_store_t *store, size_t index);

/*
 * Hooks that make one call fail: the `at`-th, from 0. For loops that fail call 0, 1, 2, ... until a
 * run passes. The caller owns the context.
 */
typedef struct fault_once {
    int64_t at;
    fault_t fault;
} fault_once_t;

fault_hooks_t fault_once(fault_once_t *once);

#endif
