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
#ifndef SPILL_TOOLS_SCAN_SKETCH_H
#define SPILL_TOOLS_SCAN_SKETCH_H

#include <stddef.h>
#include <stdint.h>

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

#endif
