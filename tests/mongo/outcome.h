/*
 * What must be true after the workers have ended:
 *   - every acknowledged element exists once, under the acknowledged number;
 *   - an append with an unknown outcome exists once as a whole batch, or not at all;
 *   - removed elements no longer exist;
 *   - no other elements exist;
 *   - the verifier finds nothing.
 */
#ifndef TESTS_MONGO_OUTCOME_H
#define TESTS_MONGO_OUTCOME_H

#include <spillway/spillway.h>

#include <stddef.h>
#include <stdint.h>

/* An element that was read. */
typedef struct outcome_element {
    int64_t label;
    size_t owner; /* index into the outcome's owners */
    int64_t seq;
} outcome_element_t;

typedef struct outcome {
    char **owners; /* "array/owner" */
    size_t owner_count;
    size_t owner_capacity;
    outcome_element_t *elements; /* by label */
    size_t element_count;
    size_t element_capacity;
    /* Counts from the histories. */
    int64_t appends;
    int64_t unknown;  /* appends with an unknown outcome */
    int64_t stood;    /* the part of them that is stored */
    int64_t removals; /* single ones and trims */
} outcome_t;

/*
 * Read every owner of the arrays as a whole, and log the reads to the history of worker `reader` in
 * `folder`. Fails the test if a read has gaps. Reads of owners with removed elements are not logged
 * and may have gaps, but must be in order. Release the outcome.
 */
void outcome_read(outcome_t *outcome, spill_store_t *store, const char *folder, int reader);
void outcome_release(outcome_t *outcome);

/* Compare it with the histories of workers 0 .. workers - 1. Fails the test if they differ. */
void outcome_check(outcome_t *outcome, const char *folder, int workers);

/* Verify every array. Fails the test if there are findings. */
void outcome_verify(spill_store_t *store);

#endif
