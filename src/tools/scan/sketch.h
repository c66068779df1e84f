/* What a scan keeps of many values in bounded memory: distributions, and the largest owners. */
#ifndef SPILL_TOOLS_SCAN_SKETCH_H
#define SPILL_TOOLS_SCAN_SKETCH_H

#include "tools/scan/forecast.h"

#include <spillway/value.h>

#include <stddef.h>
#include <stdint.h>

/* ---- distribution ---------------------------------------------------------------------------- */

/*
 * The distribution of values in constant memory: quantiles within a stated relative error, and the
 * exact number, sum, minimum and maximum. Sketches of parts can be merged.
 *
 *   bucket  0 ... 127      one value each: exact
 *   bucket  128 + 64 e + s values from (64 + s) 2^(e+1) on, 2^(e+1) of them
 *
 * So a bucket's width is at most a 64th of its least value, and its middle is off by at most a
 * 128th. This is DDSketch (Masson, Rim, Lee: VLDB 2019) with its logarithm interpolated linearly
 * between powers of two, as in HdrHistogram: it needs the exponent and leading bits, no logarithm.
 */

/* A quantile is off by at most this part of itself. */
#define SPILL_SKETCH_ERROR (1.0 / 128)

typedef struct spill_sketch {
    uint64_t *buckets; /* `capacity` buckets, up to the highest value; at most 30 KB */
    uint32_t capacity;
    uint64_t count;
    uint64_t sum;
    uint64_t min; /* UINT64_MAX without values */
    uint64_t max;
} spill_sketch_t;

void spill_sketch_init(spill_sketch_t *sketch);
void spill_sketch_release(spill_sketch_t *sketch); /* may be called twice */

/* Add a value `times` times. O(1), except when memory grows. */
void spill_sketch_add(spill_sketch_t *sketch, uint64_t value, uint64_t times);

void spill_sketch_merge(spill_sketch_t *into, const spill_sketch_t *from);

/*
 * The nearest-rank quantile: the least value that at least `per_mille` in 1000 of the values do not
 * exceed, within SPILL_SKETCH_ERROR. It is exact for 1000 (the maximum) and for values below 128. 0
 * without values.
 */
uint64_t spill_sketch_quantile(const spill_sketch_t *sketch, uint64_t per_mille);

/*
 * The same distribution in a few coarse bins, for a plot: one bin for each value below 8, then four
 * between one power of two and the next. Counts are exact.
 */
typedef struct spill_sketch_bin {
    uint64_t least; /* the least value in the bin */
    uint64_t count; /* not 0 */
} spill_sketch_bin_t;

/* The bins that are not empty, ascending; free *bins with bson_free. Returns their number. */
size_t spill_sketch_histogram(const spill_sketch_t *sketch, spill_sketch_bin_t **bins);

/* The least value above the bin that begins with `least`. */
uint64_t spill_sketch_bin_end(uint64_t least);

/* ---- the largest owners ---------------------------------------------------------------------- */

/* The owners of the largest arrays, by name: a list that keeps the largest few of all owners added
 * to it. */

#define SPILL_OWNERS_MAX 10
#define SPILL_OWNER_NAME_MAX 1024 /* for longer _id values, only the place is kept */

/* The list owns its items. */
typedef struct spill_large_owner {
    int64_t length;      /* elements; 0 in a list of documents */
    int64_t bytes;       /* of all arrays of the path in the document */
    int64_t array_bytes; /* of the longest array, which has `length` elements */
    int64_t document_bytes;
    int64_t place;                  /* of the document: a byte or a line; see spill_record */
    spill_value_t value;            /* the _id; data NULL: missing or too long */
    const spill_history_t *history; /* sorted; NULL: unknown */
    spill_growth_forecast_t growth_forecast; /* see spill_paths_foresee */
} spill_large_owner_t;

/*
 * Zero it to begin. Sorted by length, then bytes, then _id, so the order of adding does not matter.
 * With `by_bytes`, set before the first owner is added, sorted by bytes, then length.
 */
typedef struct spill_owners {
    bool by_bytes;
    spill_large_owner_t items[SPILL_OWNERS_MAX];
    size_t count;
} spill_owners_t;

/* Add an owner. If the list keeps it, it copies its value, history and course.
 * O(SPILL_OWNERS_MAX). */
void spill_owners_add(spill_owners_t *owners, const spill_large_owner_t *owner);
void spill_owners_merge(spill_owners_t *into, const spill_owners_t *from);
void spill_owners_release(spill_owners_t *owners);
void spill_owner_forget_history(spill_large_owner_t *owner);

/* Of at least one owner, the one that reaches the document limit first; else the first one. */
const spill_large_owner_t *spill_owners_first_at_limit(const spill_owners_t *owners);

/* Report whether an owner of this length and size might be kept; true too often, never false. */
bool spill_owners_wanted(const spill_owners_t *owners, int64_t length, int64_t bytes);

#endif
