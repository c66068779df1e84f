/* The members of records, and records as BSON documents. */
#include "bson/record.h"
#include "bson/value.h"

#include <string.h>

/* ---- the struct's members -------------------------------------------------------------------- */

const void *spill_field_at(const spill_field_t *field, const void *record)
{
    return (const char *)record + field->offset;
}

const void *spill_field_pointer(const spill_field_t *field, const void *record)
{
    const void *pointer;
    memcpy(&pointer, spill_field_at(field, record), sizeof pointer);
    return pointer;
}

int64_t spill_field_integer(const spill_field_t *field, const void *record)
{
    const void *at = spill_field_at(field, record);
    int32_t narrow = 0;
    int64_t wide = 0;
    if (field->size_bytes == sizeof(bool))
        return *(const bool *)at;
    if (field->size_bytes == sizeof narrow)
        memcpy(&narrow, at, sizeof narrow);
    else
        memcpy(&wide, at, sizeof wide);
    return field->size_bytes == sizeof narrow ? narrow : wide;
}

size_t spill_field_list_count(const spill_field_t *field, const void *record)
{
    size_t count;
    memcpy(&count, (const char *)record + field->count_offset, sizeof count);
    return count;
}

const char *spill_field_text(const spill_field_t *field, const void *record)
{
    if (field->type == SPILL_FIELD_ENUM) {
        const char *name = field->name_of((int)spill_field_integer(field, record));
        return name ? name : "";
    }
    return field->type == SPILL_FIELD_CHARS ? spill_field_at(field, record)
                                            : spill_field_pointer(field, record);
}

/* ---- which fields a record has --------------------------------------------------------------- */

bool spill_field_belongs(const spill_field_t *field, const void *record)
{
    const unsigned others =
        SPILL_FIELD_REQUIRED_WHEN | SPILL_FIELD_OMIT_UNLESS | SPILL_FIELD_NULL_UNLESS;
    return !field->when || (field->flags & others) != 0 || field->when(record);
}

/* 0, false, "", NULL, or an empty list. */
static bool is_empty(const spill_field_t *field, const void *record)
{
    const char *text;
    switch (field->type) {
    case SPILL_FIELD_CHARS:
    case SPILL_FIELD_TEXT:
    case SPILL_FIELD_COPY:
    case SPILL_FIELD_JSON:
    case SPILL_FIELD_ENUM:
        text = spill_field_text(field, record);
        return !text || text[0] == '\0' ||
               (field->type == SPILL_FIELD_ENUM && spill_field_integer(field, record) == 0);
    case SPILL_FIELD_INT32:
    case SPILL_FIELD_INT64:
    case SPILL_FIELD_NUMBER:
        return spill_field_integer(field, record) == 0;
    case SPILL_FIELD_BOOL:
        return !*(const bool *)spill_field_at(field, record);
    case SPILL_FIELD_DOUBLE:
        return *(const double *)spill_field_at(field, record) == 0;
    case SPILL_FIELD_DATE:
        return spill_field_integer(field, record) == SPILL_DATE_UNKNOWN;
    case SPILL_FIELD_VALUE:
        return !((const spill_value_t *)spill_field_at(field, record))->data;
    case SPILL_FIELD_POINTER:
        return !spill_field_pointer(field, record);
    case SPILL_FIELD_LIST:
    case SPILL_FIELD_TEXTS:
        return spill_field_list_count(field, record) == 0;
    case SPILL_FIELD_OID:
    case SPILL_FIELD_BYTES:
    case SPILL_FIELD_RECORD:
    case SPILL_FIELD_CUSTOM:
    case SPILL_FIELD_FIELDS:
        break;
    }
    return false;
}

bool spill_field_is_null(const spill_field_t *field, const void *record)
{
    const spill_value_t *value;
    if ((field->flags & SPILL_FIELD_NULL_UNLESS) && !field->when(record))
        return true;
    if (field->flags & SPILL_FIELD_NULL_NEGATIVE)
        return field->type == SPILL_FIELD_DOUBLE
                   ? *(const double *)spill_field_at(field, record) < 0
                   : spill_field_integer(field, record) < 0;
    switch (field->type) {
    case SPILL_FIELD_TEXT:
    case SPILL_FIELD_COPY:
    case SPILL_FIELD_JSON:
        return !spill_field_text(field, record);
    case SPILL_FIELD_DATE:
        return spill_field_integer(field, record) == SPILL_DATE_UNKNOWN;
    case SPILL_FIELD_VALUE:
    case SPILL_FIELD_POINTER:
        value = spill_field_value(field, record);
        return !value || !value->data;
    default:
        return false;
    }
}

bool spill_field_is_written(const spill_field_t *field, const void *record)
{
    if (!spill_field_belongs(field, record) ||
        ((field->flags & SPILL_FIELD_OMIT_UNLESS) && !field->when(record)))
        return false;
    bool sparse = (field->flags & SPILL_FIELD_SPARSE) ||
                  ((field->flags & SPILL_FIELD_REQUIRED_WHEN) && !field->when(record));
    return !sparse || !is_empty(field, record);
}

const spill_value_t *spill_field_value(const spill_field_t *field, const void *record)
{
    return field->type == SPILL_FIELD_POINTER ? spill_field_pointer(field, record)
                                              : spill_field_at(field, record);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_texts(const spill_field_t *field, const void *record, bson_t *document)
{
    const char *const *texts = spill_field_pointer(field, record);
    size_t count = spill_field_list_count(field, record);
    char buffer[16];
    const char *key;
    bson_t list;
    bson_append_array_begin(document, field->name, -1, &list);
    for (size_t i = 0; i < count; i++) {
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        bson_append_utf8(&list, key, -1, texts[i], -1);
    }
    bson_append_array_end(document, &list);
}

static void write_list(const spill_field_t *field, const void *record, bson_t *document)
{
    const char *at = spill_field_pointer(field, record);
    size_t count = spill_field_list_count(field, record);
    char buffer[16];
    const char *key;
    bson_t list, item;
    bson_append_array_begin(document, field->name, -1, &list);
    for (size_t i = 0; i < count; i++, at += field->of->size_bytes) {
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        bson_append_document_begin(&list, key, -1, &item);
        spill_record_write(field->of, at, &item);
        bson_append_document_end(&list, &item);
    }
    bson_append_array_end(document, &list);
}

static void write_field(const spill_field_t *field, const void *record, bson_t *document)
{
    bson_t inner;
    const void *at = spill_field_at(field, record);
    const char *name = field->name, *text;
    const spill_bytes_t *bytes = at;
    switch (field->type) {
    case SPILL_FIELD_CHARS:
        bson_append_utf8(document, name, -1, at, (int)strnlen(at, field->size_bytes));
        break;
    case SPILL_FIELD_TEXT:
    case SPILL_FIELD_COPY:
    case SPILL_FIELD_JSON:
    case SPILL_FIELD_ENUM:
        text = spill_field_text(field, record);
        bson_append_utf8(document, name, -1, text, -1);
        break;
    case SPILL_FIELD_INT32:
        bson_append_int32(document, name, -1, (int32_t)spill_field_integer(field, record));
        break;
    case SPILL_FIELD_INT64:
    case SPILL_FIELD_NUMBER:
        bson_append_int64(document, name, -1, spill_field_integer(field, record));
        break;
    case SPILL_FIELD_BOOL:
        bson_append_bool(document, name, -1, *(const bool *)at);
        break;
    case SPILL_FIELD_DOUBLE:
        bson_append_double(document, name, -1, *(const double *)at);
        break;
    case SPILL_FIELD_DATE:
        bson_append_date_time(document, name, -1, spill_field_integer(field, record));
        break;
    case SPILL_FIELD_VALUE:
    case SPILL_FIELD_POINTER:
        spill_value_append(spill_field_value(field, record), document, name);
        break;
    case SPILL_FIELD_OID:
        bson_append_oid(document, name, -1, at);
        break;
    case SPILL_FIELD_BYTES:
        bson_append_binary(document, name, -1, BSON_SUBTYPE_BINARY, bytes->data, bytes->size_bytes);
        break;
    case SPILL_FIELD_RECORD:
        bson_append_document_begin(document, name, -1, &inner);
        spill_record_write(field->of, at, &inner);
        bson_append_document_end(document, &inner);
        break;
    case SPILL_FIELD_LIST:
        write_list(field, record, document);
        break;
    case SPILL_FIELD_TEXTS:
        write_texts(field, record, document);
        break;
    case SPILL_FIELD_CUSTOM:
        bson_append_null(document, name, -1);
        break;
    case SPILL_FIELD_FIELDS:
        spill_record_write(field->of, spill_field_pointer(field, record), document);
        break;
    }
}

void spill_record_write(const spill_record_t *type, const void *record, bson_t *document)
{
    for (size_t i = 0; record && i < type->count; i++) {
        const spill_field_t *field = &type->fields[i];
        if (!spill_field_is_written(field, record))
            continue;
        if (spill_field_is_null(field, record))
            bson_append_null(document, field->name, -1);
        else
            write_field(field, record, document);
    }
}
