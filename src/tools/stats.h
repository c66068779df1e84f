/* The contents of an array: owners, elements, bytes, lengths, and the longest arrays. */
#ifndef SPILL_TOOLS_STATS_H
#define SPILL_TOOLS_STATS_H

#include <spillway/array.h>

/* How many owners have exactly this many elements. */
typedef struct spill_stats_length {
    int64_t length;
    int64_t owners;
} spill_stats_length_t;

typedef struct spill_stats_owner {
    bson_t *storage; /* owns the value */
    spill_value_t owner;
    int64_t elements;
    int64_t bytes;
} spill_stats_owner_t;

typedef struct spill_stats {
    int64_t owners;
    int64_t elements;
    int64_t bytes; /* of the elements' values */
    /*
     * Every length that occurs, ascending. Exact and small: d different lengths need at least
     * d * (d - 1) / 2 elements, so 10^9 elements have at most 44 722 lengths.
     */
    spill_stats_length_t *lengths;
    size_t length_count;
    size_t length_capacity;
    spill_stats_owner_t *largest; /* by elements, descending */
    size_t largest_count;
    size_t largest_max;
} spill_stats_t;

/*
 * Read every element once. `top`: how many of the largest owners to return. Cost: the whole array;
 * memory does not grow with it (see `lengths`). If an owner is SPILL_CORRUPT, report it to the
 * store's log and skip it; the call then returns SPILL_CORRUPT, with the other owners in *stats.
 * Release in every case.
 */
spill_code_t spill_stats_collect(spill_array_t *array, size_t top, spill_stats_t *stats,
                                 spill_error_t *error);
void spill_stats_release(spill_stats_t *stats);

/* Nearest-rank percentile of the lengths, in tenths of a percent: 500 is the median. */
int64_t spill_stats_percentile(const spill_stats_t *stats, int64_t per_mille);

#endif
