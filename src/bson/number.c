/* Numbers by value, and the order of BSON values. */
#include "bson/value.h"

#include "util/buffer.h"

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

/* ---- values of all types --------------------------------------------------------------------- */

/* The rank of each type in the order. Types with the same rank are compared by value. */
static int rank_of(uint8_t type)
{
    switch (type) {
    case BSON_TYPE_MINKEY:
        return 0;
    case BSON_TYPE_UNDEFINED:
        return 1;
    case BSON_TYPE_NULL:
        return 2;
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_DECIMAL128:
        return 3;
    case BSON_TYPE_UTF8:
    case BSON_TYPE_SYMBOL:
        return 4;
    case BSON_TYPE_DOCUMENT:
        return 5;
    case BSON_TYPE_ARRAY:
        return 6;
    case BSON_TYPE_BINARY:
        return 7;
    case BSON_TYPE_OID:
        return 8;
    case BSON_TYPE_BOOL:
        return 9;
    case BSON_TYPE_DATE_TIME:
        return 10;
    case BSON_TYPE_TIMESTAMP:
        return 11;
    case BSON_TYPE_REGEX:
        return 12;
    case BSON_TYPE_DBPOINTER:
        return 13;
    case BSON_TYPE_CODE:
        return 14;
    case BSON_TYPE_CODEWSCOPE:
        return 15;
    default:
        return 16;
    }
}

static int compare_bytes(const void *left, size_t left_size, const void *right, size_t right_size)
{
    size_t common = left_size < right_size ? left_size : right_size;
    int order = common > 0 ? memcmp(left, right, common) : 0;
    return order != 0 ? order : (left_size > right_size) - (left_size < right_size);
}

static int compare_numbers(const spill_value_t *left, const spill_value_t *right)
{
    spill_number_t a = spill_number_of(left);
    spill_number_t b = spill_number_of(right);
    return spill_number_compare(&a, &b);
}

static int compare_strings(const spill_value_t *left, const spill_value_t *right)
{
    uint32_t left_length, right_length;
    const char *a = spill_value_text(left, &left_length);
    const char *b = spill_value_text(right, &right_length);
    return compare_bytes(a, left_length, b, right_length);
}

/* Compare field by field: type, then name (not in arrays), then value. */
static int compare_documents(const uint8_t *left, const uint8_t *right, bool names)
{
    spill_fields_t left_fields = spill_fields_of(left);
    spill_fields_t right_fields = spill_fields_of(right);
    for (;;) {
        const char *left_name, *right_name;
        spill_value_t a, b;
        bool more_left = spill_fields_next(&left_fields, &left_name, &a);
        bool more_right = spill_fields_next(&right_fields, &right_name, &b);
        if (!more_left || !more_right)
            return (int)more_left - (int)more_right;
        int order = rank_of(a.type) - rank_of(b.type);
        if (order == 0 && names)
            order = strcmp(left_name, right_name);
        if (order == 0)
            order = spill_value_compare(&a, &b);
        if (order != 0)
            return order;
    }
}

/* Compare length, then subtype, then bytes. */
static int compare_binaries(const spill_value_t *left, const spill_value_t *right)
{
    if (left->size_bytes != right->size_bytes)
        return left->size_bytes < right->size_bytes ? -1 : 1;
    return memcmp(left->data + 4, right->data + 4, left->size_bytes - 4);
}

static int compare_timestamps(const spill_value_t *left, const spill_value_t *right)
{
    uint64_t a = (uint64_t)spill_value_int64(left);
    uint64_t b = (uint64_t)spill_value_int64(right);
    return (a > b) - (a < b);
}

static int compare_codes_with_scope(const spill_value_t *left, const spill_value_t *right)
{
    spill_value_t a = {.data = left->data + 4}; /* the string inside */
    spill_value_t b = {.data = right->data + 4};
    int order = compare_strings(&a, &b);
    if (order != 0)
        return order;
    uint32_t length;
    (void)spill_value_text(&a, &length); /* equal on both sides */
    return compare_documents(a.data + 4 + length + 1, b.data + 4 + length + 1, true);
}

int spill_value_compare(const spill_value_t *left, const spill_value_t *right)
{
    int order = rank_of(left->type) - rank_of(right->type);
    if (order != 0)
        return order;
    switch (left->type) {
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_DECIMAL128:
        return compare_numbers(left, right);
    case BSON_TYPE_UTF8:
    case BSON_TYPE_SYMBOL:
    case BSON_TYPE_CODE:
        return compare_strings(left, right);
    case BSON_TYPE_DOCUMENT:
        return compare_documents(left->data, right->data, true);
    case BSON_TYPE_ARRAY:
        return compare_documents(left->data, right->data, false);
    case BSON_TYPE_BINARY:
        return compare_binaries(left, right);
    case BSON_TYPE_DATE_TIME: {
        int64_t a = spill_value_int64(left), b = spill_value_int64(right);
        return (a > b) - (a < b);
    }
    case BSON_TYPE_TIMESTAMP:
        return compare_timestamps(left, right);
    case BSON_TYPE_CODEWSCOPE:
        return compare_codes_with_scope(left, right);
    default: /* bool, ObjectId, regular expression, pointer; types without bytes */
        return compare_bytes(left->data, left->size_bytes, right->data, right->size_bytes);
    }
}

bool spill_value_same_class(const spill_value_t *left, const spill_value_t *right)
{
    return rank_of(left->type) == rank_of(right->type);
}

void spill_value_add_hash(const spill_value_t *value, uint64_t *hash)
{
    uint64_t parts[3] = {*hash, value->type, spill_hash(value->data, value->size_bytes)};
    *hash = spill_hash(parts, sizeof parts);
}
