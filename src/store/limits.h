/*
 * When is a document full? Appends, spills, edits and the verifier use one function, in each
 * layout. A document is bounded in slots (live elements and deleted numbers) and in bytes.
 */
#ifndef SPILL_STORE_LIMITS_H
#define SPILL_STORE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* The size that each of the document databases accepts for a document, bookkeeping included. */
#define SPILL_DOCUMENT_BYTES_MAX (16 * 1024 * 1024)

typedef struct spill_limits {
    int64_t slots_max; /* live elements and deleted numbers */
    int64_t bytes_max; /* of the rendered document */
} spill_limits_t;

/*
 * May a document have `slots` slots, `live` elements and `bytes` bytes? A document with a single
 * element (live == 1) may have up to SPILL_DOCUMENT_BYTES_MAX bytes.
 */
bool spill_limits_allow(const spill_limits_t *limits, int64_t slots, int64_t live, int64_t bytes);

#endif
