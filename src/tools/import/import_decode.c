/* Decode records to documents, and find the fields with the owner and the operation id. */
#include "tools/import/import_records.h"

#include "bson/value.h"
#include "util/buffer.h"
#include "util/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- CSV: fields ----------------------------------------------------------------------------- */

/* RFC 4180: fields stand between commas, in quotes if they contain commas or newlines. */
typedef struct csv_field {
    const char *text; /* ended by NUL */
    size_t size;
    bool quoted;
} csv_field_t;

/* Reads the fields of one record, from `at` to `end`, without its line end. */
typedef struct csv {
    const uint8_t *at;
    const uint8_t *end;
    bool more;     /* another field follows */
    size_t column; /* 1-based, of the field last read */
    spill_buffer_t text;
} csv_t;

static void csv_init(csv_t *csv, const uint8_t *data, size_t size)
{
    while (size > 0 && (data[size - 1] == '\n' || data[size - 1] == '\r'))
        size--;
    *csv = (csv_t){.at = data, .end = data + size, .more = true};
}

static void csv_release(csv_t *csv)
{
    spill_buffer_release(&csv->text);
}

static spill_code_t fail_column(const csv_t *csv, const char *what, spill_error_t *error)
{
    return spill_fail(error, SPILL_PARSE, "column %zu: %s", csv->column, what);
}

/* Read from behind the opening quote to behind the closing quote. */
static spill_code_t read_quoted(csv_t *csv, spill_error_t *error)
{
    for (;;) {
        const uint8_t *quote = memchr(csv->at, '"', (size_t)(csv->end - csv->at));
        if (!quote)
            return fail_column(csv, "the quote is not closed", error);
        spill_buffer_append(&csv->text, csv->at, (size_t)(quote - csv->at));
        csv->at = quote + 1;
        if (csv->at == csv->end || *csv->at != '"')
            return SPILL_OK;
        spill_buffer_append_byte(&csv->text, '"');
        csv->at++;
    }
}

static spill_code_t read_unquoted(csv_t *csv, spill_error_t *error)
{
    const uint8_t *comma = memchr(csv->at, ',', (size_t)(csv->end - csv->at));
    size_t size = (size_t)((comma ? comma : csv->end) - csv->at);
    if (memchr(csv->at, '"', size))
        return fail_column(csv, "a quote within a field that does not begin with one", error);
    spill_buffer_append(&csv->text, csv->at, size);
    csv->at += size;
    return SPILL_OK;
}

/* Read the next field while csv->more; borrowed until the next call. */
static spill_code_t csv_next(csv_t *csv, csv_field_t *field, spill_error_t *error)
{
    csv->column++;
    spill_buffer_clear(&csv->text);
    bool quoted = csv->at < csv->end && *csv->at == '"';
    csv->at += quoted;
    spill_code_t code = quoted ? read_quoted(csv, error) : read_unquoted(csv, error);
    if (code != SPILL_OK)
        return code;
    csv->more = csv->at < csv->end;
    if (csv->more && *csv->at != ',')
        return fail_column(csv, "expected a comma after the closing quote", error);
    csv->at += csv->more;
    size_t size = csv->text.size;
    spill_buffer_append_byte(&csv->text, '\0');
    *field = (csv_field_t){(const char *)csv->text.data, size, quoted};
    return SPILL_OK;
}

/* ---- CSV: records ---------------------------------------------------------------------------- */

static spill_code_t add_name(spill_decoder_t *decoder, const csv_field_t *field,
                             spill_error_t *error)
{
    size_t column = decoder->name_count + 1;
    if (field->size == 0 || strlen(field->text) != field->size ||
        !bson_utf8_validate(field->text, field->size, false))
        return spill_fail(error, SPILL_PARSE, "the header's column %zu has no valid name", column);
    for (size_t i = 0; i < decoder->name_count; i++) {
        if (strcmp(decoder->names[i], field->text) == 0)
            return spill_fail(error, SPILL_PARSE, "the header has two columns named '%s'",
                              field->text);
    }
    decoder->names = bson_realloc(decoder->names, column * sizeof *decoder->names);
    decoder->names[decoder->name_count++] = bson_strdup(field->text);
    return SPILL_OK;
}

spill_code_t spill_decoder_init(spill_decoder_t *decoder, spill_format_t format, bool strings,
                                const spill_input_record_t *header, spill_error_t *error)
{
    *decoder = (spill_decoder_t){.format = format, .strings = strings};
    if (format != SPILL_FORMAT_CSV)
        return SPILL_OK;
    SPILL_SCOPED(csv_release) csv_t csv = {0};
    csv_init(&csv, header->data, header->size);
    while (csv.more) {
        csv_field_t field = {.text = ""};
        SPILL_TRY(csv_next(&csv, &field, error));
        SPILL_TRY(add_name(decoder, &field, error));
    }
    return SPILL_OK;
}

void spill_decoder_release(spill_decoder_t *decoder)
{
    for (size_t i = 0; i < decoder->name_count; i++)
        bson_free(decoder->names[i]);
    bson_free(decoder->names);
    *decoder = (spill_decoder_t){0};
}

/* A decimal integer as JSON writes it, within 64 bits: no plus sign, no zero in front. */
static bool parse_integer(const char *text, int64_t *number)
{
    const char *digits = text + (*text == '-');
    size_t count = strspn(digits, "0123456789");
    if (count == 0 || digits[count] != '\0' || (digits[0] == '0' && (count > 1 || *text == '-')))
        return false;
    errno = 0;
    *number = strtoll(text, NULL, 10);
    return errno == 0;
}

/* A decimal fraction that printing the number reproduces, so nothing is lost; 5.10 is none. */
static bool parse_fraction(const char *text, double *number)
{
    const char *digits = text + (*text == '-');
    size_t whole = strspn(digits, "0123456789");
    if (whole == 0 || (digits[0] == '0' && whole > 1) || digits[whole] != '.')
        return false;
    size_t fraction = strspn(digits + whole + 1, "0123456789");
    if (fraction == 0 || digits[whole + 1 + fraction] != '\0')
        return false;
    char back[64];
    *number = strtod(text, NULL);
    int length = snprintf(back, sizeof back, "%.15g", *number);
    return length > 0 && (size_t)length < sizeof back && strcmp(back, text) == 0;
}

static bool append_csv_value(const spill_decoder_t *decoder, const csv_field_t *field,
                             const char *name, bson_t *document)
{
    int64_t integer = 0;
    double fraction = 0;
    bool literal = decoder->strings || field->quoted || strlen(field->text) != field->size;
    if (!literal && parse_integer(field->text, &integer))
        return integer >= INT32_MIN && integer <= INT32_MAX
                   ? bson_append_int32(document, name, -1, (int32_t)integer)
                   : bson_append_int64(document, name, -1, integer);
    if (!literal && parse_fraction(field->text, &fraction))
        return bson_append_double(document, name, -1, fraction);
    return bson_append_utf8(document, name, -1, field->text, (int)field->size);
}

/* Append a record's columns to the document. */
static spill_code_t append_columns(const spill_decoder_t *decoder,
                                   const spill_input_record_t *record, bson_t *document,
                                   spill_error_t *error)
{
    SPILL_SCOPED(csv_release) csv_t csv = {0};
    csv_init(&csv, record->data, record->size);
    size_t count = 0;
    while (csv.more) {
        csv_field_t field = {.text = ""};
        SPILL_TRY(csv_next(&csv, &field, error));
        if (!bson_utf8_validate(field.text, field.size, true))
            return spill_fail(error, SPILL_PARSE, "column %zu is not UTF-8", csv.column);
        if (count < decoder->name_count)
            append_csv_value(decoder, &field, decoder->names[count], document);
        count++;
    }
    if (count != decoder->name_count)
        return spill_fail(error, SPILL_PARSE, "%zu fields, but the header has %zu", count,
                          decoder->name_count);
    return SPILL_OK;
}

static spill_code_t decode_csv(const spill_decoder_t *decoder, const spill_input_record_t *record,
                               bson_t *document, spill_error_t *error)
{
    bson_init(document);
    spill_code_t code = append_columns(decoder, record, document, error);
    if (code != SPILL_OK)
        bson_destroy(document);
    return code;
}

/* ---- JSON and BSON --------------------------------------------------------------------------- */

static spill_code_t decode_json(const spill_input_record_t *record, bson_t *document,
                                spill_error_t *error)
{
    const char *text = (const char *)record->data;
    spill_json_kind_t kind;
    SPILL_TRY(spill_json_check(text, record->size, &kind, error));
    if (kind == SPILL_JSON_OTHER)
        return spill_fail(error, SPILL_PARSE, "a record must be a document, {...}");
    bson_error_t ignored;
    if (!bson_init_from_json(document, text, (ssize_t)record->size, &ignored))
        return spill_json_refuse(text, record->size, error);
    return SPILL_OK;
}

static bool is_utf8(const uint8_t *text, size_t size)
{
    return bson_utf8_validate((const char *)text, size, true);
}

static size_t string_size(const uint8_t *data)
{
    uint32_t size;
    memcpy(&size, data, sizeof size);
    return BSON_UINT32_FROM_LE(size); /* with its NUL */
}

/*
 * Check that the names and texts of a well-formed document are UTF-8. If not, `name` is the
 * innermost field at fault. (bson_validate with BSON_VALIDATE_UTF8 does not find all of them.)
 */
static bool texts_are_utf8(const uint8_t *document, char *name, size_t name_size)
{
    spill_fields_t fields = spill_fields_of(document);
    const char *key = NULL;
    spill_value_t value;
    while (spill_fields_next(&fields, &key, &value)) {
        const uint8_t *data = value.data;
        const uint8_t *inner = NULL; /* a document in it */
        bool key_good = is_utf8((const uint8_t *)key, strlen(key));
        bool good = key_good;
        switch (value.type) {
        case BSON_TYPE_UTF8:
        case BSON_TYPE_CODE:
        case BSON_TYPE_SYMBOL:
        case BSON_TYPE_DBPOINTER:
            good = good && is_utf8(data + 4, string_size(data) - 1);
            break;
        case BSON_TYPE_REGEX:
            good = good && is_utf8(data, value.size_bytes);
            break;
        case BSON_TYPE_CODEWSCOPE:
            good = good && is_utf8(data + 8, string_size(data + 4) - 1);
            inner = good ? data + 8 + string_size(data + 4) : NULL;
            break;
        case BSON_TYPE_DOCUMENT:
        case BSON_TYPE_ARRAY:
            inner = data;
            break;
        default:
            break;
        }
        if (!good) {
            snprintf(name, name_size, "%.40s", key_good ? key : "?");
            return false;
        }
        if (inner && !texts_are_utf8(inner, name, name_size))
            return false;
    }
    return true;
}

static spill_code_t decode_bson(const spill_input_record_t *record, bson_t *document,
                                spill_error_t *error)
{
    bson_t view;
    size_t offset = 0;
    if (!bson_init_static(&view, record->data, record->size) ||
        !bson_validate(&view, BSON_VALIDATE_NONE, &offset))
        return spill_fail(error, SPILL_PARSE, "malformed BSON, %zu bytes into the document",
                          offset);
    if (!spill_document_valid(&view))
        return spill_fail(error, SPILL_PARSE, "malformed BSON, or nested deeper than %d",
                          SPILL_NESTING_MAX);
    char name[64] = "";
    if (!texts_are_utf8(record->data, name, sizeof name))
        return spill_fail(error, SPILL_PARSE, "the text at '%s' is not UTF-8", name);
    bson_copy_to(&view, document);
    return SPILL_OK;
}

spill_code_t spill_decode(const spill_decoder_t *decoder, const spill_input_record_t *record,
                          bson_t *document, spill_error_t *error)
{
    switch (decoder->format) {
    case SPILL_FORMAT_CSV:
        return decode_csv(decoder, record, document, error);
    case SPILL_FORMAT_BSON:
        return decode_bson(record, document, error);
    default:
        return decode_json(record, document, error);
    }
}

spill_code_t spill_decode_field(const bson_t *document, const char *field, spill_value_t *value,
                                spill_error_t *error)
{
    bson_iter_t iter;
    bson_iter_t found;
    if (bson_iter_init_find(&iter, document, field)) {
        *value = spill_value_from_iter(&iter);
        return SPILL_OK;
    }
    if (strchr(field, '.') && bson_iter_init(&iter, document) &&
        bson_iter_find_descendant(&iter, field, &found)) {
        *value = spill_value_from_iter(&found);
        return SPILL_OK;
    }
    return spill_fail(error, SPILL_PARSE, "the record has no field '%s'", field);
}
