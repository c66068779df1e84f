/*
 * The contract of every store, as one suite of tests. The test program of a store describes how to
 * open it and calls contract_run.
 */
#ifndef TESTS_CONTRACT_H
#define TESTS_CONTRACT_H

#include "store/store.h"

typedef struct contract_kind {
    const char *name;
    bool slow;               /* fewer random requests; one order only under a sanitizer */
    bool shows_other_arrays; /* a head's other fields show its other arrays */
    bool combines;           /* combines several callers' appends into one step */
    /* Open an empty store. */
    spill_store_t *(*open)(void);
    /* Close the store and open it with the same content; NULL: content does not outlive a close. */
    spill_store_t *(*reopen)(spill_store_t *store);
    /* Close the store and remove its content. */
    void (*close)(spill_store_t *store);
} contract_kind_t;

/* Run the suite with arrays of both orders. Return the result for main to return. */
int contract_run(const contract_kind_t *kind);

#endif
