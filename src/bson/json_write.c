/*
 * Extended JSON of values of the usual types, as libbson writes it, in less time. An export writes
 * millions of small documents, and libbson's writer takes most of its time.
 */
#include "bson/value.h"
#include "util/buffer.h"
#include "util/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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

/* False: it is not finite. */
static bool put_double(writer_t *writer, double number)
{
    char text[64];
    if (!isfinite(number))
        return false;
    size_t length = (size_t)snprintf(text, sizeof text, "%.20g", number);
    bool integer = strspn(text, "-0123456789") == length;
    put(writer, writer->canonical ? "{ \"$numberDouble\" : \"" : "");
    put(writer, text);
    put(writer, integer ? ".0" : "");
    put(writer, writer->canonical ? "\" }" : "");
    return true;
}

/* False: a relaxed date before 1970, or after 9999. */
static bool put_date(writer_t *writer, int64_t time_ms)
{
    enum { SECOND_MS = 1000 };
    static const int64_t after_9999 = 253402300800 * SECOND_MS;
    char text[96];
    if (writer->canonical) {
        snprintf(text, sizeof text, "{ \"$date\" : { \"$numberLong\" : \"%" PRId64 "\" } }",
                 time_ms);
        put(writer, text);
        return true;
    }
    struct tm parts;
    const time_t seconds = (time_t)(time_ms / SECOND_MS);
    const int ms = (int)(time_ms % SECOND_MS);
    if (time_ms < 0 || time_ms >= after_9999 || !gmtime_r(&seconds, &parts))
        return false;
    strftime(text, sizeof text, "{ \"$date\" : \"%Y-%m-%dT%H:%M:%S", &parts);
    put(writer, text);
    if (ms > 0) {
        snprintf(text, sizeof text, ".%03d", ms);
        put(writer, text);
    }
    put(writer, "Z\" }");
    return true;
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
    case BSON_TYPE_DOUBLE:
        return put_double(writer, bson_iter_double(at));
    case BSON_TYPE_DATE_TIME:
        return put_date(writer, bson_iter_date_time(at));
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
