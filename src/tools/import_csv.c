#include "tools/import_csv.h"

#include "util/error.h"

#include <string.h>

void spill_csv_init(spill_csv_t *csv, const uint8_t *data, size_t size)
{
    while (size > 0 && (data[size - 1] == '\n' || data[size - 1] == '\r'))
        size--;
    *csv = (spill_csv_t){.at = data, .end = data + size, .more = true};
}

void spill_csv_release(spill_csv_t *csv)
{
    spill_buffer_release(&csv->text);
}

static spill_code_t fail_column(const spill_csv_t *csv, const char *what, spill_error_t *error)
{
    return spill_fail(error, SPILL_PARSE, "column %zu: %s", csv->column, what);
}

/* Read from behind the opening quote to behind the closing quote. */
static spill_code_t read_quoted(spill_csv_t *csv, spill_error_t *error)
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

static spill_code_t read_unquoted(spill_csv_t *csv, spill_error_t *error)
{
    const uint8_t *comma = memchr(csv->at, ',', (size_t)(csv->end - csv->at));
    size_t size = (size_t)((comma ? comma : csv->end) - csv->at);
    if (memchr(csv->at, '"', size))
        return fail_column(csv, "a quote within a field that does not begin with one", error);
    spill_buffer_append(&csv->text, csv->at, size);
    csv->at += size;
    return SPILL_OK;
}

spill_code_t spill_csv_next(spill_csv_t *csv, spill_csv_field_t *field, spill_error_t *error)
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
    *field = (spill_csv_field_t){(const char *)csv->text.data, size, quoted};
    return SPILL_OK;
}
