#include "tools/bench/samples.h"

#include <bson/bson.h>
#include <math.h>
#include <stdlib.h>

static const double confidence_min = 0.95;

void spill_samples_add(spill_samples_t *samples, double value)
{
    if (samples->count == samples->capacity) {
        samples->capacity = samples->capacity ? samples->capacity * 2 : 64;
        samples->values = bson_realloc(samples->values, samples->capacity * sizeof(double));
    }
    samples->values[samples->count++] = value;
}

void spill_samples_release(spill_samples_t *samples)
{
    bson_free(samples->values);
    *samples = (spill_samples_t){0};
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static void sort(double *values, size_t count)
{
    if (count > 1)
        qsort(values, count, sizeof *values, compare);
}

double spill_median_of(double *values, size_t count)
{
    sort(values, count);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/*
 * The probability that the median is between the k-th least and the k-th greatest value: that at
 * least k and at most count - k values are below it, each with probability 1/2.
 */
static double confidence_of(size_t count, size_t k)
{
    double term = pow(0.5, (double)count), outside = 0;
    for (size_t i = 0; i < k; i++) {
        outside += term;
        term *= (double)(count - i) / (double)(i + 1);
    }
    return 1 - 2 * outside;
}

spill_median_t spill_samples_median(spill_samples_t *samples)
{
    size_t count = samples->count, k = 1;
    if (count == 0)
        return (spill_median_t){0};
    double median = spill_median_of(samples->values, count);
    while (2 * (k + 1) <= count && confidence_of(count, k + 1) >= confidence_min)
        k++;
    return (spill_median_t){median, samples->values[k - 1], samples->values[count - k],
                            confidence_of(count, k)};
}

double spill_samples_percentile(spill_samples_t *samples, int per_mille)
{
    if (samples->count == 0)
        return 0;
    sort(samples->values, samples->count);
    size_t rank = (samples->count * (size_t)per_mille + 999) / 1000;
    return samples->values[rank > 0 ? rank - 1 : 0];
}
