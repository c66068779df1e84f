/*
 * The cost of unbounded arrays, for comparison, on any store. On a server: one document with all
 * elements, which are pushed to it (store/unbounded.h). An embedded store has no such documents:
 * there the document is one element of an array, and each append reads, extends and rewrites it.
 *
 * Threads: any number.
 */
#ifndef SPILL_TOOLS_BENCH_BASELINE_H
#define SPILL_TOOLS_BENCH_BASELINE_H

#include <spillway/spillway.h>

#include <pthread.h>

typedef struct spill_baseline {
    spill_store_t *store;
    const char *name;      /* of the collection, or of the definition; borrowed */
    spill_array_t *array;  /* NULL on a server */
    pthread_mutex_t lock;  /* embedded: held from the read to the write */
    int64_t bytes_max;     /* of a document */
    int64_t element_bytes; /* of each element */
} spill_baseline_t;

/* Open; saves the definition if the store needs one. Close in every case. */
spill_code_t spill_baseline_open(spill_store_t *store, const char *name, int64_t element_bytes,
                                 spill_baseline_t *baseline, spill_error_t *error);
void spill_baseline_close(spill_baseline_t *baseline);

/* Report whether a document can have this many elements. */
bool spill_baseline_fits(const spill_baseline_t *baseline, int64_t elements);

/* Replace an owner's document by one with the first `count` elements. */
spill_code_t spill_baseline_put(spill_baseline_t *baseline, const char *owner, int64_t count,
                                spill_error_t *error);
spill_code_t spill_baseline_append(spill_baseline_t *baseline, const char *owner,
                                   const spill_value_t *element, spill_error_t *error);
spill_code_t spill_baseline_newest(spill_baseline_t *baseline, const char *owner, int64_t limit,
                                   size_t *count, spill_error_t *error);
spill_code_t spill_baseline_measure(spill_baseline_t *baseline, const char *owner,
                                    int64_t *elements, int64_t *size_bytes, spill_error_t *error);

#endif
