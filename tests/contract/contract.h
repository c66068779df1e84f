/*
 * What every store has to do, as one suite of tests for any of them. A test program for a store
 * describes how it is opened and calls contract_run.
 */
#ifndef TESTS_CONTRACT_H
#define TESTS_CONTRACT_H

#include "store/store.h"

typedef struct contract_kind {
    const char *name;
    bool slow;               /* fewer random requests; with a sanitizer in one order alone */
    bool shows_other_arrays; /* ... of a head, among its other fields */
    bool combines;           /* takes the appends of several callers as one */
    /* A store with nothing in it. */
    spill_store_t *(*open)(void);
    /* Close it and open it again with all that was in it; NULL where nothing outlives a close. */
    spill_store_t *(*reopen)(spill_store_t *store);
    /* Close it and remove what it left. */
    void (*close)(spill_store_t *store);
} contract_kind_t;

/* Runs the suite, for arrays of either order; the result is for main to return. */
int contract_run(const contract_kind_t *kind);

#endif
