/* Records as JSON objects. */
#include "bson/record.h"
#include "util/redact.h"
#include "util/text.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

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
    char *visible = json ? spill_visible_text(json) : NULL;
    fputs(visible ? visible : "null", printer->to);
    printer->left_out += visible == NULL;
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
    size_t count = spill_field_list_count(field, record);
    const char *at = spill_field_pointer(field, record);
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
    const void *at = spill_field_at(field, record);
    char oid[25];
    switch (field->type) {
    case SPILL_FIELD_CHARS:
        print_chars(printer, field, at);
        break;
    case SPILL_FIELD_TEXT:
    case SPILL_FIELD_COPY:
    case SPILL_FIELD_ENUM:
        print_text(printer, field, spill_field_text(field, record));
        break;
    case SPILL_FIELD_JSON:
        fputs(spill_field_text(field, record), printer->to);
        break;
    case SPILL_FIELD_INT32:
    case SPILL_FIELD_INT64:
    case SPILL_FIELD_NUMBER:
        fprintf(printer->to, "%" PRId64, spill_field_integer(field, record));
        break;
    case SPILL_FIELD_BOOL:
        fputs(*(const bool *)at ? "true" : "false", printer->to);
        break;
    case SPILL_FIELD_DOUBLE:
        print_double(printer, field, *(const double *)at);
        break;
    case SPILL_FIELD_DATE:
        print_date(printer, spill_field_integer(field, record));
        break;
    case SPILL_FIELD_VALUE:
    case SPILL_FIELD_POINTER:
        print_value(printer, spill_field_value(field, record));
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
        if (!spill_field_is_written(field, record))
            continue;
        if (field->type == SPILL_FIELD_FIELDS) {
            print_members(printer, field->of, spill_field_pointer(field, record), first);
            continue;
        }
        fprintf(printer->to, "%s\"%s\":", *first ? "" : ",", field->name);
        *first = false;
        if (spill_field_is_null(field, record))
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
