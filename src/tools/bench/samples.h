/*
 * Measuring: the elements that are appended, threads that begin together, and statistics of what
 * they measured.
 */
#ifndef SPILL_TOOLS_BENCH_SAMPLES_H
#define SPILL_TOOLS_BENCH_SAMPLES_H

#include <spillway/error.h>

#include <stddef.h>
#include <stdint.h>

/* ---- elements -------------------------------------------------------------------------------- */

enum { SPILL_BENCH_ELEMENT_MIN = 100, SPILL_BENCH_ELEMENT_MAX = 1 << 20 };

/*
 * Write a BSON document of exactly `size_bytes` (SPILL_BENCH_ELEMENT_MIN to _MAX): an activity
 * {type, actor, at, text}, as applications store them. Each number has its own time, a second after
 * the one before. Engines that compress reduce it to about a half.
 */
void spill_bench_element(uint8_t *document, size_t size_bytes, uint64_t number);

/* ---- threads --------------------------------------------------------------------------------- */

enum { SPILL_CREW_MAX = 256 };

/* The function that a thread calls `count` times. */
typedef void (*spill_crew_fn)(void *context, int thread, int count);

/*
 * Run the function `count` times on each of `threads` threads (1 to SPILL_CREW_MAX); a single
 * thread is the caller's. *seconds is the duration. SPILL_IO: a thread could not be started; none
 * has begun.
 */
spill_code_t spill_crew_run(spill_crew_fn run, void *context, int threads, int count,
                            double *seconds, spill_error_t *error);

/* Seconds since an arbitrary point in time. */
double spill_crew_now(void);

/* ---- statistics ------------------------------------------------------------------------------ */

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

/* The median of an array that is not empty. Sorts it. */
double spill_median_of(double *values, size_t count);

#endif
