/*
 * Is it full? One function answers, for appends, spills, edits and the verifier, in every layout:
 * a document is bounded in slots (elements, and the places of removed ones) and in bytes.
 */
#ifndef SPILL_STORE_LIMITS_H
#define SPILL_STORE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* What any document database of the family takes in one document, bookkeeping included. */
#define SPILL_DOCUMENT_BYTES_MAX (16 * 1024 * 1024)

typedef struct spill_limits {
    int64_t slots_max; /* live elements and gone ones */
    int64_t bytes_max; /* of the document as it is rendered */
} spill_limits_t;

/*
 * May a document that would then have `slots` slots, `live` elements and `bytes` bytes exist?
 * An element larger than the byte bound may have a document alone: live == 1 passes up to
 * SPILL_DOCUMENT_BYTES_MAX.
 */
bool spill_limits_allow(const spill_limits_t *limits, int64_t slots, int64_t live, int64_t bytes);

#endif
