/*
 * The sum of the values of an array's elements, to which values are added and from which they are
 * taken again. Integers are summed exactly, as an int64; doubles, and integers that do not fit, as
 * an unevaluated pair of doubles, in which adding and taking the same values comes back exactly
 * for values of ordinary range (some 30 decimal digits from the largest to the smallest).
 */
#ifndef SPILL_STORE_SUM_H
#define SPILL_STORE_SUM_H

#include <spillway/definition.h>
#include <spillway/value.h>

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: of no values. */
typedef struct spill_sum {
    int64_t values; /* how many */
    int64_t whole;  /* of integers */
    double high;    /* the rest is high + low */
    double low;
} spill_sum_t;

/*
 * The value of one element as a sum: that at the definition's value_field where it is an int32, an
 * int64 or a double of at most 1e300; else none.
 */
spill_sum_t spill_sum_of(const spill_definition_t *definition, const spill_value_t *element);

void spill_sum_add(spill_sum_t *sum, const spill_sum_t *other);
void spill_sum_subtract(spill_sum_t *sum, const spill_sum_t *other);

/* In all four. None is NaN. */
bool spill_sum_equal(const spill_sum_t *left, const spill_sum_t *right);

/*
 * Are both of the same values, summed in another order? Integers exactly; where there are doubles,
 * the totals may differ by 1e-12 of `size`, the sum of all values without their signs.
 */
bool spill_sum_close(const spill_sum_t *left, const spill_sum_t *right, double size);
/* The sum of one element without its sign. */
double spill_sum_size(const spill_sum_t *value);

double spill_sum_total(const spill_sum_t *sum);
double spill_sum_average(const spill_sum_t *sum); /* 0 where there are no values */

/* {values, whole, and high and low where one is not 0} under a name; and back. */
void spill_sum_append(const spill_sum_t *sum, const char *name, bson_t *document);
bool spill_sum_read(const spill_value_t *value, spill_sum_t *sum);

/* Most bytes of what is appended, without the name. */
enum { SPILL_SUM_BYTES = 5 + (2 + 6 + 8) + (2 + 5 + 8) + (2 + 4 + 8) + (2 + 3 + 8) };

#endif
