/* Write owner keys, and measure them. */
#include "bson/key.h"

#include "bson/value.h"
#include "util/error.h"

#include <string.h>

#define SIGN_BIT (UINT64_C(1) << 63)

static uint8_t key_type(const spill_value_t *value)
{
    switch (value->type) {
    case BSON_TYPE_MINKEY:
        return SPILL_KEY_MINKEY;
    case BSON_TYPE_UNDEFINED:
        return SPILL_KEY_UNDEFINED;
    case BSON_TYPE_NULL:
        return SPILL_KEY_NULL;
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_DECIMAL128:
        return SPILL_KEY_NUMBER;
    case BSON_TYPE_UTF8:
    case BSON_TYPE_SYMBOL:
        return SPILL_KEY_STRING;
    case BSON_TYPE_DOCUMENT:
        return SPILL_KEY_DOCUMENT;
    case BSON_TYPE_ARRAY:
        return SPILL_KEY_ARRAY;
    case BSON_TYPE_BINARY:
        return SPILL_KEY_BINARY;
    case BSON_TYPE_OID:
        return SPILL_KEY_OID;
    case BSON_TYPE_BOOL:
        return value->data[0] != 0 ? SPILL_KEY_TRUE : SPILL_KEY_FALSE;
    case BSON_TYPE_DATE_TIME:
        return SPILL_KEY_DATE;
    case BSON_TYPE_TIMESTAMP:
        return SPILL_KEY_TIMESTAMP;
    case BSON_TYPE_REGEX:
        return SPILL_KEY_REGEX;
    case BSON_TYPE_DBPOINTER:
        return SPILL_KEY_POINTER;
    case BSON_TYPE_CODE:
        return SPILL_KEY_CODE;
    case BSON_TYPE_CODEWSCOPE:
        return SPILL_KEY_CODE_WITH_SCOPE;
    default:
        return SPILL_KEY_MAXKEY;
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_text(spill_buffer_t *key, const char *text, size_t length)
{
    static const uint8_t nul[] = {0, SPILL_KEY_ESCAPED_NUL};
    static const uint8_t end[] = {0, 0};
    const char *stop = text + length;
    for (const char *at; (at = memchr(text, 0, (size_t)(stop - text))) != NULL; text = at + 1) {
        spill_buffer_append(key, text, (size_t)(at - text));
        spill_buffer_append(key, nul, sizeof nul);
    }
    spill_buffer_append(key, text, (size_t)(stop - text));
    spill_buffer_append(key, end, sizeof end);
}

/* Append a BSON string: length, characters, NUL. Returns the byte after it. */
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
    for (; rest % 2 == 0; twos++)
        rest /= 2;
    for (; rest % 5 == 0; fives++)
        rest /= 5;
    spill_buffer_append_byte(key, SPILL_KEY_FACTORS);
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
        spill_buffer_append_byte(key, SPILL_KEY_INTEGER);
        spill_buffer_append_be64(key, (uint64_t)integer ^ SIGN_BIT);
    } else if (number.kind == SPILL_NUMBER_FINITE) {
        put_factors(key, &number);
    } else if (number.kind == SPILL_NUMBER_NAN) {
        spill_buffer_append_byte(key, SPILL_KEY_NAN);
    } else {
        spill_buffer_append_byte(key, number.negative ? SPILL_KEY_MINUS_INFINITY
                                                      : SPILL_KEY_PLUS_INFINITY);
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
        if (names)
            spill_buffer_append(key, name, strlen(name) + 1);
        put_payload(key, &value);
    }
    spill_buffer_append_byte(key, SPILL_KEY_END);
}

static void put_payload(spill_buffer_t *key, const spill_value_t *value)
{
    switch (key_type(value)) {
    case SPILL_KEY_NUMBER:
        put_number(key, value);
        break;
    case SPILL_KEY_STRING:
    case SPILL_KEY_CODE:
        put_string(key, value->data);
        break;
    case SPILL_KEY_DOCUMENT:
        put_fields(key, value->data, true);
        break;
    case SPILL_KEY_ARRAY:
        put_fields(key, value->data, false);
        break;
    case SPILL_KEY_BINARY:
        put_binary(key, value);
        break;
    case SPILL_KEY_OID:
        spill_buffer_append(key, value->data, SPILL_OID_BYTES);
        break;
    case SPILL_KEY_DATE:
        spill_buffer_append_be64(key, (uint64_t)spill_value_int64(value) ^ SIGN_BIT);
        break;
    case SPILL_KEY_TIMESTAMP:
        spill_buffer_append_be64(key, (uint64_t)spill_value_int64(value));
        break;
    case SPILL_KEY_REGEX:
        put_regex(key, value);
        break;
    case SPILL_KEY_POINTER:
        spill_buffer_append(key, put_string(key, value->data), SPILL_OID_BYTES);
        break;
    case SPILL_KEY_CODE_WITH_SCOPE:
        put_fields(key, put_string(key, value->data + 4), true);
        break;
    default: /* the type has no content */
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

spill_code_t spill_owner_check(const spill_value_t *owner, spill_error_t *error)
{
    const char *refused = refused_type(owner->type);
    if (refused != NULL)
        return spill_fail(error, SPILL_INVALID, "an owner's _id cannot be %s", refused);
    return SPILL_OK;
}

static spill_code_t refuse_malformed(const spill_value_t *value, const char *what,
                                     spill_error_t *error)
{
    return spill_fail(error, SPILL_INVALID,
                      "%s is not a well-formed BSON value (type 0x%02x, %u bytes)", what,
                      value->type, value->size_bytes);
}

static void put_value(spill_buffer_t *key, const spill_value_t *value)
{
    spill_buffer_append_byte(key, key_type(value));
    put_payload(key, value);
}

spill_code_t spill_owner_key(const spill_value_t *owner, spill_buffer_t *key, spill_error_t *error)
{
    if (spill_owner_check(owner, error) != SPILL_OK)
        return SPILL_INVALID;
    if (owner->size_bytes > SPILL_OWNER_KEY_MAX)
        return spill_fail(error, SPILL_INVALID, "the owner's _id is too long: %u bytes of %d",
                          owner->size_bytes, SPILL_OWNER_KEY_MAX);
    if (!spill_value_valid(owner))
        return refuse_malformed(owner, "the owner's _id", error);
    size_t start = key->size;
    put_value(key, owner);
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

spill_code_t spill_value_key(const spill_value_t *value, spill_buffer_t *key, spill_error_t *error)
{
    if (!spill_value_valid(value))
        return refuse_malformed(value, "the value", error);
    put_value(key, value);
    return SPILL_OK;
}

bool spill_value_same_owner(const spill_value_t *left, const spill_value_t *right)
{
    if (left == NULL || right == NULL)
        return false;
    if (spill_value_equal(left, right))
        return true;
    spill_buffer_t left_key = SPILL_BUFFER_INIT;
    spill_buffer_t right_key = SPILL_BUFFER_INIT;
    bool same = spill_owner_key(left, &left_key, NULL) == SPILL_OK &&
                spill_owner_key(right, &right_key, NULL) == SPILL_OK &&
                spill_buffer_equal(&left_key, &right_key);
    spill_buffer_release(&left_key);
    spill_buffer_release(&right_key);
    return same;
}

/* ---- length ---------------------------------------------------------------------------------- */

/*
 * A key is measured by the grammar in key.h. The reader becomes `bad` if the bytes do not follow
 * it.
 */

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
        if (next == 0)
            return;
        if (next != SPILL_KEY_ESCAPED_NUL)
            reader->bad = 1;
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
    case SPILL_KEY_NAN:
    case SPILL_KEY_MINUS_INFINITY:
    case SPILL_KEY_PLUS_INFINITY:
        break;
    case SPILL_KEY_INTEGER:
        spill_reader_be64(reader);
        break;
    case SPILL_KEY_FACTORS:
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
    if (depth > SPILL_NESTING_MAX)
        reader->bad = 1;
    for (uint8_t type; (type = spill_reader_byte(reader)) != SPILL_KEY_END;) {
        if (names)
            skip_name(reader);
        skip_payload(reader, type, depth);
    }
}

static void skip_payload(spill_reader_t *reader, uint8_t type, int depth)
{
    switch (type) {
    case SPILL_KEY_MINKEY:
    case SPILL_KEY_UNDEFINED:
    case SPILL_KEY_NULL:
    case SPILL_KEY_FALSE:
    case SPILL_KEY_TRUE:
    case SPILL_KEY_MAXKEY:
        break;
    case SPILL_KEY_NUMBER:
        skip_number(reader);
        break;
    case SPILL_KEY_STRING:
    case SPILL_KEY_CODE:
        skip_text(reader);
        break;
    case SPILL_KEY_DOCUMENT:
        skip_fields(reader, true, depth + 1);
        break;
    case SPILL_KEY_ARRAY:
        skip_fields(reader, false, depth + 1);
        break;
    case SPILL_KEY_BINARY:
        skip_binary(reader);
        break;
    case SPILL_KEY_OID:
        spill_reader_bytes(reader, SPILL_OID_BYTES);
        break;
    case SPILL_KEY_DATE:
    case SPILL_KEY_TIMESTAMP:
        spill_reader_be64(reader);
        break;
    case SPILL_KEY_REGEX:
        skip_text(reader);
        skip_text(reader);
        break;
    case SPILL_KEY_POINTER:
        skip_text(reader);
        spill_reader_bytes(reader, SPILL_OID_BYTES);
        break;
    case SPILL_KEY_CODE_WITH_SCOPE:
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
