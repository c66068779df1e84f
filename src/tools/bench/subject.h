/* The arrays that are measured: in any layout, and unbounded for comparison. */
#ifndef SPILL_TOOLS_BENCH_SUBJECT_H
#define SPILL_TOOLS_BENCH_SUBJECT_H

#include <spillway/spillway.h>

#include <pthread.h>

/* ---- an array in any layout ------------------------------------------------------------------ */

/* A layout with the options of its definition. */
typedef struct spill_subject_kind {
    const char *name;
    const char *preset;
    spill_layout_t layout;
    spill_keep_t keep;
    spill_window_t window;
} spill_subject_kind_t;

/* The bounds of its documents. */
typedef struct spill_subject_bounds {
    int64_t threshold; /* reference and subset use 1: what a head buffers before it writes */
    int64_t page;
    int64_t element_bytes; /* of each element; documents have room in bytes for all */
} spill_subject_bounds_t;

/*
 * Make a definition of that name for elements of spill_bench_element, in collections NAME and
 * NAMEPages. SPILL_INVALID: the bounds are not allowed.
 */
spill_code_t spill_subject_definition(const spill_subject_kind_t *kind, const char *name,
                                      const spill_subject_bounds_t *bounds,
                                      spill_definition_t *definition, spill_error_t *error);

/* Append, with windows to the windows of the elements. */
spill_code_t spill_subject_append(spill_array_t *array, const spill_value_t *owner,
                                  const spill_value_t *elements, size_t count,
                                  spill_error_t *error);

/* Append the elements with numbers from `from` to `to`, many at a time. */
spill_code_t spill_subject_fill(spill_array_t *array, const spill_value_t *owner,
                                int64_t element_bytes, int64_t from, int64_t to,
                                spill_error_t *error);

/* Read the newest `limit` elements; *count is how many were read. */
spill_code_t spill_subject_newest(spill_array_t *array, const spill_value_t *owner, int64_t limit,
                                  size_t *count, spill_error_t *error);

/* How many elements were appended to the owner, including those that a cap has dropped. */
spill_code_t spill_subject_given(spill_array_t *array, const spill_value_t *owner, int64_t *given,
                                 spill_error_t *error);

/* Sizes of documents, as a document database stores them. */
typedef struct spill_subject_sizes {
    int64_t head;    /* layout bucket: of a window's first document */
    int64_t largest; /* of the head and the first pages, about a hundred */
} spill_subject_sizes_t;

/* `last`: the number of the owner's last element; with windows, the sizes are of its window. */
spill_code_t spill_subject_sizes(spill_array_t *array, const spill_value_t *owner,
                                 int64_t element_bytes, int64_t last, spill_subject_sizes_t *sizes,
                                 spill_error_t *error);

/* ---- an unbounded array ---------------------------------------------------------------------- */

/*
 * The cost of unbounded arrays, for comparison, on any store. On a server: one document with all
 * elements, which are pushed to it (store/raw_reader.h). An embedded store has no such documents:
 * there the document is one element of an array, and each append reads, extends and rewrites it.
 *
 * Threads: any number.
 */

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
