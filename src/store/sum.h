/*
 * Two ways to add up the values of elements: the sum of an array, to which values are added and
 * from which they are subtracted, and the statistics of a bucket.
 */
#ifndef SPILL_STORE_SUM_H
#define SPILL_STORE_SUM_H

#include <spillway/bucket.h>
#include <spillway/definition.h>
#include <spillway/value.h>

#include <stdbool.h>
#include <stdint.h>

/*
 * The statistics of a bucket: a left fold over the values of a document's elements, in their order.
 * An append continues the fold. An edit or a removal computes it again from the elements of the one
 * document. So the elements determine the statistics to the bit, and the verifier compares them.
 * Zeroed: statistics of no values.
 */
typedef struct spill_window_stats {
    int64_t values;
    bool real;     /* a value is a double, or the sum of integers did not fit */
    int64_t whole; /* the sum of integers, while not `real` */
    double run;    /* the sum of doubles, from the first value to the last */
    spill_amount_t min, max;
} spill_window_stats_t;

/* Add the element's value, if it has one. */
void spill_window_stats_add(spill_window_stats_t *window_stats,
                            const spill_definition_t *definition, const spill_value_t *element);

/* Equal to the bit? */
bool spill_window_stats_equal(const spill_window_stats_t *left, const spill_window_stats_t *right);

/* Statistics of a document of `count` elements; and append those of the next document to them. */
void spill_window_stats_derive(const spill_window_stats_t *window_stats, int64_t count,
                               spill_statistics_t *statistics);
void spill_statistics_join(spill_statistics_t *statistics, const spill_statistics_t *next);

/* Append {values, whole (not if `real`), run, min, max} under a name; nothing if no values. */
void spill_window_stats_append(const spill_window_stats_t *window_stats, const char *name,
                               bson_t *document);
bool spill_window_stats_read(const spill_value_t *value, spill_window_stats_t *window_stats);

/* Append the definition's statistics fields to a document. */
void spill_window_stats_render(const spill_window_stats_t *window_stats, int64_t count,
                               const spill_definition_t *definition, bson_t *document);

/* ---- sums ------------------------------------------------------------------------------------ */

/*
 * The sum of the values of an array's elements, to which values are added and from which they are
 * subtracted. Integers are summed exactly, as an int64. Doubles, and integers that do not fit, are
 * summed as an unevaluated pair of doubles. Adding and subtracting the same values then restores
 * the sum exactly, if about 30 decimal digits cover the largest and the smallest value. Zeroed: of
 * no values.
 */
typedef struct spill_sum {
    int64_t values; /* how many */
    int64_t whole;  /* of integers */
    double high;    /* the rest is high + low */
    double low;
} spill_sum_t;

/*
 * The value of one element as a sum: the definition's value_field, if it is an int32, an int64 or a
 * double of at most 1e300; else a sum of no values.
 */
spill_sum_t spill_sum_of(const spill_definition_t *definition, const spill_value_t *element);

void spill_sum_add(spill_sum_t *sum, const spill_sum_t *other);
void spill_sum_subtract(spill_sum_t *sum, const spill_sum_t *other);

/* Compare all four fields. None of them is NaN. */
bool spill_sum_equal(const spill_sum_t *left, const spill_sum_t *right);

/*
 * May both be sums of the same values in another order? Integers must be equal. With doubles the
 * totals may differ by 1e-12 of `size`, the sum of the absolute values.
 */
bool spill_sum_close(const spill_sum_t *left, const spill_sum_t *right, double size);
/* The absolute value of the sum of one element. */
double spill_sum_size(const spill_sum_t *value);

double spill_sum_total(const spill_sum_t *sum);
double spill_sum_average(const spill_sum_t *sum); /* 0 if there are no values */

/* Append {values, whole; high and low if one is not 0} under a name; and read it. */
void spill_sum_append(const spill_sum_t *sum, const char *name, bson_t *document);
bool spill_sum_read(const spill_value_t *value, spill_sum_t *sum);

/* Most bytes of the appended value, without the name. */
enum { SPILL_SUM_BYTES = 5 + (2 + 6 + 8) + (2 + 5 + 8) + (2 + 4 + 8) + (2 + 3 + 8) };

#endif
