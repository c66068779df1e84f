/*
 * Conversions from layout to layout: arrays of a few owners (whole, with elements removed, emptied,
 * short), and a comparison of what arrived with lists that are made here.
 */
#ifndef TESTS_MODEL_CONVERT_H
#define TESTS_MODEL_CONVERT_H

#include "tools/convert.h"

#define CONVERT_NAME "events" /* what is converted */
#define CONVERT_OTHER "other" /* and into what */

/* Layouts; a cap keeps the newest, or the best. */
typedef enum convert_kind {
    CONVERT_OUTLIER,
    CONVERT_CAPPED,
    CONVERT_TOP_N,
    CONVERT_REFERENCE,
    CONVERT_SUBSET,
    CONVERT_BUCKET
} convert_kind_t;

/* `cap`: of a capped one. Windows of a source are months, of a target weeks. */
void convert_define_source(spill_store_t *store, convert_kind_t layout, int64_t cap);
void convert_define_target(spill_store_t *source, spill_store_t *target, convert_kind_t layout);
void convert_fill(spill_store_t *store);
/* Three more for each owner, in windows after all others. */
void convert_append_more(spill_store_t *store);
/* The first element of the first owner, whose windows follow each other. */
void convert_remove_first(spill_store_t *store);

/* Has the target what is to arrive there of what the source has? */
void convert_check_same(spill_store_t *source, spill_store_t *target);

/* Prints a difference: for spill_copy_options_t. */
void convert_see(void *context, const spill_copy_difference_t *difference);

/* Both definitions made, converted, the source appended to, converted again, finished, dropped. */
void convert_and_grow(spill_store_t *store, convert_kind_t from, convert_kind_t to);

#endif
