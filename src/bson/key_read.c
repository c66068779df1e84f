/*
 * Decode owner keys by the grammar in key.h, to a value with this key. A number (1, 1L, 1.0
 * have the same key) becomes an int64 if it fits.
 */
#include "bson/key.h"
#include "bson/value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SIGN_BIT (UINT64_C(1) << 63)

/* Most digits of a decimal128, and its largest exponent. */
enum { DIGITS_MAX = 34, EXPONENT_MAX = 6111 };

/* The input, and a buffer. */
typedef struct decoding {
    spill_reader_t reader;
    spill_buffer_t text; /* for one value */
} decoding_t;

/* Read the next text, without the escapes, and add a NUL. */
static void read_text(decoding_t *decoding)
{
    spill_reader_t *reader = &decoding->reader;
    spill_buffer_clear(&decoding->text);
    while (!reader->bad) {
        uint8_t byte = spill_reader_byte(reader);
        if (byte == 0 && spill_reader_byte(reader) != SPILL_KEY_ESCAPED_NUL)
            break;
        spill_buffer_append_byte(&decoding->text, byte);
    }
    spill_buffer_append_byte(&decoding->text, 0);
}

static void read_name(decoding_t *decoding, spill_buffer_t *name)
{
    uint8_t byte;
    spill_buffer_clear(name);
    do {
        byte = spill_reader_byte(&decoding->reader);
        spill_buffer_append_byte(name, byte);
    } while (byte != 0);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Return false on overflow. */
static bool multiply(spill_uint128_t *number, unsigned factor, int64_t times)
{
    spill_uint128_t most = 1;
    for (int i = 0; i < DIGITS_MAX; i++)
        most *= 10;
    for (; times > 0; times--) {
        if (*number > (most - 1) / factor)
            return false;
        *number *= factor;
    }
    return true;
}

/* Append u * 2^twos * 5^fives as a double, if a double has exactly this value. */
static bool append_double(bson_t *document, const char *name, bool negative, int64_t twos,
                          int64_t fives, spill_uint128_t u)
{
    if (fives < 0 || twos < -1100 || twos > 1100 || !multiply(&u, 5, fives) || u >> 53 != 0)
        return false;
    double value = ldexp((double)(uint64_t)u, (int)twos);
    return isfinite(value) && value > 0 &&
           BSON_APPEND_DOUBLE(document, name, negative ? -value : value);
}

static bool append_decimal(bson_t *document, const char *name, bool negative, int64_t twos,
                           int64_t fives, spill_uint128_t u)
{
    char digits[DIGITS_MAX + 8], text[sizeof digits + 32];
    size_t at = sizeof digits - 1;
    bson_decimal128_t decimal;
    int64_t tens = twos < fives ? twos : fives;
    int64_t zeros = tens > EXPONENT_MAX ? tens - EXPONENT_MAX : 0;
    if (!multiply(&u, 2, twos - tens) || !multiply(&u, 5, fives - tens) || !multiply(&u, 10, zeros))
        return false;
    digits[at] = '\0';
    for (; u > 0 && at > 0; u /= 10)
        digits[--at] = (char)('0' + (int)(u % 10));
    snprintf(text, sizeof text, "%s%sE%lld", negative ? "-" : "", digits + at,
             (long long)(tens - zeros));
    return bson_decimal128_from_string(text, &decimal) &&
           BSON_APPEND_DECIMAL128(document, name, &decimal);
}

/* Is the exponent possible? Without a bound, damaged bytes would make the loops endless. */
static bool is_exponent(int64_t exponent)
{
    enum { POWERS_MAX = 8192 };
    return exponent >= -POWERS_MAX && exponent <= POWERS_MAX;
}

static bool append_number(decoding_t *decoding, bson_t *document, const char *name)
{
    spill_reader_t *reader = &decoding->reader;
    switch (spill_reader_byte(reader)) {
    case SPILL_KEY_NAN:
        return BSON_APPEND_DOUBLE(document, name, (double)NAN);
    case SPILL_KEY_MINUS_INFINITY:
        return BSON_APPEND_DOUBLE(document, name, -(double)INFINITY);
    case SPILL_KEY_PLUS_INFINITY:
        return BSON_APPEND_DOUBLE(document, name, (double)INFINITY);
    case SPILL_KEY_INTEGER:
        return BSON_APPEND_INT64(document, name, (int64_t)(spill_reader_be64(reader) ^ SIGN_BIT));
    default:
        break;
    }
    bool negative = spill_reader_byte(reader) == 0;
    int64_t twos = spill_reader_zigzag(reader);
    int64_t fives = spill_reader_zigzag(reader);
    spill_uint128_t u = (spill_uint128_t)spill_reader_varint(reader) << 64;
    u |= spill_reader_varint(reader);
    if (u == 0 || !is_exponent(twos) || !is_exponent(fives))
        return false;
    return append_double(document, name, negative, twos, fives, u) ||
           append_decimal(document, name, negative, twos, fives, u);
}

/* ---- values with a length -------------------------------------------------------------------- */

static bool append_binary(decoding_t *decoding, bson_t *document, const char *name)
{
    uint64_t length = spill_reader_varint(&decoding->reader);
    uint8_t subtype = spill_reader_byte(&decoding->reader);
    if (length > SPILL_OWNER_KEY_MAX)
        return false;
    const uint8_t *bytes = spill_reader_bytes(&decoding->reader, (size_t)length);
    bool twice = subtype == BSON_SUBTYPE_BINARY_DEPRECATED && length >= 4;
    if (bytes && twice) { /* libbson adds the second length */
        bytes += 4;
        length -= 4;
    }
    return bytes &&
           BSON_APPEND_BINARY(document, name, (bson_subtype_t)subtype, bytes, (uint32_t)length);
}

static bool append_oid(decoding_t *decoding, bson_t *document, const char *name, const char *of)
{
    bson_oid_t oid;
    const uint8_t *bytes = spill_reader_bytes(&decoding->reader, SPILL_OID_BYTES);
    if (!bytes)
        return false;
    bson_oid_init_from_data(&oid, bytes);
    return of ? bson_append_dbpointer(document, name, -1, of, &oid)
              : BSON_APPEND_OID(document, name, &oid);
}

static bool append_regex(decoding_t *decoding, bson_t *document, const char *name)
{
    read_text(decoding);
    char *pattern = bson_strdup((const char *)decoding->text.data);
    read_text(decoding);
    bool done = BSON_APPEND_REGEX(document, name, pattern, (const char *)decoding->text.data);
    bson_free(pattern);
    return done;
}

/* ---- documents ------------------------------------------------------------------------------- */

static bool append_value(decoding_t *decoding, uint8_t type, bson_t *document, const char *name,
                         int depth);

/* Append the fields up to their end; an array's fields have no names. */
static bool append_fields(decoding_t *decoding, bool names, bson_t *document, int depth)
{
    spill_buffer_t name = SPILL_BUFFER_INIT;
    bool good = depth <= SPILL_NESTING_MAX;
    uint32_t index = 0;
    for (uint8_t type; good && (type = spill_reader_byte(&decoding->reader)) != SPILL_KEY_END;) {
        char number[16];
        const char *key;
        bson_uint32_to_string(index++, &key, number, sizeof number);
        if (names) {
            read_name(decoding, &name);
            key = (const char *)name.data;
        }
        good = append_value(decoding, type, document, key, depth);
    }
    spill_buffer_release(&name);
    return good;
}

static bool append_document(decoding_t *decoding, uint8_t type, bson_t *document, const char *name,
                            int depth)
{
    bson_t inner = BSON_INITIALIZER;
    char *code = NULL;
    if (type == SPILL_KEY_CODE_WITH_SCOPE) {
        read_text(decoding);
        code = bson_strdup((const char *)decoding->text.data);
    }
    bool good = append_fields(decoding, type != SPILL_KEY_ARRAY, &inner, depth + 1);
    if (good && code)
        good = BSON_APPEND_CODE_WITH_SCOPE(document, name, code, &inner);
    else if (good && type == SPILL_KEY_ARRAY)
        good = BSON_APPEND_ARRAY(document, name, &inner);
    else if (good)
        good = BSON_APPEND_DOCUMENT(document, name, &inner);
    bson_free(code);
    bson_destroy(&inner);
    return good;
}

static bool append_text(decoding_t *decoding, uint8_t type, bson_t *document, const char *name)
{
    read_text(decoding);
    const char *text = (const char *)decoding->text.data;
    if (type == SPILL_KEY_STRING)
        return bson_append_utf8(document, name, -1, text, (int)decoding->text.size - 1);
    if (type == SPILL_KEY_CODE)
        return BSON_APPEND_CODE(document, name, text);
    char *collection = bson_strdup(text);
    bool done = append_oid(decoding, document, name, collection);
    bson_free(collection);
    return done;
}

static bool append_value(decoding_t *decoding, uint8_t type, bson_t *document, const char *name,
                         int depth)
{
    spill_reader_t *reader = &decoding->reader;
    uint64_t number;
    switch (type) {
    case SPILL_KEY_MINKEY:
        return BSON_APPEND_MINKEY(document, name);
    case SPILL_KEY_UNDEFINED:
        return BSON_APPEND_UNDEFINED(document, name);
    case SPILL_KEY_NULL:
        return BSON_APPEND_NULL(document, name);
    case SPILL_KEY_MAXKEY:
        return BSON_APPEND_MAXKEY(document, name);
    case SPILL_KEY_FALSE:
    case SPILL_KEY_TRUE:
        return BSON_APPEND_BOOL(document, name, type == SPILL_KEY_TRUE);
    case SPILL_KEY_NUMBER:
        return append_number(decoding, document, name);
    case SPILL_KEY_STRING:
    case SPILL_KEY_CODE:
    case SPILL_KEY_POINTER:
        return append_text(decoding, type, document, name);
    case SPILL_KEY_DOCUMENT:
    case SPILL_KEY_ARRAY:
    case SPILL_KEY_CODE_WITH_SCOPE:
        return append_document(decoding, type, document, name, depth);
    case SPILL_KEY_BINARY:
        return append_binary(decoding, document, name);
    case SPILL_KEY_OID:
        return append_oid(decoding, document, name, NULL);
    case SPILL_KEY_REGEX:
        return append_regex(decoding, document, name);
    case SPILL_KEY_DATE:
        number = spill_reader_be64(reader) ^ SIGN_BIT;
        return BSON_APPEND_DATE_TIME(document, name, (int64_t)number);
    case SPILL_KEY_TIMESTAMP:
        number = spill_reader_be64(reader);
        return BSON_APPEND_TIMESTAMP(document, name, (uint32_t)(number >> 32), (uint32_t)number);
    default:
        return false;
    }
}

bool spill_owner_from_key(const uint8_t *key, size_t key_bytes, bson_t *storage,
                          spill_value_t *owner)
{
    decoding_t decoding = {.reader = {.at = key, .end = key + key_bytes},
                           .text = SPILL_BUFFER_INIT};
    spill_buffer_t again = SPILL_BUFFER_INIT;
    uint32_t before = storage->len;
    uint8_t type = spill_reader_byte(&decoding.reader);
    bool good = append_value(&decoding, type, storage, "", 0) && !decoding.reader.bad &&
                decoding.reader.at == decoding.reader.end;
    if (good) {
        *owner = spill_value_appended(storage, before);
        good = spill_owner_key(owner, &again, NULL) == SPILL_OK && again.size == key_bytes &&
               memcmp(again.data, key, key_bytes) == 0;
    }
    spill_buffer_release(&again);
    spill_buffer_release(&decoding.text);
    return good;
}
