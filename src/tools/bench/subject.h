/* What is measured of an array, in whatever layout: appends, newest pages, sizes of documents. */
#ifndef SPILL_TOOLS_BENCH_SUBJECT_H
#define SPILL_TOOLS_BENCH_SUBJECT_H

#include <spillway/spillway.h>

/* A layout, as its definition is made. */
typedef struct spill_subject_kind {
    const char *name;
    const char *preset;
    spill_layout_t layout;
    spill_keep_t keep;
    spill_window_t window;
} spill_subject_kind_t;

/* How long its documents may grow. */
typedef struct spill_subject_bounds {
    int64_t threshold; /* reference and subset take 1: what a head notes before it writes it out */
    int64_t page;
    int64_t element_bytes; /* of each; documents have room in bytes for as many */
} spill_subject_bounds_t;

/*
 * A definition of that name for elements of spill_bench_element, in collections NAME and NAMEPages.
 * SPILL_INVALID: bounds that no definition may have.
 */
spill_code_t spill_subject_definition(const spill_subject_kind_t *kind, const char *name,
                                      const spill_subject_bounds_t *bounds,
                                      spill_definition_t *definition, spill_error_t *error);

/* Append, to the windows that the elements lie in where there are such. */
spill_code_t spill_subject_append(spill_array_t *array, const spill_value_t *owner,
                                  const spill_value_t *elements, size_t count,
                                  spill_error_t *error);

/* Append the elements of numbers `from` to `to`, many at once. */
spill_code_t spill_subject_fill(spill_array_t *array, const spill_value_t *owner,
                                int64_t element_bytes, int64_t from, int64_t to,
                                spill_error_t *error);

/* Read the newest `limit` elements; *count is how many came. */
spill_code_t spill_subject_newest(spill_array_t *array, const spill_value_t *owner, int64_t limit,
                                  size_t *count, spill_error_t *error);

/* How many elements the owner was given: of a capped array those that were dropped, too. */
spill_code_t spill_subject_given(spill_array_t *array, const spill_value_t *owner, int64_t *given,
                                 spill_error_t *error);

/* Bytes of documents as a document database holds them. */
typedef struct spill_subject_sizes {
    int64_t head;    /* layout bucket: of a window's first document */
    int64_t largest; /* of the head and the first pages, some hundred */
} spill_subject_sizes_t;

/* `last` is the number of the owner's last element, whose window counts where there are such. */
spill_code_t spill_subject_sizes(spill_array_t *array, const spill_value_t *owner,
                                 int64_t element_bytes, int64_t last, spill_subject_sizes_t *sizes,
                                 spill_error_t *error);

#endif
