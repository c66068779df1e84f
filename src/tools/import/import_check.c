/*
 * The opened input of an import; the check of each record; and the check of all records before the
 * first write, because layouts reference and subset cannot store every field.
 */
#include "tools/import/import_chunk.h"

#include "bson/key.h"
#include "bson/value.h"
#include "core/array.h"
#include "definition/schema.h"
#include "util/error.h"

#include <spillway/bucket.h>

#include <string.h>

/* ---- an opened input ------------------------------------------------------------------------- */

spill_code_t spill_input_fail(const spill_input_t *input, const spill_input_record_t *record,
                              spill_code_t code, spill_error_t *error)
{
    char place[SPILL_PLACE_SIZE];
    spill_input_place(input, record->line, record->offset, place);
    return spill_fail_prefix(error, code, "%s", place);
}

spill_code_t spill_input_next(spill_input_t *input, spill_input_record_t *record, bool *end,
                              bool *more, spill_error_t *error)
{
    return input->documents ? spill_documents_next(input->documents, record, end, more, error)
                            : spill_records_next(input->records, record, end, more, error);
}

int64_t spill_input_offset(const spill_input_t *input)
{
    return input->documents ? spill_documents_offset(input->documents)
                            : spill_records_offset(input->records);
}

int64_t spill_input_line(const spill_input_t *input)
{
    return input->documents ? 0 : spill_records_line(input->records);
}

void spill_input_place(const spill_input_t *input, int64_t line, int64_t offset,
                       char place[SPILL_PLACE_SIZE])
{
    if (input->documents)
        spill_documents_place(input->documents, offset, place);
    else
        spill_records_place(input->records, line, offset, place);
}

int64_t spill_input_done(const spill_input_t *input)
{
    return input->documents ? spill_documents_done(input->documents)
                            : spill_source_position(input->source);
}

int64_t spill_input_expected(const spill_input_t *input)
{
    return input->documents ? spill_documents_expected(input->documents)
                            : spill_source_size(input->source);
}

static spill_code_t open_documents(const spill_parser_options_t *options, int64_t offset,
                                   spill_input_t *input, spill_error_t *error)
{
    input->decoder.format = SPILL_FORMAT_BSON;
    SPILL_TRY(spill_documents_open(options->documents, options->stop, &input->documents, error));
    if (offset > 0)
        spill_documents_seek(input->documents, offset);
    return SPILL_OK;
}

spill_code_t spill_input_open(const spill_parser_options_t *options, int64_t offset, int64_t line,
                              spill_input_t *input, spill_error_t *error)
{
    bson_init(&input->window);
    spill_split_init(&input->split, &options->elements);
    input->split.lines = options->lines;
    if (options->documents && options->documents->collection)
        return open_documents(options, offset, input, error);
    SPILL_TRY(spill_source_open(options->path, options->codec, &input->source, error));
    spill_source_stop_by(input->source, options->stop);
    SPILL_TRY(spill_records_open(input->source, options->format, &input->records, error));
    const spill_input_record_t *header = spill_records_header(input->records);
    spill_code_t code =
        spill_decoder_init(&input->decoder, options->format, options->strings, header, error);
    if (code != SPILL_OK)
        return spill_input_fail(input, header, code, error);
    return offset > 0 ? spill_records_seek(input->records, offset, line, error) : SPILL_OK;
}

void spill_input_close(spill_input_t *input)
{
    spill_decoder_release(&input->decoder);
    spill_records_close(input->records);
    spill_source_close(input->source);
    spill_documents_close(input->documents);
    spill_buffer_release(&input->id);
    bson_destroy(&input->window);
    spill_split_release(&input->split);
}

/* ---- one record ------------------------------------------------------------------------------ */

/* The operation id of a record is the key of its id field; keys of 1 and "1" differ. */
static spill_code_t read_id(spill_input_t *input, const char *field, const spill_value_t *element,
                            spill_error_t *error)
{
    bson_t document;
    spill_value_t id;
    spill_buffer_clear(&input->id);
    if (element->type != BSON_TYPE_DOCUMENT ||
        !bson_init_static(&document, element->data, element->size_bytes))
        return spill_fail(error, SPILL_PARSE, "an element that is no document has no field '%s'",
                          field);
    SPILL_TRY(spill_decode_field(&document, field, &id, error));
    SPILL_TRY(spill_owner_key(&id, &input->id, error));
    if (input->id.size > SPILL_OP_ID_MAX)
        return spill_fail(error, SPILL_PARSE,
                          "the id in '%s' is too long: as an operation id it has %zu bytes, at "
                          "most %d are possible",
                          field, input->id.size, SPILL_OP_ID_MAX);
    return SPILL_OK;
}

/* Layout bucket: the owner is the element's window. An export names one, too. */
static spill_code_t name_window(spill_input_t *input, const spill_parser_options_t *options,
                                spill_input_item_t *item, spill_error_t *error)
{
    char window[SPILL_WINDOW_SIZE];
    const char *named = item->window;
    if (!spill_schema_of(options->definition)->has_windows)
        return SPILL_OK;
    SPILL_TRY(spill_owner_check(&item->owner, error));
    SPILL_TRY(spill_bucket_window_of(options->definition, &item->element, window, error));
    if (named && !options->new_numbers && strcmp(named, window) != 0)
        return spill_fail(error, SPILL_PARSE,
                          "the element's window is %.40s in '%s', and %.40s in the export: import "
                          "with --new-numbers",
                          window, options->definition->name, named);
    bson_reinit(&input->window);
    item->owner = spill_bucket_name(&input->window, &item->owner, window);
    return SPILL_OK;
}

/* Layouts reference and subset: check the names of the record's fields. */
static spill_code_t check_fields(const spill_parser_options_t *options,
                                 const spill_value_t *element, spill_error_t *error)
{
    if (!spill_schema_of(options->definition)->has_referenced_elements)
        return SPILL_OK;
    return spill_stored_element_check(options->definition, element, options->bounds.without, error);
}

spill_code_t spill_input_check(spill_input_t *input, const spill_parser_options_t *options,
                               spill_input_item_t *item, spill_error_t *error)
{
    if (item->update)
        return spill_array_check_update(options->array, item->update, error);
    SPILL_TRY(name_window(input, options, item, error));
    SPILL_TRY(spill_array_check_rank(options->definition, &item->element, error));
    SPILL_TRY(check_fields(options, &item->element, error));
    if (!spill_export_lines_numbered(input->split.lines, options->definition, options->new_numbers))
        item->seq = -1;
    return options->id ? read_id(input, options->id, &item->element, error) : SPILL_OK;
}

/* Check an item. *storable: the layout can store its element. */
static spill_code_t check_item(spill_input_t *input, const spill_parser_options_t *options,
                               spill_input_item_t *item, bool *storable, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    if (!item->update)
        code = check_fields(options, &item->element, error);
    *storable = code == SPILL_OK;
    if (code == SPILL_OK)
        code = spill_owner_check(&item->owner, error);
    if (code == SPILL_OK)
        code = spill_input_check(input, options, item, error);
    return code;
}

spill_code_t spill_input_check_items(spill_input_t *input, const spill_parser_options_t *options,
                                     const bson_t *document, bool *storable, spill_error_t *error)
{
    spill_input_item_t item;
    bool end = false;
    const spill_value_t whole = spill_value_from_document(document);
    *storable = options->elements.array || !options->elements.owner ||
                check_fields(options, &whole, error) == SPILL_OK;
    if (!*storable)
        return error->code;
    spill_code_t code = spill_split_begin(&input->split, document, error);
    while (code == SPILL_OK && (!end || spill_split_finish(&input->split))) {
        code = spill_split_next(&input->split, &item, &end, error);
        if (code == SPILL_OK && !end)
            code = check_item(input, options, &item, storable, error);
    }
    return code == SPILL_OK ? SPILL_OK : spill_split_fail(&input->split, SPILL_PARSE, error);
}

/* ---- the check before the first write -------------------------------------------------------- */

enum { RECORDS_PER_REPORT = 4096 };

typedef enum verdict { GOOD, BAD, NOT_STORABLE } verdict_t;

/* Judge a record. NOT_STORABLE: `error` names the record and the field. */
static verdict_t judge(spill_input_t *input, const spill_parser_options_t *options,
                       const spill_input_record_t *record, spill_error_t *error)
{
    bson_t document;
    bool storable = true;
    if (spill_decode(&input->decoder, record, &document, error) != SPILL_OK)
        return BAD;
    spill_code_t code = spill_input_check_items(input, options, &document, &storable, error);
    if (!storable)
        spill_input_fail(input, record, SPILL_PARSE, error);
    bson_destroy(&document);
    return !storable ? NOT_STORABLE : code == SPILL_OK ? GOOD : BAD;
}

static bool is_stopped(const spill_parser_options_t *options)
{
    return options->stop && atomic_load_explicit(options->stop, memory_order_relaxed);
}

/*
 * Check all records from here on. Bad records of other kinds count as skipped: the import itself
 * reports them, and ends there if it skips fewer.
 */
static spill_code_t check_records(spill_input_t *input, const spill_parser_options_t *options,
                                  const spill_import_checking_t *checking, spill_error_t *error)
{
    int64_t skipped = 0;
    for (int64_t checked = 1;; checked++) {
        spill_error_t unused;
        spill_input_record_t record;
        bool end = false, more = false;
        spill_code_t code = spill_input_next(input, &record, &end, &more, &unused);
        if (is_stopped(options))
            return spill_fail(error, SPILL_CANCELLED, "the import was interrupted");
        if (end || (code != SPILL_OK && !more))
            return SPILL_OK;
        verdict_t verdict = code == SPILL_OK ? judge(input, options, &record, error) : BAD;
        if (verdict == NOT_STORABLE && skipped >= options->skip_max)
            return SPILL_PARSE;
        skipped += verdict != GOOD;
        if (checked % RECORDS_PER_REPORT == 0)
            checking->report(checking->context, checked, spill_input_done(input),
                             spill_input_expected(input));
    }
}

static spill_code_t check_input(const spill_parser_options_t *options, int64_t offset, int64_t line,
                                const spill_import_checking_t *checking, spill_error_t *error)
{
    spill_error_t unused;
    SPILL_SCOPED(spill_input_close) spill_input_t input = {0};
    spill_code_t code = spill_input_open(options, offset, line, &input, &unused);
    if (code == SPILL_OK)
        code = check_records(&input, options, checking, error);
    else
        code = SPILL_OK; /* the import opens the input again, and reports why that fails */
    if (input.source)
        spill_source_rewind(input.source);
    return code;
}

static bool can_be_read_twice(const spill_parser_options_t *options)
{
    const spill_documents_input_t *documents = options->documents;
    bool records = !documents || !documents->collection;
    return records || (documents->archive && strcmp(documents->path, "-") != 0)
               ? spill_source_repeats(options->path)
               : false;
}

spill_code_t spill_import_check(const spill_parser_options_t *options, int64_t offset, int64_t line,
                                const spill_import_checking_t *checking, spill_error_t *error)
{
    bool needed = spill_schema_of(options->definition)->has_referenced_elements &&
                  options->skip_max < INT64_MAX && can_be_read_twice(options);
    return needed ? check_input(options, offset, line, checking, error) : SPILL_OK;
}
