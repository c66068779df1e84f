/* The bytes of BSON for loops over every byte of the input. */
#ifndef SPILL_SCAN_FIELD_BYTES_H
#define SPILL_SCAN_FIELD_BYTES_H

#include <bson/bson.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t read_u32(const uint8_t *data)
{
    uint32_t value;
    memcpy(&value, data, sizeof value);
    return BSON_UINT32_FROM_LE(value);
}

/* A value's size in bytes by its type, plus one; MEASURED: not fixed; BAD: no such type. */
enum { BAD = 0, MEASURED = 255 };
static const uint8_t SIZES[256] = {
    [BSON_TYPE_DOUBLE] = 1 + 8,
    [BSON_TYPE_UTF8] = MEASURED,
    [BSON_TYPE_DOCUMENT] = MEASURED,
    [BSON_TYPE_ARRAY] = MEASURED,
    [BSON_TYPE_BINARY] = MEASURED,
    [BSON_TYPE_UNDEFINED] = 1,
    [BSON_TYPE_OID] = 1 + 12,
    [BSON_TYPE_BOOL] = 1 + 1,
    [BSON_TYPE_DATE_TIME] = 1 + 8,
    [BSON_TYPE_NULL] = 1,
    [BSON_TYPE_REGEX] = MEASURED,
    [BSON_TYPE_DBPOINTER] = MEASURED,
    [BSON_TYPE_CODE] = MEASURED,
    [BSON_TYPE_SYMBOL] = MEASURED,
    [BSON_TYPE_CODEWSCOPE] = MEASURED,
    [BSON_TYPE_INT32] = 1 + 4,
    [BSON_TYPE_TIMESTAMP] = 1 + 8,
    [BSON_TYPE_INT64] = 1 + 8,
    [BSON_TYPE_DECIMAL128] = 1 + 16,
    [BSON_TYPE_MAXKEY] = 1,
    [BSON_TYPE_MINKEY] = 1,
};

/* For the search for a NUL, eight bytes at a time. */
#define ONES UINT64_C(0x0101010101010101)
#define HIGH_BITS UINT64_C(0x8080808080808080)

/* The first NUL from `at` on; there is one before `limit`. *plain: all bytes before it are ASCII.
 */
static inline const uint8_t *find_nul(const uint8_t *at, const uint8_t *limit, bool *plain)
{
    uint64_t high = 0;
    while (limit - at >= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        word = BSON_UINT64_FROM_LE(word);
        uint64_t nul = (word - ONES) & ~word & HIGH_BITS; /* its lowest bit is the first NUL's */
        if (nul != 0) {
            high |= word & ((nul & (~nul + 1)) - 1);
            *plain = (high & HIGH_BITS) == 0;
            return at + (__builtin_ctzll(nul) >> 3);
        }
        high |= word;
        at += 8;
    }
    while (*at != 0)
        high |= *at++;
    *plain = (high & HIGH_BITS) == 0;
    return at;
}

/* Sixteen bytes, in one register of the processor. */
typedef uint64_t byte_pair_t __attribute__((vector_size(16)));

static inline byte_pair_t read_pair(const uint8_t *data)
{
    byte_pair_t pair;
    memcpy(&pair, data, sizeof pair);
    return pair;
}

/* The first `size` bytes of a pair, at most 16. */
static inline byte_pair_t pair_mask(size_t size)
{
    static const uint8_t masks[32] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                                      0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    return read_pair(masks + 16 - size);
}

/* The pair `at` bytes behind the text's begin, but at most `last` bytes. */
static inline byte_pair_t read_pair_before(const uint8_t *text, size_t at, size_t last)
{
    return read_pair(text + (at < last ? at : last));
}

/*
 * A pair of bytes that has a high bit if the text has one, so if the text is not ASCII. Reads at
 * least 16 bytes. For most texts the number of reads does not depend on the size, so that no branch
 * does.
 */
static inline byte_pair_t high_bits_of(const uint8_t *text, size_t size)
{
    if (size <= 16)
        return read_pair(text) & pair_mask(size);
    const size_t last = size - 16;
    byte_pair_t high = read_pair(text) | read_pair(text + last);
    if (size <= 32)
        return high;
    if (size <= 128)
        return high | read_pair_before(text, 16, last) | read_pair_before(text, 32, last) |
               read_pair_before(text, 48, last) | read_pair_before(text, 64, last) |
               read_pair_before(text, 80, last) | read_pair_before(text, 96, last);
    for (size_t i = 16; i < last; i += 16)
        high |= read_pair(text + i);
    return high;
}

#define HIGH_PAIR ((byte_pair_t){HIGH_BITS, HIGH_BITS})

static inline bool is_ascii(const uint8_t *text, size_t size)
{
    uint64_t first = 0, last = 0;
    if (size > 16) {
        byte_pair_t high = high_bits_of(text, size);
        first = high[0] | high[1];
    } else if (size >= 8) {
        memcpy(&first, text, 8);
        memcpy(&last, text + size - 8, 8);
    } else if (size >= 4) {
        memcpy(&first, text, 4);
        memcpy(&last, text + size - 4, 4);
    } else if (size > 0) {
        first = (uint64_t)text[0] | (uint64_t)text[size / 2] << 8 | (uint64_t)text[size - 1] << 16;
    }
    return ((first | last) & HIGH_BITS) == 0;
}

#endif
