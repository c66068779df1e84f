/* Find the first and last byte of each record of an input, and its line. */
#include "tools/import/import_records.h"

#include "util/error.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#define WINDOW_BYTES_MIN (256 * 1024)
#define STEP_BYTES_MAX (4 * 1024 * 1024)

/* data[begin, end) was read and is not yet consumed; `offset` is the place of data[begin]. */
struct spill_records {
    spill_source_t *source;
    spill_format_t format;
    uint8_t *data;
    size_t begin;
    size_t end;
    size_t capacity;
    bool ended; /* the source has no more bytes */
    int64_t offset;
    int64_t line;
    bool array;      /* JSON: the documents are in one array, ... */
    bool comma_due;  /* ... a document of it was read, ... */
    bool array_done; /* ... and its closing bracket was read */
    spill_input_record_t header;
};

static size_t window_size(const spill_records_t *records)
{
    return records->end - records->begin;
}

static const uint8_t *front(const spill_records_t *records)
{
    return records->data + records->begin;
}

static void consume(spill_records_t *records, size_t size)
{
    records->begin += size;
    records->offset += (int64_t)size;
}

/*
 * Read more bytes into the window, which may move. Read at most as many bytes as the window has, so
 * that scanning a growing window again stays cheap, and at most STEP_BYTES_MAX. At the source's end
 * set `ended`.
 */
static spill_code_t fill(spill_records_t *records, spill_error_t *error)
{
    if (records->begin > 0) {
        memmove(records->data, front(records), window_size(records));
        records->end -= records->begin;
        records->begin = 0;
    }
    size_t step = records->end < STEP_BYTES_MAX ? records->end : STEP_BYTES_MAX;
    size_t wanted = records->end + step;
    size_t room = wanted > WINDOW_BYTES_MIN ? wanted : WINDOW_BYTES_MIN;
    if (records->capacity < room) {
        records->capacity = room;
        records->data = bson_realloc(records->data, room);
    }
    do {
        size_t got = 0;
        spill_code_t code = spill_source_read(records->source, records->data + records->end,
                                              room - records->end, &got, error);
        records->end += got;
        SPILL_TRY(code);
        records->ended = got == 0;
    } while (!records->ended && records->end < wanted);
    return SPILL_OK;
}

/* Shrink a window that grew for one huge record. */
static void shrink(spill_records_t *records)
{
    if (records->capacity > 4 * WINDOW_BYTES_MIN && window_size(records) < WINDOW_BYTES_MIN / 2) {
        memmove(records->data, front(records), window_size(records));
        records->end -= records->begin;
        records->begin = 0;
        records->capacity = WINDOW_BYTES_MIN;
        records->data = bson_realloc(records->data, records->capacity);
    }
}

void spill_records_place(const spill_records_t *records, int64_t line, int64_t offset,
                         char place[SPILL_PLACE_SIZE])
{
    const char *name = spill_source_name(records->source);
    if (records->format == SPILL_FORMAT_BSON)
        snprintf(place, SPILL_PLACE_SIZE, "%.256s: byte %" PRId64, name, offset);
    else
        snprintf(place, SPILL_PLACE_SIZE, "%.256s:%" PRId64, name, line);
}

static spill_code_t fail_here(const spill_records_t *records, spill_code_t code, const char *what,
                              spill_error_t *error)
{
    char place[SPILL_PLACE_SIZE];
    spill_records_place(records, records->line, records->offset, place);
    return spill_fail(error, code, "%s: %s", place, what);
}

/* ---- text ------------------------------------------------------------------------------------ */

static spill_record_end_t scan_record(const spill_records_t *records, size_t *length)
{
    switch (records->format) {
    case SPILL_FORMAT_CSV:
        return spill_record_end_csv(front(records), window_size(records), length);
    case SPILL_FORMAT_JSON:
        return spill_record_end_document(front(records), window_size(records), length);
    default:
        return spill_record_end_line(front(records), window_size(records), length);
    }
}

static int64_t count_lines(const uint8_t *data, size_t size)
{
    int64_t lines = 0;
    const uint8_t *end = data + size;
    while ((data = memchr(data, '\n', (size_t)(end - data))) != NULL) {
        lines++;
        data++;
    }
    return lines;
}

/* Drop a record that is too long, up to the end of its last line; JSON has no such end. */
static spill_code_t drop_long(spill_records_t *records, bool *more, spill_error_t *error)
{
    spill_error_t late;
    spill_code_t code = fail_here(records, SPILL_TOO_BIG,
                                  "the record's text is longer than 32 MiB, so it cannot be an "
                                  "element, which has at most 16 MiB",
                                  error);
    *more = records->format != SPILL_FORMAT_JSON;
    while (*more) {
        size_t length = 0;
        spill_record_end_t found =
            spill_record_end_line(front(records), window_size(records), &length);
        consume(records, length);
        if (found == SPILL_RECORD_WHOLE || records->ended)
            break;
        *more = fill(records, &late) == SPILL_OK;
    }
    records->line++;
    shrink(records);
    return code;
}

static spill_code_t next_text(spill_records_t *records, spill_input_record_t *record, bool *more,
                              spill_error_t *error)
{
    size_t length = 0;
    spill_record_end_t found = scan_record(records, &length);
    while (found == SPILL_RECORD_MORE && !records->ended) {
        if (window_size(records) > SPILL_RECORD_BYTES_MAX)
            return drop_long(records, more, error);
        SPILL_TRY(fill(records, error));
        found = scan_record(records, &length);
    }
    if (found == SPILL_RECORD_BAD ||
        (found == SPILL_RECORD_MORE && records->format == SPILL_FORMAT_JSON))
        return fail_here(records, SPILL_PARSE,
                         found == SPILL_RECORD_BAD ? "a document should begin here, with {"
                                                   : "the document that begins here does not end",
                         error);
    *record = (spill_input_record_t){front(records), length, records->offset, records->line};
    records->line += count_lines(record->data, length);
    consume(records, length);
    return SPILL_OK;
}

/* ---- JSON other than one document per line --------------------------------------------------- */

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Skip white space; *end is true at the end of the input. */
static spill_code_t skip_space(spill_records_t *records, bool *end, spill_error_t *error)
{
    *end = false;
    for (;;) {
        while (window_size(records) > 0 && is_space(*front(records))) {
            records->line += *front(records) == '\n';
            consume(records, 1);
        }
        if (window_size(records) > 0 || records->ended) {
            *end = window_size(records) == 0;
            return SPILL_OK;
        }
        SPILL_TRY(fill(records, error));
    }
}

/* Between the documents of an array: a comma, or the closing bracket and nothing after it. */
static spill_code_t next_in_array(spill_records_t *records, bool *end, spill_error_t *error)
{
    if (*front(records) == ']' && !records->array_done) {
        records->array_done = true;
        consume(records, 1);
        SPILL_TRY(skip_space(records, end, error));
        if (*end)
            return SPILL_OK;
    }
    if (records->array_done)
        return fail_here(records, SPILL_PARSE, "nothing should follow the array", error);
    if (records->comma_due) {
        if (*front(records) != ',')
            return fail_here(records, SPILL_PARSE, "a comma or ] should stand here", error);
        consume(records, 1);
        SPILL_TRY(skip_space(records, end, error));
        if (*end || *front(records) == ']')
            return fail_here(records, SPILL_PARSE, "a document should follow the comma", error);
        return SPILL_OK;
    }
    records->comma_due = true;
    return SPILL_OK;
}

static spill_code_t before_document(spill_records_t *records, bool *end, spill_error_t *error)
{
    SPILL_TRY(skip_space(records, end, error));
    if (!*end && records->array)
        return next_in_array(records, end, error);
    if (*end && records->array && !records->array_done)
        return fail_here(records, SPILL_PARSE, "the array is cut off: ] is missing", error);
    return SPILL_OK;
}

/* ---- bson ------------------------------------------------------------------------------------ */

static int32_t bson_length(const uint8_t *data)
{
    uint32_t value;
    memcpy(&value, data, sizeof value);
    return (int32_t)BSON_UINT32_FROM_LE(value);
}

static spill_code_t fail_cut_off(const spill_records_t *records, int64_t length,
                                 spill_error_t *error)
{
    char what[128];
    snprintf(what, sizeof what, "the document is cut off: %" PRId64 " bytes expected, %zu found",
             length, window_size(records));
    return fail_here(records, SPILL_PARSE, what, error);
}

static spill_code_t drop_long_bson(spill_records_t *records, int64_t length, bool *more,
                                   spill_error_t *error)
{
    char what[128];
    snprintf(what, sizeof what, "the document has %" PRId64 " bytes, an element at most 16 MiB",
             length);
    spill_code_t code = fail_here(records, SPILL_TOO_BIG, what, error);
    spill_error_t late;
    *more = true;
    while (*more && length > 0) {
        size_t part = window_size(records) < (size_t)length ? window_size(records) : (size_t)length;
        consume(records, part);
        length -= (int64_t)part;
        *more = length == 0 || (!records->ended && fill(records, &late) == SPILL_OK);
    }
    return code;
}

static spill_code_t next_bson(spill_records_t *records, spill_input_record_t *record, bool *more,
                              spill_error_t *error)
{
    size_t wanted = 4;
    int32_t length = 0;
    for (;;) {
        if (window_size(records) >= 4) {
            length = bson_length(front(records));
            if (length < 5)
                return fail_here(records, SPILL_PARSE, "this is not a BSON document", error);
            if (length > SPILL_RECORD_BYTES_MAX)
                return drop_long_bson(records, length, more, error);
            wanted = (size_t)length;
        }
        if (window_size(records) >= wanted)
            break;
        if (records->ended)
            return fail_cut_off(records, length, error);
        SPILL_TRY(fill(records, error));
    }
    *record = (spill_input_record_t){front(records), wanted, records->offset, 0};
    consume(records, wanted);
    return SPILL_OK;
}

/* ---- all formats ----------------------------------------------------------------------------- */

static bool is_blank(const spill_input_record_t *record)
{
    for (size_t i = 0; i < record->size; i++)
        if (!is_space(record->data[i]))
            return false;
    return true;
}

spill_code_t spill_records_next(spill_records_t *records, spill_input_record_t *record, bool *end,
                                bool *more, spill_error_t *error)
{
    *record = (spill_input_record_t){0};
    *end = false;
    *more = false;
    shrink(records);
    do {
        if (window_size(records) == 0 && !records->ended)
            SPILL_TRY(fill(records, error));
        if (records->format == SPILL_FORMAT_JSON)
            SPILL_TRY(before_document(records, end, error));
        if (*end || window_size(records) == 0) {
            *end = true;
            return SPILL_OK;
        }
        SPILL_TRY(records->format == SPILL_FORMAT_BSON ? next_bson(records, record, more, error)
                                                       : next_text(records, record, more, error));
    } while (records->format != SPILL_FORMAT_BSON && is_blank(record));
    return SPILL_OK;
}

static spill_code_t start_json(spill_records_t *records, spill_error_t *error)
{
    bool end = false;
    SPILL_TRY(skip_space(records, &end, error));
    if (!end && *front(records) == '[') {
        records->array = true;
        consume(records, 1);
    }
    return SPILL_OK;
}

static spill_code_t start_csv(spill_records_t *records, spill_error_t *error)
{
    bool end = false;
    bool more = false;
    spill_input_record_t record;
    SPILL_TRY(spill_records_next(records, &record, &end, &more, error));
    if (end)
        return fail_here(records, SPILL_PARSE, "there is no header", error);
    records->header = record;
    uint8_t *copy = bson_malloc(record.size + 1);
    if (record.size > 0)
        memcpy(copy, record.data, record.size);
    records->header.data = copy;
    return SPILL_OK;
}

spill_code_t spill_records_open(spill_source_t *source, spill_format_t format,
                                spill_records_t **records, spill_error_t *error)
{
    spill_records_t *made = bson_malloc0(sizeof *made);
    *records = made;
    made->source = source;
    made->format = format;
    made->capacity = WINDOW_BYTES_MIN;
    made->data = bson_malloc(made->capacity);
    made->line = 1;
    while (window_size(made) < 3 && !made->ended)
        SPILL_TRY(fill(made, error));
    if (format != SPILL_FORMAT_BSON && window_size(made) >= 3 &&
        memcmp(front(made), "\xEF\xBB\xBF", 3) == 0)
        consume(made, 3);
    if (format == SPILL_FORMAT_JSON)
        return start_json(made, error);
    return format == SPILL_FORMAT_CSV ? start_csv(made, error) : SPILL_OK;
}

void spill_records_close(spill_records_t *records)
{
    if (records) {
        bson_free((void *)(uintptr_t)records->header.data);
        bson_free(records->data);
        bson_free(records);
    }
}

const spill_input_record_t *spill_records_header(const spill_records_t *records)
{
    return &records->header;
}

int64_t spill_records_offset(const spill_records_t *records)
{
    return records->offset;
}

int64_t spill_records_line(const spill_records_t *records)
{
    return records->line;
}

spill_code_t spill_records_seek(spill_records_t *records, int64_t offset, int64_t line,
                                spill_error_t *error)
{
    int64_t distance = offset - records->offset;
    if (distance < 0)
        return spill_fail(error, SPILL_REFUSED, "%s: the header has changed",
                          spill_source_name(records->source));
    size_t buffered =
        (int64_t)window_size(records) < distance ? window_size(records) : (size_t)distance;
    consume(records, buffered);
    int64_t passed = 0;
    spill_code_t code =
        spill_source_skip(records->source, distance - (int64_t)buffered, &passed, error);
    records->offset += passed;
    records->line = line;
    records->comma_due = records->array && distance > 0;
    if (code == SPILL_OK && records->offset != offset)
        return spill_fail(error, SPILL_REFUSED, "%s ends before byte %" PRId64,
                          spill_source_name(records->source), offset);
    return code;
}
