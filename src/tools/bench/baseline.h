/*
 * What arrays without bounds cost, on any store: on a server a document with all elements, to which
 * they are pushed (store/unbounded.h); on an embedded store, which has no such documents, the
 * document is one element of an array, read, made longer and written back at each append.
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
    spill_array_t *array;  /* NULL: on a server */
    pthread_mutex_t lock;  /* embedded: held from reading to writing */
    int64_t bytes_max;     /* of a document */
    int64_t element_bytes; /* of each */
} spill_baseline_t;

/* Saves the definition, where it needs one. Close in every case. */
spill_code_t spill_baseline_open(spill_store_t *store, const char *name, int64_t element_bytes,
                                 spill_baseline_t *baseline, spill_error_t *error);
void spill_baseline_close(spill_baseline_t *baseline);

/* May a document have so many elements? */
bool spill_baseline_fits(const spill_baseline_t *baseline, int64_t elements);

/* An owner's document with the first `count` elements, in the place of what is there. */
spill_code_t spill_baseline_put(spill_baseline_t *baseline, const char *owner, int64_t count,
                                spill_error_t *error);
spill_code_t spill_baseline_append(spill_baseline_t *baseline, const char *owner,
                                   const spill_value_t *element, spill_error_t *error);
spill_code_t spill_baseline_newest(spill_baseline_t *baseline, const char *owner, int64_t limit,
                                   size_t *count, spill_error_t *error);
spill_code_t spill_baseline_measure(spill_baseline_t *baseline, const char *owner,
                                    int64_t *elements, int64_t *size_bytes, spill_error_t *error);

#endif
