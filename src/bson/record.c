/* Records as BSON documents and as JSON objects, from the members of their structs. */
#include "bson/record.h"

#include "bson/value.h"
#include "util/redact.h"
#include "util/text.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- the struct's members -------------------------------------------------------------------- */

/* The member of the struct; below, the pointer that it holds, and the integer. */
static const void *field_at(const spill_field_t *field, const void *record)
{
    return (const char *)record + field->offset;
}

static const void *field_pointer(const spill_field_t *field, const void *record)
{
    const void *pointer;
    memcpy(&pointer, field_at(field, record), sizeof pointer);
    return pointer;
}

static int64_t field_integer(const spill_field_t *field, const void *record)
{
    const void *at = field_at(field, record);
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

/* The number of items of a LIST or of TEXTS. */
static size_t field_list_count(const spill_field_t *field, const void *record)
{
    size_t count;
    memcpy(&count, (const char *)record + field->count_offset, sizeof count);
    return count;
}

/* The string of a member CHARS, TEXT, COPY, JSON, or the name of an ENUM. */
static const char *field_text(const spill_field_t *field, const void *record)
{
    if (field->type == SPILL_FIELD_ENUM) {
        const char *name = field->name_of((int)field_integer(field, record));
        return name ? name : "";
    }
    return field->type == SPILL_FIELD_CHARS ? field_at(field, record)
                                            : field_pointer(field, record);
}

/* The value of a member VALUE or POINTER. */
static const spill_value_t *field_value(const spill_field_t *field, const void *record)
{
    return field->type == SPILL_FIELD_POINTER ? field_pointer(field, record)
                                              : field_at(field, record);
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
        text = field_text(field, record);
        return !text || text[0] == '\0' ||
               (field->type == SPILL_FIELD_ENUM && field_integer(field, record) == 0);
    case SPILL_FIELD_INT32:
    case SPILL_FIELD_INT64:
    case SPILL_FIELD_NUMBER:
        return field_integer(field, record) == 0;
    case SPILL_FIELD_BOOL:
        return !*(const bool *)field_at(field, record);
    case SPILL_FIELD_DOUBLE:
        return *(const double *)field_at(field, record) == 0;
    case SPILL_FIELD_DATE:
        return field_integer(field, record) == SPILL_DATE_UNKNOWN;
    case SPILL_FIELD_VALUE:
        return !((const spill_value_t *)field_at(field, record))->data;
    case SPILL_FIELD_POINTER:
        return !field_pointer(field, record);
    case SPILL_FIELD_LIST:
    case SPILL_FIELD_TEXTS:
        return field_list_count(field, record) == 0;
    case SPILL_FIELD_OID:
    case SPILL_FIELD_BYTES:
    case SPILL_FIELD_RECORD:
    case SPILL_FIELD_CUSTOM:
    case SPILL_FIELD_FIELDS:
        break;
    }
    return false;
}

static bool is_null(const spill_field_t *field, const void *record)
{
    const spill_value_t *value;
    if ((field->flags & SPILL_FIELD_NULL_UNLESS) && !field->when(record))
        return true;
    if (field->flags & SPILL_FIELD_NULL_NEGATIVE)
        return field->type == SPILL_FIELD_DOUBLE ? *(const double *)field_at(field, record) < 0
                                                 : field_integer(field, record) < 0;
    switch (field->type) {
    case SPILL_FIELD_TEXT:
    case SPILL_FIELD_COPY:
    case SPILL_FIELD_JSON:
        return !field_text(field, record);
    case SPILL_FIELD_DATE:
        return field_integer(field, record) == SPILL_DATE_UNKNOWN;
    case SPILL_FIELD_VALUE:
    case SPILL_FIELD_POINTER:
        value = field_value(field, record);
        return !value || value->type == BSON_TYPE_EOD; /* a minKey has no bytes */
    default:
        return false;
    }
}

static bool is_written(const spill_field_t *field, const void *record)
{
    if (!spill_field_belongs(field, record) ||
        ((field->flags & SPILL_FIELD_OMIT_UNLESS) && !field->when(record)))
        return false;
    bool sparse = (field->flags & SPILL_FIELD_SPARSE) ||
                  ((field->flags & SPILL_FIELD_REQUIRED_WHEN) && !field->when(record));
    return !sparse || !is_empty(field, record);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_texts(const spill_field_t *field, const void *record, bson_t *document)
{
    const char *const *texts = field_pointer(field, record);
    size_t count = field_list_count(field, record);
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
    const char *at = field_pointer(field, record);
    size_t count = field_list_count(field, record);
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
    const void *at = field_at(field, record);
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
        text = field_text(field, record);
        bson_append_utf8(document, name, -1, text, -1);
        break;
    case SPILL_FIELD_INT32:
        bson_append_int32(document, name, -1, (int32_t)field_integer(field, record));
        break;
    case SPILL_FIELD_INT64:
    case SPILL_FIELD_NUMBER:
        bson_append_int64(document, name, -1, field_integer(field, record));
        break;
    case SPILL_FIELD_BOOL:
        bson_append_bool(document, name, -1, *(const bool *)at);
        break;
    case SPILL_FIELD_DOUBLE:
        bson_append_double(document, name, -1, *(const double *)at);
        break;
    case SPILL_FIELD_DATE:
        bson_append_date_time(document, name, -1, field_integer(field, record));
        break;
    case SPILL_FIELD_VALUE:
    case SPILL_FIELD_POINTER:
        spill_value_append(field_value(field, record), document, name);
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
        spill_record_write(field->of, field_pointer(field, record), document);
        break;
    }
}

void spill_record_write(const spill_record_t *type, const void *record, bson_t *document)
{
    for (size_t i = 0; record && i < type->count; i++) {
        const spill_field_t *field = &type->fields[i];
        if (!is_written(field, record))
            continue;
        if (is_null(field, record))
            bson_append_null(document, field->name, -1);
        else
            write_field(field, record, document);
    }
}

/* ---- records as JSON objects ----------------------------------------------------------------- */

typedef struct printer {
    FILE *to;
    const void *root;
    bool canonical;
    int64_t left_out; /* values that JSON cannot express */
} printer_t;

static void print_members(printer_t *printer, const spill_record_t *type, const void *record,
                          bool *first);

static void print_value(printer_t *printer, const spill_value_t *value)
{
    char *json = spill_value_to_json(value, printer->canonical);
    char *visible = json && !spill_text_is_visible(json) ? spill_visible_text(json) : NULL;
    fputs(visible ? visible : json ? json : "null", printer->to);
    printer->left_out += json == NULL;
    bson_free(visible);
    bson_free(json);
}

/* Replace bytes that are not ASCII with '?', unless the text is UTF-8. */
static void repair_text(char *text)
{
    if (bson_utf8_validate(text, strlen(text), false))
        return;
    for (; *text != '\0'; text++)
        if ((unsigned char)*text >= 0x80)
            *text = '?';
}

static void print_text(printer_t *printer, const spill_field_t *field, const char *text)
{
    bson_t storage = BSON_INITIALIZER;
    char *shown = field->flags & SPILL_FIELD_REDACTED ? spill_redact(text) : bson_strdup(text);
    if (field->flags & SPILL_FIELD_REPAIRED)
        repair_text(shown);
    spill_value_t value = spill_value_from_utf8(&storage, shown);
    print_value(printer, &value);
    bson_free(shown);
    bson_destroy(&storage);
}

/* A char[] may be full, without a NUL. */
static void print_chars(printer_t *printer, const spill_field_t *field, const char *chars)
{
    char *text = bson_strndup(chars, strnlen(chars, field->size_bytes));
    print_text(printer, field, text);
    bson_free(text);
}

static void print_double(printer_t *printer, const spill_field_t *field, double number)
{
    if (isfinite(number))
        fprintf(printer->to, "%.*g", field->digits > 0 ? field->digits : 17, number);
    else
        fprintf(printer->to, "{\"$numberDouble\":\"%s\"}",
                isnan(number) ? "NaN"
                : number > 0  ? "Infinity"
                              : "-Infinity");
}

static void print_date(printer_t *printer, int64_t time_ms)
{
    int64_t little = (int64_t)BSON_UINT64_TO_LE((uint64_t)time_ms);
    const spill_value_t value = {(const uint8_t *)&little, sizeof little, BSON_TYPE_DATE_TIME};
    print_value(printer, &value);
}

static void print_record(printer_t *printer, const spill_record_t *type, const void *record)
{
    bool first = true;
    fputc('{', printer->to);
    print_members(printer, type, record, &first);
    fputc('}', printer->to);
}

static void print_list(printer_t *printer, const spill_field_t *field, const void *record)
{
    size_t count = field_list_count(field, record);
    const char *at = field_pointer(field, record);
    fputc('[', printer->to);
    for (size_t i = 0; i < count; i++) {
        fputs(i > 0 ? "," : "", printer->to);
        if (field->type == SPILL_FIELD_TEXTS)
            print_text(printer, field, ((const char *const *)(const void *)at)[i]);
        else
            print_record(printer, field->of, at + i * field->of->size_bytes);
    }
    fputc(']', printer->to);
}

static void print_field(printer_t *printer, const spill_field_t *field, const void *record)
{
    const void *at = field_at(field, record);
    char oid[25];
    switch (field->type) {
    case SPILL_FIELD_CHARS:
        print_chars(printer, field, at);
        break;
    case SPILL_FIELD_TEXT:
    case SPILL_FIELD_COPY:
    case SPILL_FIELD_ENUM:
        print_text(printer, field, field_text(field, record));
        break;
    case SPILL_FIELD_JSON:
        fputs(field_text(field, record), printer->to);
        break;
    case SPILL_FIELD_INT32:
    case SPILL_FIELD_INT64:
    case SPILL_FIELD_NUMBER:
        fprintf(printer->to, "%" PRId64, field_integer(field, record));
        break;
    case SPILL_FIELD_BOOL:
        fputs(*(const bool *)at ? "true" : "false", printer->to);
        break;
    case SPILL_FIELD_DOUBLE:
        print_double(printer, field, *(const double *)at);
        break;
    case SPILL_FIELD_DATE:
        print_date(printer, field_integer(field, record));
        break;
    case SPILL_FIELD_VALUE:
    case SPILL_FIELD_POINTER:
        print_value(printer, field_value(field, record));
        break;
    case SPILL_FIELD_OID:
        bson_oid_to_string(at, oid);
        fprintf(printer->to, "{\"$oid\":\"%s\"}", oid);
        break;
    case SPILL_FIELD_RECORD:
        print_record(printer, field->of, at);
        break;
    case SPILL_FIELD_LIST:
    case SPILL_FIELD_TEXTS:
        print_list(printer, field, record);
        break;
    case SPILL_FIELD_CUSTOM:
        field->print(record, printer->root, printer->to);
        break;
    case SPILL_FIELD_BYTES:
    case SPILL_FIELD_FIELDS: /* see print_members */
        fputs("null", printer->to);
        break;
    }
}

/* A record without its braces. `first`: no member was printed yet. */
static void print_members(printer_t *printer, const spill_record_t *type, const void *record,
                          bool *first)
{
    for (size_t i = 0; record && i < type->count; i++) {
        const spill_field_t *field = &type->fields[i];
        if (!is_written(field, record))
            continue;
        if (field->type == SPILL_FIELD_FIELDS) {
            print_members(printer, field->of, field_pointer(field, record), first);
            continue;
        }
        fprintf(printer->to, "%s\"%s\":", *first ? "" : ",", field->name);
        *first = false;
        if (is_null(field, record))
            fputs("null", printer->to);
        else
            print_field(printer, field, record);
    }
}

int64_t spill_record_print(const spill_record_t *type, const void *record, bool canonical, FILE *to)
{
    printer_t printer = {.to = to, .root = record, .canonical = canonical};
    print_record(&printer, type, record);
    return printer.left_out;
}
