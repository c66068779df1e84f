#include "random_value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* splitmix64 */
uint64_t random_next(random_source_t *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t random_below(random_source_t *random, uint32_t bound)
{
    return (uint32_t)(random_next(random) % bound);
}

static double random_double(random_source_t *random)
{
    static const double corners[] = {0.0,   -0.0,    0.5,      0.1,       1e300,  -1e-300, 5e-324,
                                     1.0,   -1.0,    1e15,     0x1p53,    0x1p63, -0x1p63, 1e100,
                                     1e-20, 123.456, INFINITY, -INFINITY, NAN};
    if (random_below(random, 3) != 0)
        return corners[random_below(random, sizeof corners / sizeof corners[0])];
    uint64_t bits = random_next(random);
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static int64_t random_integer(random_source_t *random)
{
    static const int64_t corners[] = {
        0, 1, -1, 10, 100, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, (1LL << 53) + 1, 1LL << 53};
    return random_below(random, 2) == 0
               ? corners[random_below(random, sizeof corners / sizeof corners[0])]
               : (int64_t)(random_next(random) >> random_below(random, 64));
}

static bson_decimal128_t random_decimal(random_source_t *random)
{
    static const char *const corners[] = {"0",
                                          "-0",
                                          "0E+6111",
                                          "1",
                                          "1.0",
                                          "1.00",
                                          "1E+0",
                                          "10E-1",
                                          "0.1",
                                          "0.5",
                                          "5E-1",
                                          "-1",
                                          "1E+15",
                                          "1E+300",
                                          "1E-6176",
                                          "NaN",
                                          "Infinity",
                                          "-Infinity",
                                          "1E+6144",
                                          "123.456",
                                          "9.223372036854775808E+18",
                                          "-9223372036854775808",
                                          "9007199254740993",
                                          "0.1000000000000000055511151231257827",
                                          "9999999999999999999999999999999999",
                                          "4.940656458412465441765687928682214E-324"};
    bson_decimal128_t decimal;
    if (random_below(random, 3) != 0) {
        bson_decimal128_from_string(
            corners[random_below(random, sizeof corners / sizeof corners[0])], &decimal);
    } else {
        /* Any sign and exponent that a number may have, and a coefficient below 10^34. */
        decimal.high = random_next(random) & UINT64_C(0x9fff1fffffffffff);
        decimal.low = random_next(random);
    }
    return decimal;
}

void random_append_number(random_source_t *random, bson_t *document, const char *key)
{
    switch (random_below(random, 4)) {
    case 0:
        BSON_APPEND_INT32(document, key, (int32_t)random_integer(random));
        break;
    case 1:
        BSON_APPEND_INT64(document, key, random_integer(random));
        break;
    case 2:
        BSON_APPEND_DOUBLE(document, key, random_double(random));
        break;
    default: {
        bson_decimal128_t decimal = random_decimal(random);
        BSON_APPEND_DECIMAL128(document, key, &decimal);
    }
    }
}

static const char *random_text(random_source_t *random, int *length)
{
    static const struct {
        const char *text;
        int length;
    } texts[] = {{"", 0},        {"a", 1},      {"ab", 2},           {"a\0", 2},
                 {"a\0\xff", 3}, {"\0", 1},     {"\0\0", 2},         {"caf\xc3\xa9", 5},
                 {"quote\"", 6}, {"\\back", 5}, {"line\nbreak", 10}, {"\xf0\x9f\x98\x80", 4}};
    size_t index = random_below(random, sizeof texts / sizeof texts[0]);
    *length = texts[index].length;
    return texts[index].text;
}

static void random_append_nested(random_source_t *random, bson_t *document, const char *key,
                                 int depth);

static void random_fill(random_source_t *random, bson_t *document, bool names, int depth)
{
    static const char *const keys[] = {"", "a", "b", "name", "with space", "caf\xc3\xa9"};
    uint32_t count = random_below(random, 4);
    for (uint32_t i = 0; i < count; i++) {
        char index[16];
        snprintf(index, sizeof index, "%u", i);
        random_append_nested(random, document, names ? keys[random_below(random, 6)] : index,
                             depth + 1);
    }
}

static void random_append_container(random_source_t *random, bson_t *document, const char *key,
                                    uint32_t kind, int depth)
{
    bson_t child;
    if (kind == 0) {
        BSON_APPEND_DOCUMENT_BEGIN(document, key, &child);
        random_fill(random, &child, true, depth);
        bson_append_document_end(document, &child);
    } else if (kind == 1) {
        BSON_APPEND_ARRAY_BEGIN(document, key, &child);
        random_fill(random, &child, false, depth);
        bson_append_array_end(document, &child);
    } else {
        bson_init(&child);
        random_fill(random, &child, true, depth);
        BSON_APPEND_CODE_WITH_SCOPE(document, key, "f()", &child);
        bson_destroy(&child);
    }
}

static void random_append_binary(random_source_t *random, bson_t *document, const char *key)
{
    static const bson_subtype_t subtypes[] = {BSON_SUBTYPE_BINARY, BSON_SUBTYPE_UUID,
                                              BSON_SUBTYPE_USER, BSON_SUBTYPE_BINARY_DEPRECATED};
    uint8_t bytes[16];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)random_below(random, 3);
    BSON_APPEND_BINARY(document, key, subtypes[random_below(random, 4)], bytes,
                       random_below(random, sizeof bytes));
}

static void random_append_scalar(random_source_t *random, bson_t *document, const char *key,
                                 uint32_t kind)
{
    int length;
    const char *text = random_text(random, &length);
    bson_oid_t oid = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, (uint8_t)random_below(random, 2)}};
    switch (kind) {
    case 0:
        bson_append_utf8(document, key, -1, text, length);
        break;
    case 1:
        bson_append_symbol(document, key, -1, text, length);
        break;
    case 2:
        BSON_APPEND_OID(document, key, &oid);
        break;
    case 3:
        BSON_APPEND_BOOL(document, key, random_below(random, 2) == 0);
        break;
    case 4:
        BSON_APPEND_DATE_TIME(document, key, random_integer(random) / 1000000);
        break;
    case 5:
        BSON_APPEND_TIMESTAMP(document, key, random_below(random, 3), random_below(random, 3));
        break;
    case 6:
        BSON_APPEND_REGEX(document, key, "^a.*", random_below(random, 2) == 0 ? "xi" : "");
        break;
    case 7:
        BSON_APPEND_CODE(document, key, "f()");
        break;
    case 8:
        bson_append_dbpointer(document, key, -1, "coll", &oid);
        break;
    case 9:
        BSON_APPEND_NULL(document, key);
        break;
    case 10:
        BSON_APPEND_UNDEFINED(document, key);
        break;
    case 11:
        BSON_APPEND_MINKEY(document, key);
        break;
    default:
        BSON_APPEND_MAXKEY(document, key);
        break;
    }
}

static void random_append_nested(random_source_t *random, bson_t *document, const char *key,
                                 int depth)
{
    uint32_t kind = random_below(random, depth < 4 ? 28 : 24);
    if (kind < 13)
        random_append_scalar(random, document, key, kind);
    else if (kind < 15)
        random_append_binary(random, document, key);
    else if (kind < 24)
        random_append_number(random, document, key);
    else
        random_append_container(random, document, key, kind % 3, depth);
}

void random_append(random_source_t *random, bson_t *document, const char *key)
{
    random_append_nested(random, document, key, 0);
}

spill_value_t first_value(const bson_t *document)
{
    bson_iter_t iter;
    if (!bson_iter_init(&iter, document) || !bson_iter_next(&iter))
        return (spill_value_t){0};
    return spill_value_from_iter(&iter);
}
