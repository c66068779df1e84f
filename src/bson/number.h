/*
 * Numbers by value. BSON has four number types (int32, int64, double, decimal128). 1, 1L, 1.0 and
 * 1.00 are the same number: in sort order, in $min and $max, and as the _id of an owner.
 */
#ifndef SPILL_BSON_NUMBER_H
#define SPILL_BSON_NUMBER_H

#include <spillway/value.h>

#include <bson/bson.h>
#include <stdbool.h>

__extension__ typedef unsigned __int128 spill_uint128_t;

typedef enum spill_number_kind {
    SPILL_NUMBER_NAN,
    SPILL_NUMBER_MINUS_INFINITY,
    SPILL_NUMBER_FINITE,
    SPILL_NUMBER_PLUS_INFINITY
} spill_number_kind_t;

/*
 * A number, exactly: (-1)^negative * digits * 2^twos * 10^tens. `digits` has at most 113 bits.
 * Zero has digits 0 and nothing else set. Integers and decimals have twos == 0, doubles tens == 0.
 */
typedef struct spill_number {
    spill_number_kind_t kind;
    bool negative;
    spill_uint128_t digits;
    int32_t twos;
    int32_t tens;
} spill_number_t;

bool spill_is_number(uint8_t type);

/* The number of a well-formed value of one of the four types. */
spill_number_t spill_number_of(const spill_value_t *value);

/*
 * The iterator's int32, int64 or double, rounded towards zero and limited to +-2^60, so that sums
 * do not overflow. NaN and values of other types are 0.
 */
int64_t spill_iter_int64(const bson_iter_t *iter);

/* If it is an integer of 64 bits, set *integer. */
bool spill_number_to_int64(const spill_number_t *number, int64_t *integer);

/* Compare exactly: negative, 0 or positive. NaN is below all numbers and equal to itself. */
int spill_number_compare(const spill_number_t *left, const spill_number_t *right);

/* Append a count as drivers do: an int32 while it fits. Append nothing if the name is empty. */
void spill_append_count(bson_t *document, const char *name, int64_t count);

#endif
