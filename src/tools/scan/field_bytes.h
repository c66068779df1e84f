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

static inline byte_pair_t read_pair_before(const uint8_t *text, size_t at, size_t last)
{
    return read_pair(text + (at < last ? at : last));
}

/* Texts of 16 to 128 bytes: as many reads for every size, so that no branch depends on it. */
static inline bool is_ascii_text(const uint8_t *text, size_t size)
{
    const size_t last = size - 16;
    byte_pair_t high = read_pair(text) | read_pair_before(text, 16, last) |
                       read_pair_before(text, 32, last) | read_pair_before(text, 48, last) |
                       read_pair_before(text, 64, last) | read_pair_before(text, 80, last) |
                       read_pair_before(text, 96, last) | read_pair(text + last);
    return ((high[0] | high[1]) & HIGH_BITS) == 0;
}

/* Most texts are short and ASCII: check these by words, which may overlap. */
static inline bool is_ascii(const uint8_t *text, size_t size)
{
    uint64_t word = 0, last = 0;
    if (size > 128) {
        byte_pair_t high = read_pair(text + size - 16);
        for (size_t i = 0; i + 16 < size; i += 16)
            high |= read_pair(text + i);
        return ((high[0] | high[1]) & HIGH_BITS) == 0;
    }
    if (size >= 16)
        return is_ascii_text(text, size);
    if (size >= 8) {
        memcpy(&word, text, 8);
        memcpy(&last, text + size - 8, 8);
    } else if (size >= 4) {
        memcpy(&word, text, 4);
        memcpy(&last, text + size - 4, 4);
    } else if (size > 0) {
        word = (uint64_t)text[0] | (uint64_t)text[size / 2] << 8 | (uint64_t)text[size - 1] << 16;
    }
    return ((word | last) & HIGH_BITS) == 0;
}

#endif
