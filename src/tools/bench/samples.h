/* Statistics of measured values: medians with their interval, and percentiles. */
#ifndef SPILL_TOOLS_BENCH_SAMPLES_H
#define SPILL_TOOLS_BENCH_SAMPLES_H

#include <stddef.h>

typedef struct spill_samples {
    double *values;
    size_t count;
    size_t capacity;
} spill_samples_t;

void spill_samples_add(spill_samples_t *samples, double value);
void spill_samples_release(spill_samples_t *samples);

/*
 * The median, and an interval that contains the true median with `confidence` (0.95 or more, if
 * there are 6 values or more). Its ends are two of the values: order statistics, which assume only
 * that the values are independent.
 */
typedef struct spill_median {
    double median;
    double low, high;
    double confidence;
} spill_median_t;

/* All 0 without values. Reorders them. */
spill_median_t spill_samples_median(spill_samples_t *samples);

/* Nearest rank: at least `per_mille` of the values are at most this; 0 without values. Reorders. */
double spill_samples_percentile(spill_samples_t *samples, int per_mille);

/* The median of an array that is not empty. Reorders it. */
double spill_median_of(double *values, size_t count);

#endif
