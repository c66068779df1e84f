/* The bytes of BSON for loops over every byte of the input. */
#ifndef SPILL_SCAN_FIELD_BYTES_H
#define SPILL_SCAN_FIELD_BYTES_H

#include <bson/bson.h>
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

#endif
