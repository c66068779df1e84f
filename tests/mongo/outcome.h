/*
 * What has to be true after workers have ended: every element that was acknowledged is there once,
 * under the number that was told; one whose append was given up is there once with its whole batch,
 * or not at all; what was removed is gone; nothing else is there; the verifier is content.
 */
#ifndef TESTS_MONGO_OUTCOME_H
#define TESTS_MONGO_OUTCOME_H

#include <spillway/spillway.h>

#include <stddef.h>
#include <stdint.h>

/* An element as it was found. */
typedef struct outcome_element {
    int64_t label;
    size_t owner; /* in the owners of the outcome */
    int64_t seq;
} outcome_element_t;

typedef struct outcome {
    char **owners; /* "array/owner" */
    size_t owner_count;
    size_t owner_capacity;
    outcome_element_t *elements; /* by label */
    size_t element_count;
    size_t element_capacity;
    /* What the histories say. */
    int64_t appends;
    int64_t unknown;  /* appends that were given up */
    int64_t stood;    /* ... and are there all the same */
    int64_t removals; /* single ones and trims */
} outcome_t;

/*
 * Read every owner of the arrays as a whole, and tell it to the history of worker `reader` in
 * `folder`. Fails the test where a read has holes, or from owners of whom elements were
 * removed (whose reading it does not tell) is out of order. Release it.
 */
void outcome_read(outcome_t *outcome, spill_store_t *store, const char *folder, int reader);
void outcome_release(outcome_t *outcome);

/* Hold it against the histories of workers 0 .. workers - 1. Fails the test. */
void outcome_check(outcome_t *outcome, const char *folder, int workers);

/* Verify every array. Fails the test. */
void outcome_verify(spill_store_t *store);

#endif
