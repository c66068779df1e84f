#include "bson/number.h"

#include "bson/value.h"

#include <string.h>

/* decimal128: sign, 14 bits of exponent, 113 bits of coefficient, which is below 10^34. */
enum { DECIMAL_BIAS = 6176, DECIMAL_DIGITS = 34 };

static spill_uint128_t power_of_ten(int exponent)
{
    spill_uint128_t power = 1;
    while (exponent-- > 0)
        power *= 10;
    return power;
}

/* ---- reading --------------------------------------------------------------------------------- */

static spill_number_t from_int64(int64_t integer)
{
    return (spill_number_t){
        .kind = SPILL_NUMBER_FINITE,
        .negative = integer < 0,
        .digits = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer,
    };
}

static spill_number_t infinity_of(bool negative)
{
    return (spill_number_t){
        .kind = negative ? SPILL_NUMBER_MINUS_INFINITY : SPILL_NUMBER_PLUS_INFINITY,
        .negative = negative,
    };
}

/* binary64: sign, 11 bits of exponent, 52 bits of fraction; below exponent 1 numbers get shorter.
 */
static spill_number_t from_double(const spill_value_t *value)
{
    uint64_t bits = (uint64_t)spill_value_int64(value);
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7ff);
    bool negative = bits >> 63;
    if (exponent == 0x7ff)
        return fraction == 0 ? infinity_of(negative) : (spill_number_t){.kind = SPILL_NUMBER_NAN};
    if (exponent == 0 && fraction == 0)
        return (spill_number_t){.kind = SPILL_NUMBER_FINITE};
    return (spill_number_t){
        .kind = SPILL_NUMBER_FINITE,
        .negative = negative,
        .digits = exponent == 0 ? fraction : fraction | UINT64_C(1) << 52,
        .twos = (exponent == 0 ? 1 : exponent) - 1075,
    };
}

static spill_number_t from_decimal(const uint8_t *data)
{
    uint64_t low, high;
    memcpy(&low, data, sizeof low);
    memcpy(&high, data + sizeof low, sizeof high);
    low = BSON_UINT64_FROM_LE(low);
    high = BSON_UINT64_FROM_LE(high);

    bool negative = high >> 63;
    unsigned top = (unsigned)(high >> 58) & 0x1f;
    if (top == 0x1f)
        return (spill_number_t){.kind = SPILL_NUMBER_NAN};
    if (top == 0x1e)
        return infinity_of(negative);
    spill_uint128_t digits = (spill_uint128_t)(high & UINT64_C(0x1ffffffffffff)) << 64 | low;
    if (top >= 0x18 || digits >= power_of_ten(DECIMAL_DIGITS) || digits == 0) {
        /* By IEEE 754 a coefficient that is too large is 0; in the second form it always is. */
        return (spill_number_t){.kind = SPILL_NUMBER_FINITE};
    }
    return (spill_number_t){
        .kind = SPILL_NUMBER_FINITE,
        .negative = negative,
        .digits = digits,
        .tens = (int32_t)(high >> 49 & 0x3fff) - DECIMAL_BIAS,
    };
}

bool spill_is_number(uint8_t type)
{
    return type == BSON_TYPE_INT32 || type == BSON_TYPE_INT64 || type == BSON_TYPE_DOUBLE ||
           type == BSON_TYPE_DECIMAL128;
}

spill_number_t spill_number_of(const spill_value_t *value)
{
    switch (value->type) {
    case BSON_TYPE_INT32:
        return from_int64(spill_value_int32(value));
    case BSON_TYPE_INT64:
        return from_int64(spill_value_int64(value));
    case BSON_TYPE_DOUBLE:
        return from_double(value);
    default:
        return from_decimal(value->data);
    }
}

bool spill_number_to_int64(const spill_number_t *number, int64_t *integer)
{
    if (number->kind != SPILL_NUMBER_FINITE)
        return false;
    spill_uint128_t digits = number->digits;
    int twos = number->twos;
    int tens = number->tens;
    for (; twos < 0 && digits % 2 == 0 && digits != 0; twos++)
        digits /= 2;
    for (; tens < 0 && digits % 10 == 0 && digits != 0; tens++)
        digits /= 10;
    const spill_uint128_t limit = (spill_uint128_t)1 << 63; /* of the negative numbers */
    for (; twos > 0 && digits <= limit; twos--)
        digits *= 2;
    for (; tens > 0 && digits <= limit; tens--)
        digits *= 10;
    if (twos != 0 || tens != 0 || digits > limit || (digits == limit && !number->negative))
        return false;
    *integer = (int64_t)(number->negative ? 0 - (uint64_t)digits : (uint64_t)digits);
    return true;
}

int64_t spill_iter_int64(const bson_iter_t *iter)
{
    const int64_t most = (int64_t)1 << 60;
    int64_t number;
    if (BSON_ITER_HOLDS_DOUBLE(iter)) {
        double real = bson_iter_double(iter);
        if (!(real > -(double)most && real < (double)most))
            return real >= (double)most ? most : real <= -(double)most ? -most : 0;
        return (int64_t)real;
    }
    number = bson_iter_as_int64(iter);
    return number > most ? most : number < -most ? -most : number;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/*
 * A natural number, the least word first. To compare two numbers, multiply both by a power of two
 * and a power of ten that make them natural. The numbers have a similar size, so 4096 bits are more
 * than enough: a double has 53 bits and twos >= -1074; a decimal of that size has 113 bits and tens
 * >= -358, which is 1190 bits.
 */
enum { WORDS = 128 };

typedef struct natural {
    uint32_t words[WORDS];
} natural_t;

static natural_t natural_of(spill_uint128_t digits)
{
    natural_t natural = {{0}};
    for (int i = 0; i < 4; i++)
        natural.words[i] = (uint32_t)(digits >> (32 * i));
    return natural;
}

static void multiply(natural_t *natural, uint32_t factor)
{
    uint64_t carry = 0;
    for (int i = 0; i < WORDS; i++) {
        carry += (uint64_t)natural->words[i] * factor;
        natural->words[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

/* Multiply by base^exponent; do nothing if the exponent is below 1. */
static void multiply_power(natural_t *natural, uint32_t base, int exponent)
{
    while (exponent > 0) {
        uint32_t factor = 1;
        for (; exponent > 0 && factor <= UINT32_MAX / base; exponent--)
            factor *= base;
        multiply(natural, factor);
    }
}

static int compare_naturals(const natural_t *left, const natural_t *right)
{
    for (int i = WORDS - 1; i >= 0; i--)
        if (left->words[i] != right->words[i])
            return left->words[i] < right->words[i] ? -1 : 1;
    return 0;
}

static int compare_exactly(const spill_number_t *left, const spill_number_t *right)
{
    natural_t a = natural_of(left->digits);
    natural_t b = natural_of(right->digits);
    multiply_power(&a, 2, left->twos - right->twos);
    multiply_power(&b, 2, right->twos - left->twos);
    multiply_power(&a, 10, left->tens - right->tens);
    multiply_power(&b, 10, right->tens - left->tens);
    return compare_naturals(&a, &b);
}

/* The number of bits of the integer part: at most 1 above the logarithm to base 2. */
static double bits_of(const spill_number_t *number)
{
    int bits = 0;
    for (spill_uint128_t rest = number->digits; rest != 0; rest >>= 1)
        bits++;
    return bits + number->twos + number->tens * 3.3219280948873623;
}

static int compare_magnitudes(const spill_number_t *left, const spill_number_t *right)
{
    if (left->digits == 0 || right->digits == 0)
        return (left->digits != 0) - (right->digits != 0);
    if (left->twos == right->twos && left->tens == right->tens)
        return left->digits < right->digits ? -1 : left->digits > right->digits;
    double difference = bits_of(left) - bits_of(right);
    if (difference > 1.01 || difference < -1.01)
        return difference < 0 ? -1 : 1;
    return compare_exactly(left, right);
}

int spill_number_compare(const spill_number_t *left, const spill_number_t *right)
{
    if (left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    if (left->kind != SPILL_NUMBER_FINITE)
        return 0;
    if (left->negative != right->negative)
        return left->negative ? -1 : 1;
    int order = compare_magnitudes(left, right);
    return left->negative ? -order : order;
}

void spill_append_count(bson_t *document, const char *name, int64_t count)
{
    if (name[0] == '\0')
        return;
    if (count >= INT32_MIN && count <= INT32_MAX)
        bson_append_int32(document, name, -1, (int32_t)count);
    else
        bson_append_int64(document, name, -1, count);
}
