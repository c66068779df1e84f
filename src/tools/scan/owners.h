/* The owners of the largest arrays, by name: a list that keeps the largest few of all owners added
 * to it. */
#ifndef SPILL_TOOLS_SCAN_OWNERS_H
#define SPILL_TOOLS_SCAN_OWNERS_H

#include "tools/scan/growth_forecast.h"
#include "tools/scan/history.h"

#include <spillway/value.h>

#include <stdbool.h>

#define SPILL_OWNERS_MAX 10
#define SPILL_OWNER_NAME_MAX 1024 /* for longer _id values, only the place is kept */

/* The list owns its items. */
typedef struct spill_owner {
    int64_t length;      /* elements; 0 in a list of documents */
    int64_t bytes;       /* of all arrays of the path in the document */
    int64_t array_bytes; /* of the longest array, which has `length` elements */
    int64_t document_bytes;
    int64_t place;                  /* of the document: a byte or a line; see spill_record */
    spill_value_t value;            /* the _id; data NULL: missing or too long */
    const spill_history_t *history; /* sorted; NULL: unknown */
    spill_growth_forecast_t growth_forecast; /* see spill_paths_foresee */
} spill_owner_t;

/*
 * Zero it to begin. Sorted by length, then bytes, then _id, so the order of adding does not matter.
 * With `by_bytes`, set before the first owner is added, sorted by bytes, then length.
 */
typedef struct spill_owners {
    bool by_bytes;
    spill_owner_t items[SPILL_OWNERS_MAX];
    size_t count;
} spill_owners_t;

/* Add an owner. If the list keeps it, it copies its value, history and course.
 * O(SPILL_OWNERS_MAX). */
void spill_owners_add(spill_owners_t *owners, const spill_owner_t *owner);
void spill_owners_merge(spill_owners_t *into, const spill_owners_t *from);
void spill_owners_release(spill_owners_t *owners);
void spill_owner_forget_history(spill_owner_t *owner);

/* Of at least one owner, the one that reaches the document limit first; else the first one. */
const spill_owner_t *spill_owners_first_at_limit(const spill_owners_t *owners);

/* Report whether an owner of this length and size might be kept; true too often, never false. */
bool spill_owners_wanted(const spill_owners_t *owners, int64_t length, int64_t bytes);

#endif
