/*
 * How the arrays of one path grow: the times of all their elements, and the histories of a fair
 * sample of the owners, from which forecast.h learns how far a rate can be trusted here.
 *
 * Memory: at most SPILL_GROWTH_OWNERS histories of SPILL_GROWTH_POINTS points and one of
 * SPILL_GROWTH_ALL_POINTS, 8 bytes a point: 0.6 MB, and none before the first long array.
 * Not thread-safe: each thread has its own, and they are merged at the end.
 */
#ifndef SPILL_TOOLS_SCAN_GROWTH_H
#define SPILL_TOOLS_SCAN_GROWTH_H

#include "tools/scan/history.h"

enum {
    SPILL_GROWTH_OWNERS = 256,
    SPILL_GROWTH_POINTS = 256,
    SPILL_GROWTH_ALL_POINTS = 4096,
    /* Arrays that are shorter have no useful history. */
    SPILL_GROWTH_LENGTH_MIN = 20
};

typedef struct spill_growth_owner {
    uint64_t hash;
    spill_history_t history; /* sorted */
} spill_growth_owner_t;

typedef struct spill_growth {
    spill_history_t all;
    /* The owners of long arrays with the lowest hashes: a random sample, which does not depend on
     * the order of the documents. The highest hash first (a heap). */
    spill_growth_owner_t *owners;
    size_t owner_count;
} spill_growth_t;

void spill_growth_init(spill_growth_t *growth);
void spill_growth_release(spill_growth_t *growth);

/*
 * Add one array's history, of SPILL_GROWTH_POINTS points, in any order; `owner` is a spill_hash of
 * the document's _id. O(points).
 */
void spill_growth_add(spill_growth_t *growth, uint64_t owner, const spill_history_t *history);

/* Add what another thread collected for the same path. O(points of both). */
void spill_growth_merge(spill_growth_t *growth, const spill_growth_t *from);

#endif
