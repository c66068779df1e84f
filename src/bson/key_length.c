/*
 * Measure owner keys by the grammar of key_format.h. The reader becomes `bad` if the bytes do not
 * follow it.
 */
#include "bson/key.h"
#include "bson/key_format.h"
#include "bson/value.h"

#include <string.h>

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
