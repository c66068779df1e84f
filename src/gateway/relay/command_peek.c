/* Walk over the top level of a body that is cut off: libbson's iterator needs whole documents. */
#include "gateway/relay/command_peek.h"

#include <string.h>

enum { FLAGS_AT = SPILL_WIRE_HEADER_BYTES, KIND_AT = FLAGS_AT + 4, BODY_AT = KIND_AT + 1 };

static uint32_t read_uint32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

/*
 * Find the size of a value; more than `left`: it is not all there. False: the type does not exist,
 * or only the whole value would show its size.
 */
static bool measure(uint8_t type, const uint8_t *value, size_t left, size_t *bytes)
{
    enum { LENGTH_BYTES = 4, OBJECT_ID_BYTES = 12, DECIMAL_BYTES = 16, SUBTYPE_BYTES = 1 };
    size_t length = left < LENGTH_BYTES ? left : read_uint32(value);
    switch (type) {
    case BSON_TYPE_UNDEFINED:
    case BSON_TYPE_NULL:
    case BSON_TYPE_MAXKEY:
    case (uint8_t)BSON_TYPE_MINKEY:
        *bytes = 0;
        return true;
    case BSON_TYPE_BOOL:
        *bytes = 1;
        return true;
    case BSON_TYPE_INT32:
        *bytes = LENGTH_BYTES;
        return true;
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_DATE_TIME:
    case BSON_TYPE_TIMESTAMP:
    case BSON_TYPE_INT64:
        *bytes = 8;
        return true;
    case BSON_TYPE_OID:
        *bytes = OBJECT_ID_BYTES;
        return true;
    case BSON_TYPE_DECIMAL128:
        *bytes = DECIMAL_BYTES;
        return true;
    case BSON_TYPE_UTF8:
    case BSON_TYPE_CODE:
    case BSON_TYPE_SYMBOL:
        *bytes = length + LENGTH_BYTES;
        return true;
    case BSON_TYPE_BINARY:
        *bytes = length + LENGTH_BYTES + SUBTYPE_BYTES;
        return true;
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
    case BSON_TYPE_CODEWSCOPE:
        *bytes = left < LENGTH_BYTES ? LENGTH_BYTES : length;
        return *bytes > 0;
    default:
        return false;
    }
}

/* A text value that lies within the bytes, or NULL. */
static const char *text_at(uint8_t type, const uint8_t *value, size_t bytes)
{
    enum { EMPTY_TEXT_BYTES = 5 };
    bool text = type == BSON_TYPE_UTF8 && bytes >= EMPTY_TEXT_BYTES && value[bytes - 1] == 0 &&
                strlen((const char *)value + 4) == bytes - EMPTY_TEXT_BYTES;
    return text ? (const char *)value + 4 : NULL;
}

/* What is known when the bytes have ended. */
static spill_peek_result_t end_of_bytes(const spill_command_peek_t *peek)
{
    return peek->name && peek->database ? SPILL_PEEK_KNOWN : SPILL_PEEK_MORE;
}

static spill_peek_result_t peek_fields(const uint8_t *at, const uint8_t *end,
                                       spill_command_peek_t *peek)
{
    while (at < end) {
        uint8_t type = *at++;
        if (type == BSON_TYPE_EOD) {
            peek->complete = true;
            return peek->database ? SPILL_PEEK_KNOWN : SPILL_PEEK_UNKNOWN;
        }
        const char *key = (const char *)at;
        const uint8_t *key_end = memchr(at, '\0', (size_t)(end - at));
        if (!key_end)
            return end_of_bytes(peek);
        const uint8_t *value = key_end + 1;
        size_t left = (size_t)(end - value);
        size_t bytes;
        if (!measure(type, value, left, &bytes))
            return SPILL_PEEK_UNKNOWN;
        if (bytes > left)
            return end_of_bytes(peek);
        if (!peek->name) {
            peek->name = key;
            peek->collection = text_at(type, value, bytes);
        }
        if (strcmp(key, "autocommit") == 0 || strcmp(key, "startTransaction") == 0)
            peek->transaction = true;
        if (strcmp(key, "$db") == 0)
            peek->database = text_at(type, value, bytes);
        at = value + bytes;
    }
    return end_of_bytes(peek);
}

spill_peek_result_t spill_command_peek(const uint8_t *bytes, size_t size, size_t length,
                                       spill_command_peek_t *peek)
{
    enum { LENGTH_BYTES = 4 };
    *peek = (spill_command_peek_t){0};
    if (size < BODY_AT + LENGTH_BYTES)
        return size == length ? SPILL_PEEK_MALFORMED : SPILL_PEEK_MORE;
    uint32_t flags = read_uint32(bytes + FLAGS_AT);
    peek->unanswered = (flags & SPILL_WIRE_MORE_TO_COME) != 0;
    if ((flags & 0xFFFFu & ~(SPILL_WIRE_CHECKSUM | SPILL_WIRE_MORE_TO_COME)) != 0)
        return SPILL_PEEK_MALFORMED;
    if (bytes[KIND_AT] != 0)
        return SPILL_PEEK_UNKNOWN; /* the body stands behind a sequence */
    size_t body = read_uint32(bytes + BODY_AT);
    if (body < LENGTH_BYTES + 1 || body > length - BODY_AT)
        return SPILL_PEEK_MALFORMED;
    size_t end = BODY_AT + body < size ? BODY_AT + body : size;
    return peek_fields(bytes + BODY_AT + LENGTH_BYTES, bytes + end, peek);
}
