/* Values from ObjectIds and from libbson's values, and back. */
#include "bson/value.h"

#include <math.h>
#include <string.h>

spill_value_t spill_value_from_oid(const bson_oid_t *oid)
{
    if (oid == NULL)
        return (spill_value_t){0};
    return (spill_value_t){
        .data = oid->bytes, .size_bytes = sizeof oid->bytes, .type = BSON_TYPE_OID};
}

spill_value_t spill_value_from_bson(bson_t *storage, const bson_value_t *value)
{
    if (storage == NULL || value == NULL)
        return (spill_value_t){0};
    uint32_t before = storage->len;
    return bson_append_value(storage, "", 0, value) ? spill_value_appended(storage, before)
                                                    : (spill_value_t){0};
}

/* Have the bytes exactly the size of the type? */
static bool has_size_of_type(const spill_value_t *value)
{
    uint32_t size_bytes;
    return value->data != NULL &&
           spill_value_measure(value->type, value->data, value->size_bytes, &size_bytes) &&
           size_bytes == value->size_bytes;
}

bool spill_value_to_document(const spill_value_t *value, bson_t *document)
{
    return value != NULL && document != NULL && value->data != NULL &&
           (value->type == BSON_TYPE_DOCUMENT || value->type == BSON_TYPE_ARRAY) &&
           bson_init_static(document, value->data, value->size_bytes);
}

bool spill_value_to_oid(const spill_value_t *value, bson_oid_t *oid)
{
    if (value == NULL || oid == NULL || value->type != BSON_TYPE_OID || !has_size_of_type(value))
        return false;
    memcpy(oid->bytes, value->data, sizeof oid->bytes);
    return true;
}

const char *spill_value_to_utf8(const spill_value_t *value, size_t *length_bytes)
{
    if (length_bytes != NULL)
        *length_bytes = 0;
    if (value == NULL || value->type != BSON_TYPE_UTF8 || !has_size_of_type(value))
        return NULL;
    if (length_bytes != NULL)
        *length_bytes = value->size_bytes - 5; /* the length before the text, the NUL behind it */
    return (const char *)value->data + 4;
}

/* The value of a double that is a whole number of 64 bits. */
static bool whole_number(double real, int64_t *number)
{
    if (!(real >= -0x1p63 && real < 0x1p63) || trunc(real) != real)
        return false;
    *number = (int64_t)real;
    return true;
}

/* Make a document of the value alone, and an iterator at it. The caller destroys the document. */
static bool document_of(const spill_value_t *value, bson_t *document, bson_iter_t *iter)
{
    bson_init(document);
    return spill_value_append(value, document, "") && bson_iter_init(iter, document) &&
           bson_iter_next(iter);
}

bool spill_value_to_int64(const spill_value_t *value, int64_t *number)
{
    if (value == NULL || number == NULL ||
        (value->type != BSON_TYPE_INT32 && value->type != BSON_TYPE_INT64 &&
         value->type != BSON_TYPE_DOUBLE))
        return false;
    bson_t document;
    bson_iter_t iter;
    bool good = document_of(value, &document, &iter);
    if (good && value->type == BSON_TYPE_DOUBLE)
        good = whole_number(bson_iter_double(&iter), number);
    else if (good)
        *number = bson_iter_as_int64(&iter);
    bson_destroy(&document);
    return good;
}

bool spill_value_to_bson(const spill_value_t *value, bson_value_t *copy)
{
    if (value == NULL || copy == NULL)
        return false;
    bson_t document;
    bson_iter_t iter;
    bool good = document_of(value, &document, &iter);
    if (good)
        bson_value_copy(bson_iter_value(&iter), copy);
    bson_destroy(&document);
    return good;
}
