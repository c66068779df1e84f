/*
 * Extended JSON of values of the usual types, as libbson writes it, in less time. An export writes
 * millions of small documents, and libbson's writer takes most of its time.
 */
#include "bson/value.h"
#include "util/buffer.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Deeper documents are left to libbson, which has a limit of its own. */
enum { DEPTH_MAX = 50, EMPTY_BYTES = 5 };

typedef struct writer {
    spill_buffer_t text;
    bool canonical;
} writer_t;

static void put(writer_t *writer, const char *text)
{
    spill_buffer_append(&writer->text, text, strlen(text));
}

/* False: it is not UTF-8. */
static bool put_string(writer_t *writer, const char *text, size_t size)
{
    bool plain = true;
    for (size_t i = 0; plain && i < size; i++)
        plain = text[i] >= 0x20 && text[i] < 0x7F && text[i] != '"' && text[i] != '\\';
    /* libbson reads past the end of a text that ends inside a character. */
    if (!plain && !spill_utf8_valid((const uint8_t *)text, size))
        return false;
    char *escaped = plain ? NULL : bson_utf8_escape_for_json(text, (ssize_t)size);
    if (!plain && !escaped)
        return false;
    spill_buffer_append_byte(&writer->text, '"');
    if (plain && size > 0)
        spill_buffer_append(&writer->text, text, size);
    else if (escaped)
        put(writer, escaped);
    spill_buffer_append_byte(&writer->text, '"');
    bson_free(escaped);
    return true;
}

static void put_number(writer_t *writer, const char *name, int64_t number)
{
    char text[64];
    if (writer->canonical)
        snprintf(text, sizeof text, "{ \"%s\" : \"%" PRId64 "\" }", name, number);
    else
        snprintf(text, sizeof text, "%" PRId64, number);
    put(writer, text);
}

static bool put_value(writer_t *writer, const bson_iter_t *at, int depth);

/* The rest of the iterator's members. */
static bool put_members(writer_t *writer, bson_iter_t *member, bool is_array, int depth)
{
    const char *separator = "";
    put(writer, is_array ? "[ " : "{ ");
    while (bson_iter_next(member)) {
        put(writer, separator);
        separator = ", ";
        if (!is_array) {
            if (!put_string(writer, bson_iter_key(member), bson_iter_key_len(member)))
                return false;
            put(writer, " : ");
        }
        if (!put_value(writer, member, depth))
            return false;
    }
    put(writer, is_array ? " ]" : " }");
    return member->err_off == 0;
}

/* False: a value of another type, or one that JSON cannot express. */
static bool put_value(writer_t *writer, const bson_iter_t *at, int depth)
{
    bson_iter_t member;
    uint32_t size;
    char hex[25];
    switch (bson_iter_type(at)) {
    case BSON_TYPE_UTF8: {
        const char *text = bson_iter_utf8(at, &size);
        return put_string(writer, text, size);
    }
    case BSON_TYPE_INT32:
        put_number(writer, "$numberInt", bson_iter_int32(at));
        return true;
    case BSON_TYPE_INT64:
        put_number(writer, "$numberLong", bson_iter_int64(at));
        return true;
    case BSON_TYPE_BOOL:
        put(writer, bson_iter_bool(at) ? "true" : "false");
        return true;
    case BSON_TYPE_NULL:
        put(writer, "null");
        return true;
    case BSON_TYPE_OID:
        bson_oid_to_string(bson_iter_oid(at), hex);
        put(writer, "{ \"$oid\" : \"");
        put(writer, hex);
        put(writer, "\" }");
        return true;
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
        return depth < DEPTH_MAX && bson_iter_recurse(at, &member) &&
               put_members(writer, &member, bson_iter_type(at) == BSON_TYPE_ARRAY, depth + 1);
    default:
        return false;
    }
}

char *spill_json_write(const spill_value_t *value, bool canonical)
{
    writer_t writer = {.text = SPILL_BUFFER_INIT, .canonical = canonical};
    bson_t document;
    bson_iter_t member;
    bool written = false;
    if (value->type == BSON_TYPE_DOCUMENT && value->size_bytes == EMPTY_BYTES)
        return bson_strdup("{ }");
    if (value->type == BSON_TYPE_UTF8 && value->size_bytes >= 5)
        written = put_string(&writer, (const char *)value->data + 4, value->size_bytes - 5);
    else if (value->type == BSON_TYPE_DOCUMENT &&
             bson_init_static(&document, value->data, value->size_bytes) &&
             bson_iter_init(&member, &document))
        written = put_members(&writer, &member, false, 0);
    if (!written) {
        spill_buffer_release(&writer.text);
        return NULL;
    }
    spill_buffer_append_byte(&writer.text, '\0');
    return (char *)writer.text.data;
}
