/*
 * The opened input of an import; the check of each record; and the check of all records before the
 * first write, because layouts reference and subset cannot store every field.
 */
#include "tools/import_chunk.h"

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
    spill_records_place(input->records, record->line, record->offset, place);
    return spill_fail_prefix(error, code, "%s", place);
}

spill_code_t spill_input_open(const spill_parser_options_t *options, int64_t offset, int64_t line,
                              spill_input_t *input, spill_error_t *error)
{
    bson_init(&input->window);
    input->lines = options->lines;
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
    spill_buffer_release(&input->id);
    bson_destroy(&input->window);
}

/* ---- one record ------------------------------------------------------------------------------ */

/* The operation id of a record is the key of its id field; keys of 1 and "1" differ. */
static spill_code_t read_id(spill_input_t *input, const char *field, const bson_t *document,
                            spill_error_t *error)
{
    spill_value_t id;
    spill_buffer_clear(&input->id);
    SPILL_TRY(spill_decode_field(document, field, &id, error));
    SPILL_TRY(spill_owner_key(&id, &input->id, error));
    if (input->id.size > SPILL_OP_ID_MAX)
        return spill_fail(error, SPILL_PARSE,
                          "the id in '%s' is too long: as an operation id it has %zu bytes, at "
                          "most %d are possible",
                          field, input->id.size, SPILL_OP_ID_MAX);
    return SPILL_OK;
}

/* Layout bucket: the owner is the element's window. `named`: the one that an export has, or NULL.
 */
static spill_code_t name_window(spill_input_t *input, const spill_parser_options_t *options,
                                const char *named, spill_input_item_t *item, spill_error_t *error)
{
    char window[SPILL_WINDOW_SIZE];
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

/* Layouts reference and subset: check the names of the element's fields. */
static spill_code_t check_fields(const spill_parser_options_t *options,
                                 const spill_value_t *element, spill_error_t *error)
{
    if (!spill_schema_of(options->definition)->has_referenced_elements)
        return SPILL_OK;
    return spill_stored_element_check(options->definition, element, options->bounds.without, error);
}

/* Find the owner and the element in a record, and the number and the window that a line names. */
static spill_code_t find_item(spill_input_t *input, const spill_parser_options_t *options,
                              const bson_t *document, spill_input_item_t *item, const char **window,
                              spill_error_t *error)
{
    *window = NULL;
    if (!options->owner) {
        spill_export_line_t line;
        SPILL_TRY(spill_export_line_read(document, &input->lines, &line, error));
        *item = (spill_input_item_t){line.owner, line.element, line.seq};
        *window = line.window;
        return SPILL_OK;
    }
    *item = (spill_input_item_t){.element = spill_value_from_document(document), .seq = -1};
    return spill_decode_field(document, options->owner, &item->owner, error);
}

spill_code_t spill_input_check(spill_input_t *input, const spill_parser_options_t *options,
                               const bson_t *document, spill_input_item_t *item,
                               spill_error_t *error)
{
    const char *window;
    SPILL_TRY(find_item(input, options, document, item, &window, error));
    SPILL_TRY(name_window(input, options, window, item, error));
    SPILL_TRY(spill_array_check_rank(options->definition, &item->element, error));
    SPILL_TRY(check_fields(options, &item->element, error));
    if (!spill_export_lines_numbered(input->lines, options->definition, options->new_numbers))
        item->seq = -1;
    return options->id ? read_id(input, options->id, document, error) : SPILL_OK;
}

/* ---- the check before the first write -------------------------------------------------------- */

enum { RECORDS_PER_REPORT = 4096 };

typedef enum verdict { GOOD, BAD, NOT_STORABLE } verdict_t;

/* Judge a record. NOT_STORABLE: `error` names the record and the field. */
static verdict_t judge(spill_input_t *input, const spill_parser_options_t *options,
                       const spill_input_record_t *record, spill_error_t *error)
{
    bson_t document;
    const char *window;
    spill_input_item_t item;
    spill_error_t unused;
    verdict_t verdict = GOOD;
    if (spill_decode(&input->decoder, record, &document, &unused) != SPILL_OK)
        return BAD;
    bool found = find_item(input, options, &document, &item, &window, &unused) == SPILL_OK;
    if (!found && !options->owner) { /* no line of an export */
        verdict = BAD;
    } else if (check_fields(options, &item.element, error) != SPILL_OK) {
        spill_input_fail(input, record, SPILL_PARSE, error);
        verdict = NOT_STORABLE;
    } else if (spill_input_check(input, options, &document, &item, &unused) != SPILL_OK) {
        verdict = BAD;
    }
    bson_destroy(&document);
    return verdict;
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
        spill_code_t code = spill_records_next(input->records, &record, &end, &more, &unused);
        if (spill_source_check_stop(input->source))
            return spill_fail(error, SPILL_CANCELLED, "the import was interrupted");
        if (end || (code != SPILL_OK && !more))
            return SPILL_OK;
        verdict_t verdict = code == SPILL_OK ? judge(input, options, &record, error) : BAD;
        if (verdict == NOT_STORABLE && skipped >= options->skip_max)
            return SPILL_PARSE;
        skipped += verdict != GOOD;
        if (checked % RECORDS_PER_REPORT == 0)
            checking->report(checking->context, checked, spill_source_position(input->source),
                             spill_source_size(input->source));
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
    spill_source_rewind(input.source);
    return code;
}

spill_code_t spill_import_check(const spill_parser_options_t *options, int64_t offset, int64_t line,
                                const spill_import_checking_t *checking, spill_error_t *error)
{
    bool needed = spill_schema_of(options->definition)->has_referenced_elements &&
                  options->skip_max < INT64_MAX && spill_source_repeats(options->path);
    return needed ? check_input(options, offset, line, checking, error) : SPILL_OK;
}
