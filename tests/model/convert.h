/*
 * Conversions between all layouts: arrays of a few owners (whole, with elements removed, emptied,
 * short), and a comparison of the target with lists that are computed here.
 */
#ifndef TESTS_MODEL_CONVERT_H
#define TESTS_MODEL_CONVERT_H

#include "tools/definition_jobs.h"

#define CONVERT_NAME "events" /* the source */
#define CONVERT_OTHER "other" /* the target */

/* Layouts; a capped array keeps the newest elements or the top-N. */
typedef enum convert_kind {
    CONVERT_OUTLIER,
    CONVERT_CAPPED,
    CONVERT_TOP_N,
    CONVERT_REFERENCE,
    CONVERT_SUBSET,
    CONVERT_BUCKET
} convert_kind_t;

/* `cap` applies to a capped array. Windows of a source are months, of a target weeks. */
void convert_define_source(spill_store_t *store, convert_kind_t layout, int64_t cap);
void convert_define_target(spill_store_t *source, spill_store_t *target, convert_kind_t layout);
void convert_fill(spill_store_t *store);
/* Append three elements to each owner, in windows after all others. */
void convert_append_more(spill_store_t *store);
/* Remove the first element of the first owner, so that its windows follow each other. */
void convert_remove_first(spill_store_t *store);

/* Compare the target with what it must have after a conversion of the source. */
void convert_check_same(spill_store_t *source, spill_store_t *target);

/* Print a difference; a callback for spill_copy_options_t. */
void convert_see(void *context, const spill_copy_difference_t *difference);

/* Define both, convert, append to the source, convert again, finish, and drop. */
void convert_and_grow(spill_store_t *store, convert_kind_t from, convert_kind_t to);

#endif
