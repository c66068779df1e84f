/* The checks on one owner's documents. */
#ifndef SPILL_CORE_VERIFY_OWNER_H
#define SPILL_CORE_VERIFY_OWNER_H

#include "layout/outlier.h"

#include <spillway/verify.h>

/* What one look at an owner found. Zero it first, release it last. */
typedef struct spill_inspection {
    const spill_owner_t *owner;
    bool rest; /* not a closed tail, nor sum and top of a summary: repair looks at them itself */
    int64_t pages;
    int64_t elements;
    spill_finding_t *findings; /* at most SPILL_INSPECTION_FINDINGS are kept */
    size_t kept;
    spill_seqs_t unreadable; /* pages (or SPILL_HEAD) that are a finding as a whole */
    int64_t found;
    int64_t rev; /* of the head, the end of what it holds, and the pages it speaks of: */
    int64_t end; /* they tell whether the owner changed meanwhile */
    int64_t head_pages;
} spill_inspection_t;

#define SPILL_INSPECTION_FINDINGS 100

/* Look at every document of the owner. SPILL_CORRUPT records become findings, not errors. */
spill_code_t spill_inspect_owner(spill_inspection_t *inspection, spill_error_t *error);

/*
 * Elements apart, the head having been read whole: every element in documents, and the head's sum.
 * *live: how many there are in documents. (verify_apart.c)
 */
spill_code_t spill_inspect_apart(spill_inspection_t *inspection, const spill_response_t *head,
                                 int64_t *live, spill_error_t *error);

void spill_inspection_release(spill_inspection_t *inspection);

/* Add a finding. */
void spill_inspection_add(spill_inspection_t *inspection, int64_t page, int invariant,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

/*
 * For repair: what the verifier finds of one owner, but for what repair itself finds and mends.
 * (verify.c)
 */
spill_code_t spill_verify_rest(spill_array_t *array, const spill_value_t *owner,
                               spill_finding_fn report, void *context, spill_error_t *error);

#endif
