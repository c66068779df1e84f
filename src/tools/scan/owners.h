/* The largest few owners of an array, by name: a list that keeps the best of all that it is shown.
 */
#ifndef SPILL_TOOLS_SCAN_OWNERS_H
#define SPILL_TOOLS_SCAN_OWNERS_H

#include "tools/scan/growth_forecast.h"
#include "tools/scan/history.h"

#include <spillway/value.h>

#include <stdbool.h>

#define SPILL_OWNERS_MAX 10
#define SPILL_OWNER_NAME_MAX 1024 /* of longer _id values only the place is kept */

/* Owned by the list. */
typedef struct spill_owner {
    int64_t length;      /* elements; of a list of documents 0 */
    int64_t bytes;       /* of all arrays of the path in the document */
    int64_t array_bytes; /* of the longest, which has that length */
    int64_t document_bytes;
    int64_t place;       /* where the document stands: a byte, a line; see spill_record */
    spill_value_t value; /* the _id; data NULL: there is none, or it is too long */
    const spill_history_t *history;          /* sorted; NULL: not known */
    spill_growth_forecast_t growth_forecast; /* see spill_paths_foresee */
} spill_owner_t;

/*
 * Zero it to begin. Sorted: by length, then bytes, then _id, so that it depends on no order; with
 * `by_bytes`, set before the first one comes, by bytes, then length.
 */
typedef struct spill_owners {
    bool by_bytes;
    spill_owner_t items[SPILL_OWNERS_MAX];
    size_t count;
} spill_owners_t;

/* Show it an owner, whose value, history and course are copied where it is kept.
 * O(SPILL_OWNERS_MAX). */
void spill_owners_add(spill_owners_t *owners, const spill_owner_t *owner);
void spill_owners_merge(spill_owners_t *into, const spill_owners_t *from);
void spill_owners_release(spill_owners_t *owners);
void spill_owner_forget_history(spill_owner_t *owner);

/* Of at least one, the owner that gets to the document limit first; the first where none does. */
const spill_owner_t *spill_owners_first_at_limit(const spill_owners_t *owners);

/* Would one of this length and size be kept? Says true too often, never false. */
bool spill_owners_wanted(const spill_owners_t *owners, int64_t length, int64_t bytes);

#endif
