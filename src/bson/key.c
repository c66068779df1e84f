/*
 * Owner keys.
 *
 *   key       ::= type payload            (type: a byte, never 0)
 *   number    ::= 0x10 | 0x20 | 0x50      NaN, minus infinity, infinity
 *               | 0x40 be64               an integer of 64 bits, its sign bit flipped
 *               | 0x30 sign a b u         any other: u * 2^a * 5^b, where neither 2 nor 5 divides
 * u; sign a byte, a and b zigzag, u two varints (high, low) text      ::= bytes 0x00 0x00 string,
 * symbol, code; a 0x00 inside is 0x00 0xff fields    ::= { type name 0x00 payload } 0x00     of a
 * document; an array has no names binary    ::= varint-length subtype bytes date      ::= be64 with
 * its sign bit flipped;   timestamp ::= be64;   ObjectId ::= 12 bytes regex     ::= text text;
 * pointer ::= text ObjectId;   code with scope ::= text fields
 *
 * Every number has just one such form (factors are unique), so equal numbers of different types
 * have equal keys. Each form ends by itself, so no key is a prefix of another.
 */
#include "bson/key.h"

#include "bson/number.h"
#include "bson/value.h"
#include "util/error.h"

#include <string.h>

/* The types of a key, in the order of BSON values. */
enum {
    KEY_END = 0x00,
    KEY_MINKEY = 0x08,
    KEY_UNDEFINED = 0x10,
    KEY_NULL = 0x18,
    KEY_NUMBER = 0x20,
    KEY_STRING = 0x28,
    KEY_DOCUMENT = 0x30,
    KEY_ARRAY = 0x38,
    KEY_BINARY = 0x40,
    KEY_OID = 0x48,
    KEY_FALSE = 0x50,
    KEY_TRUE = 0x51,
    KEY_DATE = 0x58,
    KEY_TIMESTAMP = 0x60,
    KEY_REGEX = 0x68,
    KEY_POINTER = 0x70,
    KEY_CODE = 0x78,
    KEY_CODE_WITH_SCOPE = 0x80,
    KEY_MAXKEY = 0xf0
};

enum {
    NUMBER_NAN = 0x10,
    NUMBER_MINUS_INFINITY = 0x20,
    NUMBER_FACTORS = 0x30,
    NUMBER_INTEGER = 0x40,
    NUMBER_PLUS_INFINITY = 0x50
};

enum { ESCAPED_NUL = 0xff, OID_BYTES = 12 };

#define SIGN_BIT (UINT64_C(1) << 63)

static uint8_t key_type(const spill_value_t *value)
{
    switch (value->type) {
    case BSON_TYPE_MINKEY:
        return KEY_MINKEY;
    case BSON_TYPE_UNDEFINED:
        return KEY_UNDEFINED;
    case BSON_TYPE_NULL:
        return KEY_NULL;
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_DECIMAL128:
        return KEY_NUMBER;
    case BSON_TYPE_UTF8:
    case BSON_TYPE_SYMBOL:
        return KEY_STRING;
    case BSON_TYPE_DOCUMENT:
        return KEY_DOCUMENT;
    case BSON_TYPE_ARRAY:
        return KEY_ARRAY;
    case BSON_TYPE_BINARY:
        return KEY_BINARY;
    case BSON_TYPE_OID:
        return KEY_OID;
    case BSON_TYPE_BOOL:
        return value->data[0] != 0 ? KEY_TRUE : KEY_FALSE;
    case BSON_TYPE_DATE_TIME:
        return KEY_DATE;
    case BSON_TYPE_TIMESTAMP:
        return KEY_TIMESTAMP;
    case BSON_TYPE_REGEX:
        return KEY_REGEX;
    case BSON_TYPE_DBPOINTER:
        return KEY_POINTER;
    case BSON_TYPE_CODE:
        return KEY_CODE;
    case BSON_TYPE_CODEWSCOPE:
        return KEY_CODE_WITH_SCOPE;
    default:
        return KEY_MAXKEY;
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_text(spill_buffer_t *key, const char *text, size_t length)
{
    static const uint8_t nul[] = {0, ESCAPED_NUL};
    static const uint8_t end[] = {0, 0};
    const char *stop = text + length;
    for (const char *at; (at = memchr(text, 0, (size_t)(stop - text))) != NULL; text = at + 1) {
        spill_buffer_append(key, text, (size_t)(at - text));
        spill_buffer_append(key, nul, sizeof nul);
    }
    spill_buffer_append(key, text, (size_t)(stop - text));
    spill_buffer_append(key, end, sizeof end);
}

/* A string as BSON has it: length, characters, NUL. Returns the byte after it. */
static const uint8_t *put_string(spill_buffer_t *key, const uint8_t *data)
{
    const spill_value_t string = {.data = data};
    uint32_t length;
    const char *text = spill_value_text(&string, &length);
    put_text(key, text, length);
    return data + 4 + length + 1;
}

static void put_factors(spill_buffer_t *key, const spill_number_t *number)
{
    spill_uint128_t rest = number->digits;
    int64_t twos = (int64_t)number->twos + number->tens;
    int64_t fives = number->tens;
    for (; rest % 2 == 0; twos++) {
        rest /= 2;
    }
    for (; rest % 5 == 0; fives++) {
        rest /= 5;
    }
    spill_buffer_append_byte(key, NUMBER_FACTORS);
    spill_buffer_append_byte(key, number->negative ? 0 : 1);
    spill_buffer_append_zigzag(key, twos);
    spill_buffer_append_zigzag(key, fives);
    spill_buffer_append_varint(key, (uint64_t)(rest >> 64));
    spill_buffer_append_varint(key, (uint64_t)rest);
}

static void put_number(spill_buffer_t *key, const spill_value_t *value)
{
    int64_t integer;
    spill_number_t number = spill_number_of(value);
    if (spill_number_to_int64(&number, &integer)) {
        spill_buffer_append_byte(key, NUMBER_INTEGER);
        spill_buffer_append_be64(key, (uint64_t)integer ^ SIGN_BIT);
    } else if (number.kind == SPILL_NUMBER_FINITE) {
        put_factors(key, &number);
    } else if (number.kind == SPILL_NUMBER_NAN) {
        spill_buffer_append_byte(key, NUMBER_NAN);
    } else {
        spill_buffer_append_byte(key,
                                 number.negative ? NUMBER_MINUS_INFINITY : NUMBER_PLUS_INFINITY);
    }
}

static void put_binary(spill_buffer_t *key, const spill_value_t *value)
{
    uint32_t length = value->size_bytes - 5;
    spill_buffer_append_varint(key, length);
    spill_buffer_append(key, value->data + 4, length + 1); /* the subtype, then the bytes */
}

static void put_regex(spill_buffer_t *key, const spill_value_t *value)
{
    const char *pattern = (const char *)value->data;
    const char *options = pattern + strlen(pattern) + 1;
    put_text(key, pattern, strlen(pattern));
    put_text(key, options, strlen(options));
}

static void put_payload(spill_buffer_t *key, const spill_value_t *value);

static void put_fields(spill_buffer_t *key, const uint8_t *document, bool names)
{
    spill_fields_t fields = spill_fields_of(document);
    const char *name;
    spill_value_t value;
    while (spill_fields_next(&fields, &name, &value)) {
        spill_buffer_append_byte(key, key_type(&value));
        if (names) {
            spill_buffer_append(key, name, strlen(name) + 1);
        }
        put_payload(key, &value);
    }
    spill_buffer_append_byte(key, KEY_END);
}

static void put_payload(spill_buffer_t *key, const spill_value_t *value)
{
    switch (key_type(value)) {
    case KEY_NUMBER:
        put_number(key, value);
        break;
    case KEY_STRING:
    case KEY_CODE:
        put_string(key, value->data);
        break;
    case KEY_DOCUMENT:
        put_fields(key, value->data, true);
        break;
    case KEY_ARRAY:
        put_fields(key, value->data, false);
        break;
    case KEY_BINARY:
        put_binary(key, value);
        break;
    case KEY_OID:
        spill_buffer_append(key, value->data, OID_BYTES);
        break;
    case KEY_DATE:
        spill_buffer_append_be64(key, (uint64_t)spill_value_int64(value) ^ SIGN_BIT);
        break;
    case KEY_TIMESTAMP:
        spill_buffer_append_be64(key, (uint64_t)spill_value_int64(value));
        break;
    case KEY_REGEX:
        put_regex(key, value);
        break;
    case KEY_POINTER:
        spill_buffer_append(key, put_string(key, value->data), OID_BYTES);
        break;
    case KEY_CODE_WITH_SCOPE:
        put_fields(key, put_string(key, value->data + 4), true);
        break;
    default: /* the type says it all */
        break;
    }
}

static const char *refused_type(uint8_t type)
{
    switch (type) {
    case BSON_TYPE_ARRAY:
        return "an array";
    case BSON_TYPE_REGEX:
        return "a regular expression";
    case BSON_TYPE_UNDEFINED:
        return "undefined";
    default:
        return NULL;
    }
}

spill_code_t spill_owner_key(const spill_value_t *owner, spill_buffer_t *key, spill_error_t *error)
{
    const char *refused = refused_type(owner->type);
    if (refused != NULL) {
        return spill_fail(error, SPILL_INVALID, "an owner's _id cannot be %s", refused);
    }
    if (owner->size_bytes > SPILL_OWNER_KEY_MAX) {
        return spill_fail(error, SPILL_INVALID, "the owner's _id is too long: %u bytes of %d",
                          owner->size_bytes, SPILL_OWNER_KEY_MAX);
    }
    if (!spill_value_valid(owner)) {
        return spill_fail(error, SPILL_INVALID,
                          "the owner's _id is not a well-formed BSON value (type 0x%02x, %u bytes)",
                          owner->type, owner->size_bytes);
    }
    size_t start = key->size;
    spill_buffer_append_byte(key, key_type(owner));
    put_payload(key, owner);
    size_t size = key->size - start;
    if (size > SPILL_OWNER_KEY_MAX) {
        key->size = start;
        return spill_fail(error, SPILL_INVALID,
                          "the owner's _id is too long: its key has %zu bytes "
                          "of %d",
                          size, SPILL_OWNER_KEY_MAX);
    }
    return SPILL_OK;
}

/* ---- measuring: the same grammar; `reader->bad` when the bytes do not follow it -------------- */

static void skip_text(spill_reader_t *reader)
{
    while (!reader->bad) {
        size_t left = (size_t)(reader->end - reader->at);
        const uint8_t *nul = left > 0 ? memchr(reader->at, 0, left) : NULL;
        if (nul == NULL) {
            reader->bad = 1;
            return;
        }
        reader->at = nul + 1;
        uint8_t next = spill_reader_byte(reader);
        if (next == 0) {
            return;
        }
        if (next != ESCAPED_NUL) {
            reader->bad = 1;
        }
    }
}

static void skip_name(spill_reader_t *reader)
{
    while (spill_reader_byte(reader) != 0) {
    }
}

static void skip_number(spill_reader_t *reader)
{
    switch (spill_reader_byte(reader)) {
    case NUMBER_NAN:
    case NUMBER_MINUS_INFINITY:
    case NUMBER_PLUS_INFINITY:
        break;
    case NUMBER_INTEGER:
        spill_reader_be64(reader);
        break;
    case NUMBER_FACTORS:
        spill_reader_byte(reader);
        spill_reader_varint(reader);
        spill_reader_varint(reader);
        spill_reader_varint(reader);
        spill_reader_varint(reader);
        break;
    default:
        reader->bad = 1;
        break;
    }
}

static void skip_binary(spill_reader_t *reader)
{
    uint64_t length = spill_reader_varint(reader);
    if (length > SPILL_OWNER_KEY_MAX) {
        reader->bad = 1;
        return;
    }
    spill_reader_bytes(reader, (size_t)length + 1);
}

static void skip_payload(spill_reader_t *reader, uint8_t type, int depth);

static void skip_fields(spill_reader_t *reader, bool names, int depth)
{
    if (depth > SPILL_NESTING_MAX) {
        reader->bad = 1;
    }
    for (uint8_t type; (type = spill_reader_byte(reader)) != KEY_END;) {
        if (names) {
            skip_name(reader);
        }
        skip_payload(reader, type, depth);
    }
}

static void skip_payload(spill_reader_t *reader, uint8_t type, int depth)
{
    switch (type) {
    case KEY_MINKEY:
    case KEY_UNDEFINED:
    case KEY_NULL:
    case KEY_FALSE:
    case KEY_TRUE:
    case KEY_MAXKEY:
        break;
    case KEY_NUMBER:
        skip_number(reader);
        break;
    case KEY_STRING:
    case KEY_CODE:
        skip_text(reader);
        break;
    case KEY_DOCUMENT:
        skip_fields(reader, true, depth + 1);
        break;
    case KEY_ARRAY:
        skip_fields(reader, false, depth + 1);
        break;
    case KEY_BINARY:
        skip_binary(reader);
        break;
    case KEY_OID:
        spill_reader_bytes(reader, OID_BYTES);
        break;
    case KEY_DATE:
    case KEY_TIMESTAMP:
        spill_reader_be64(reader);
        break;
    case KEY_REGEX:
        skip_text(reader);
        skip_text(reader);
        break;
    case KEY_POINTER:
        skip_text(reader);
        spill_reader_bytes(reader, OID_BYTES);
        break;
    case KEY_CODE_WITH_SCOPE:
        skip_text(reader);
        skip_fields(reader, true, depth + 1);
        break;
    default:
        reader->bad = 1;
        break;
    }
}

size_t spill_owner_key_length(const uint8_t *data, size_t size)
{
    spill_reader_t reader = {.at = data, .end = data + size};
    skip_payload(&reader, spill_reader_byte(&reader), 0);
    return reader.bad ? 0 : (size_t)(reader.at - data);
}

bool spill_value_same_owner(const spill_value_t *left, const spill_value_t *right)
{
    if (spill_value_equal(left, right)) {
        return true;
    }
    spill_buffer_t left_key = SPILL_BUFFER_INIT;
    spill_buffer_t right_key = SPILL_BUFFER_INIT;
    bool same = spill_owner_key(left, &left_key, NULL) == SPILL_OK &&
                spill_owner_key(right, &right_key, NULL) == SPILL_OK &&
                spill_buffer_equal(&left_key, &right_key);
    spill_buffer_release(&left_key);
    spill_buffer_release(&right_key);
    return same;
}
