/* The writing side of an import: bases, checkpoints and appends, chunk by chunk. */
#include "tools/import/import.h"

#include "core/array.h"
#include "definition/schema.h"
#include "store/store.h"
#include "store/summary.h"
#include "tools/import/import_chunk.h"
#include "tools/import/import_records.h"
#include "util/error.h"
#include "util/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_RECORDS_MAX 16384
#define CHUNK_BYTES_MAX (4 * 1024 * 1024)

typedef struct import {
    spill_store_t *store;
    spill_array_t *array;
    const spill_definition_t *definition;
    const spill_import_options_t *options;
    spill_import_result_t *result;
    char *source; /* the import's name: `as`, or the absolute path; NULL: saves no checkpoint */
    char checkpoint_name[SPILL_IMPORT_CHECKPOINT_NAME_SIZE];
    spill_import_checkpoint_t checkpoint;
    bson_t *stored;                    /* the checkpoint as stored in the catalog */
    bson_t *loaded;                    /* owns the strings of `checkpoint` */
    spill_documents_input_t documents; /* with options->elements: the input */
    char *server_collection;           /* and its name, if it is on a server */
    spill_definition_t *definitions;   /* of the store */
    spill_parser_options_t parsing;
    spill_parser_t *parser;
    spill_import_writer_t writer;
} import_t;

/* ---- formats --------------------------------------------------------------------------------- */

/* Refuse a folder before its name is searched for a format. */
static spill_code_t check_not_folder(const char *path, spill_error_t *error)
{
    bool folder = strcmp(path, "-") != 0 && spill_file_is_folder(path);
    return folder ? spill_fail(error, SPILL_IO, "%s is a folder; import takes a file", path)
                  : SPILL_OK;
}

static spill_code_t find_format(import_t *import, spill_error_t *error)
{
    const spill_import_options_t *options = import->options;
    if (options->format)
        return spill_import_format(options->format, false, &import->parsing.format,
                                   &import->parsing.codec)
                   ? SPILL_OK
                   : spill_fail(error, SPILL_INVALID,
                                "format '%s' is not ndjson, json, csv or bson, with .gz or .zst "
                                "if it is compressed",
                                options->format);
    bool known =
        strcmp(options->path, "-") == 0 ||
        spill_import_format(options->path, true, &import->parsing.format, &import->parsing.codec);
    return known ? SPILL_OK
                 : spill_fail(error, SPILL_INVALID,
                              "the name of %s does not show its format: give ndjson, json, csv or "
                              "bson, with .gz or .zst if it is compressed",
                              options->path);
}

/* The import must not read the collections that it writes: migrate reshapes arrays in place. */
static spill_code_t refuse_own_collection(const import_t *import, spill_error_t *error)
{
    const char *names[] = {import->definition->collection, import->definition->page_collection};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *own = bson_strdup_printf("%s.%s", import->store->uri, names[i]);
        bool same = strcmp(own, import->server_collection) == 0;
        bson_free(own);
        if (same)
            return spill_fail(error, SPILL_REFUSED,
                              "%s is a collection of '%s' itself: import into another collection, "
                              "or use `migrate', which reshapes arrays in their documents",
                              import->server_collection, import->definition->name);
    }
    return SPILL_OK;
}

/* Find an input of documents with arrays. */
static spill_code_t find_documents(import_t *import, spill_error_t *error)
{
    const spill_import_options_t *options = import->options;
    spill_parser_options_t *parsing = &import->parsing;
    spill_documents_input_t *input = &import->documents;
    SPILL_TRY(
        spill_documents_find(options->path, options->format, options->collection, input, error));
    parsing->documents = input;
    parsing->path = input->path;
    parsing->codec = input->codec;
    parsing->format = input->format;
    if (!input->collection || input->archive)
        return SPILL_OK;
    SPILL_TRY(spill_documents_name(input, &import->server_collection, error));
    return refuse_own_collection(import, error);
}

static spill_code_t find_input(import_t *import, spill_error_t *error)
{
    if (import->options->elements)
        return find_documents(import, error);
    if (import->options->collection)
        return spill_fail(error, SPILL_INVALID, "--collection is for imports with --elements");
    SPILL_TRY(check_not_folder(import->parsing.path, error));
    return find_format(import, error);
}

/* ---- the job checkpoint ---------------------------------------------------------------------- */

static spill_code_t find_source(import_t *import, spill_error_t *error)
{
    const spill_import_options_t *options = import->options;
    if (options->as) {
        import->source = bson_strdup(options->as);
    } else if (import->server_collection) {
        import->source = bson_strdup(import->server_collection);
    } else if (strcmp(options->path, "-") != 0) {
        char *path = realpath(import->parsing.path, NULL);
        if (!path)
            return spill_fail_errno(error, errno, "cannot open %s", import->parsing.path);
        import->source = bson_strdup(path);
        free(path);
    }
    return SPILL_OK;
}

/* A checkpoint of an import that appended nothing, as after a mistyped --owner, is ignored. */
static bool checkpoint_binds(const spill_import_checkpoint_t *checkpoint)
{
    return !checkpoint->applied || checkpoint->before + checkpoint->records > 0;
}

static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

static spill_import_given_t given_options(const import_t *import)
{
    const spill_import_options_t *options = import->options;
    return (spill_import_given_t){
        .owner = text_or_empty(options->owner),
        .new_numbers = options->new_numbers,
        .id = text_or_empty(options->id),
        .strings = options->strings,
        .elements = text_or_empty(options->elements),
        .entries_as = text_or_empty(options->entries_as),
        .inner = text_or_empty(options->owner_inner),
        .collection = import->documents.archive ? import->documents.collection : "",
        .fields = options->fields,
    };
}

static spill_code_t check_options(const import_t *import, spill_error_t *error)
{
    const spill_import_checkpoint_t *checkpoint = &import->checkpoint;
    const spill_import_given_t now = given_options(import);
    if (spill_import_given_equal(&checkpoint->given, &now))
        return SPILL_OK;
    bson_string_t *begun = bson_string_new(checkpoint->given.owner[0] == '\0' ? "out --owner" : "");
    spill_import_given_append(&checkpoint->given, false, begun);
    if (checkpoint->finished)
        spill_fail(error, SPILL_REFUSED,
                   "%s was imported with%s, and not with the options given now: to import what is "
                   "new in it, give those; name another import with --as, or import all of it "
                   "again with --again",
                   import->source, begun->str);
    else
        spill_fail(error, SPILL_REFUSED,
                   "the import of %s was begun with%s: continue with these options, name it "
                   "differently with --as, or start over with --again",
                   import->source, begun->str);
    bson_string_free(begun, true);
    return SPILL_REFUSED;
}

/* Check that the options and bounds are those of the import that the checkpoint describes. */
static spill_code_t check_checkpoint(const import_t *import, spill_error_t *error)
{
    const spill_import_checkpoint_t *checkpoint = &import->checkpoint;
    const spill_bounds_t *bounds = &import->definition->bounds;
    SPILL_TRY(check_options(import, error));
    bool same_bounds = checkpoint->bounds.page_capacity == bounds->page_capacity &&
                       checkpoint->bounds.page_bytes_max == bounds->page_bytes_max &&
                       checkpoint->bounds.head_bytes_max == bounds->head_bytes_max &&
                       checkpoint->op_window == import->definition->op_window;
    if (!checkpoint->applied && !same_bounds)
        return spill_fail(error, SPILL_REFUSED,
                          "the bounds of '%s' were changed while the import of %s was interrupted: "
                          "set them back to --page %" PRId64 " --page-bytes %" PRId64
                          " --max-bytes %" PRId64 " --op-window %" PRId64
                          ", finish the import, then change them",
                          import->definition->name, import->source,
                          checkpoint->bounds.page_capacity, checkpoint->bounds.page_bytes_max,
                          checkpoint->bounds.head_bytes_max, checkpoint->op_window);
    return SPILL_OK;
}

static void init_checkpoint(import_t *import)
{
    spill_import_checkpoint_t *checkpoint = &import->checkpoint;
    const spill_import_options_t *options = import->options;
    checkpoint->definition = import->definition->name;
    checkpoint->source = import->source;
    checkpoint->format = options->format ? options->format : "";
    checkpoint->given = given_options(import);
}

/* Load the checkpoint and set the position from which the parser continues. */
static spill_code_t load_checkpoint(import_t *import, spill_error_t *error)
{
    spill_import_checkpoint_t *checkpoint = &import->checkpoint;
    spill_import_checkpoint_name(import->definition->name, import->source, import->checkpoint_name);
    SPILL_TRY(spill_import_checkpoint_load(import->store, import->checkpoint_name, &import->stored,
                                           checkpoint, error));
    import->loaded = import->stored ? bson_copy(import->stored) : NULL;
    if (import->stored && !import->options->again && checkpoint_binds(checkpoint)) {
        import->parsing.number = checkpoint->chunk;
        import->parsing.offset = checkpoint->offset;
        import->parsing.line = checkpoint->line;
        import->parsing.items = checkpoint->items;
        import->parsing.end_offset = checkpoint->end_offset;
        import->parsing.end_items = checkpoint->end_items;
        import->parsing.lines = (spill_export_lines_t)checkpoint->lines;
        import->result->before = checkpoint->before;
        SPILL_TRY(check_checkpoint(import, error));
    } else {
        int64_t run = checkpoint->run + 1;
        spill_import_checkpoint_release(checkpoint);
        *checkpoint = (spill_import_checkpoint_t){.run = run, .applied = true};
    }
    init_checkpoint(import);
    return SPILL_OK;
}

static spill_code_t save_checkpoint(import_t *import, spill_error_t *error)
{
    if (!import->source)
        return SPILL_OK;
    return spill_import_checkpoint_save(import->store, import->checkpoint_name, &import->checkpoint,
                                        &import->stored, error);
}

static spill_code_t save_applied(import_t *import, bool finished, spill_error_t *error)
{
    import->checkpoint.applied = true;
    import->checkpoint.finished = finished;
    import->checkpoint.base_count = 0;
    return save_checkpoint(import, error);
}

/* The first chunk of a resumed import must be the one that the checkpoint describes. */
static spill_code_t check_chunk(const import_t *import, const spill_chunk_t *chunk,
                                spill_error_t *error)
{
    const spill_import_checkpoint_t *checkpoint = &import->checkpoint;
    bool same = chunk->end_offset == checkpoint->end_offset &&
                chunk->end_items == checkpoint->end_items && chunk->hash == checkpoint->hash &&
                (int64_t)chunk->record_count == checkpoint->records &&
                (checkpoint->applied || chunk->owner_count == checkpoint->base_count);
    if (same)
        return SPILL_OK;
    if (chunk->code != SPILL_OK && chunk->end_offset < checkpoint->end_offset) {
        *error = chunk->error;
        return chunk->code;
    }
    return spill_fail(error, SPILL_REFUSED,
                      "%s is not what was imported under this name before: bytes %" PRId64
                      " to %" PRId64 " differ; name the new input differently with --as, or "
                      "import it from the start with --again",
                      import->source, checkpoint->offset, checkpoint->end_offset);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* Save the checkpoint of a chunk that is about to be applied. */
static spill_code_t checkpoint_chunk(import_t *import, const spill_chunk_t *chunk,
                                     spill_error_t *error)
{
    spill_import_checkpoint_t *checkpoint = &import->checkpoint;
    checkpoint->before = import->result->before + import->result->records;
    checkpoint->chunk = chunk->number;
    checkpoint->offset = chunk->offset;
    checkpoint->line = chunk->line;
    checkpoint->end_offset = chunk->end_offset;
    checkpoint->end_line = chunk->end_line;
    checkpoint->items = chunk->items;
    checkpoint->end_items = chunk->end_items;
    checkpoint->hash = chunk->hash;
    checkpoint->records = (int64_t)chunk->record_count;
    checkpoint->lines = chunk->lines;
    checkpoint->bounds = import->definition->bounds;
    checkpoint->op_window = import->definition->op_window;
    checkpoint->applied = false;
    checkpoint->finished = false;
    return save_checkpoint(import, error);
}

static void report_bad(const import_t *import, const spill_chunk_t *chunk)
{
    const char *message = (const char *)chunk->bad.data;
    for (int64_t i = 0; import->options->bad && i < chunk->skipped; i++) {
        import->options->bad(import->options->context, message);
        message += strlen(message) + 1;
    }
    import->result->skipped += chunk->skipped;
}

static void report_progress(const import_t *import)
{
    if (import->options->progress) {
        spill_import_progress_t progress = {
            .records = import->result->records,
            .elements = import->options->elements != NULL,
            .skipped = import->result->skipped,
            .bytes_done = spill_parser_position(import->parser),
            .bytes_total = spill_parser_size(import->parser),
        };
        import->options->progress(import->options->context, &progress);
    }
}

/* Nothing of the chunk was applied, and a resumed import may parse it differently. */
static void withdraw_checkpoint(import_t *import, const spill_chunk_t *chunk)
{
    import->checkpoint.end_offset = chunk->offset;
    import->checkpoint.end_line = chunk->line;
    import->checkpoint.end_items = chunk->items;
    import->checkpoint.records = 0;
    spill_error_t late; /* ignored: the caller reports why the import ends */
    save_applied(import, false, &late);
}

/*
 * An element may be too big only together with the bookkeeping of its document, which only the
 * append finds out. Such an element has a chunk of its own, so the message can name its record.
 */
static spill_code_t report_large(import_t *import, const spill_chunk_t *chunk, spill_code_t code,
                                 spill_error_t *error)
{
    if (code != SPILL_TOO_BIG || chunk->record_count != 1)
        return code;
    char place[SPILL_PLACE_SIZE];
    spill_parser_place(import->parser, chunk->record_line, chunk->record_offset, place);
    spill_value_t owner = spill_chunk_owner_value(chunk, &chunk->owners[0]);
    char *json = import->options->elements ? spill_value_to_json(&owner, false) : NULL;
    spill_fail_prefix(error, code, json ? "%s: owner %.100s" : "%s", place, json);
    bson_free(json);
    if (import->result->skipped >= import->options->skip_max) {
        withdraw_checkpoint(import, chunk);
        return code;
    }
    import->result->skipped++;
    if (import->options->bad)
        import->options->bad(import->options->context, error->message);
    return SPILL_OK;
}

/* `resumed`: the checkpoint has the chunk already, with its bases. */
static spill_code_t apply_chunk(import_t *import, const spill_chunk_t *chunk, bool resumed,
                                spill_error_t *error)
{
    bool numbered = spill_chunk_is_numbered(chunk, &import->parsing);
    if (!resumed && (import->source || import->options->id || numbered)) {
        int64_t *bases =
            bson_realloc(import->checkpoint.bases, (chunk->owner_count + 1) * sizeof(int64_t));
        import->checkpoint.bases = bases;
        import->checkpoint.base_count = chunk->owner_count;
        SPILL_TRY(numbered ? spill_import_read_numbers(&import->writer, chunk, bases, error)
                           : spill_import_read_bases(import->array, chunk, bases, error));
    }
    if (!resumed)
        SPILL_TRY(checkpoint_chunk(import, chunk, error));
    spill_code_t code = (numbered ? spill_import_apply_numbered : spill_import_apply)(
        &import->writer, chunk, import->checkpoint.bases, error);
    if (!numbered && chunk->lines != SPILL_EXPORT_NONE)
        import->result->renumbered += import->writer.records - import->result->records;
    import->result->records = import->writer.records;
    import->result->repeated = import->writer.repeated;
    import->result->dropped = import->writer.dropped;
    import->result->duplicates = import->writer.duplicates;
    import->result->updates = import->writer.updates;
    return report_large(import, chunk, code, error);
}

/* ---- the whole import ------------------------------------------------------------------------ */

static spill_code_t process_chunk(import_t *import, const spill_chunk_t *chunk, bool resumed,
                                  spill_error_t *error)
{
    if (resumed)
        SPILL_TRY(check_chunk(import, chunk, error));
    if (resumed && import->checkpoint.applied) {
        import->result->before += (int64_t)chunk->record_count;
        return SPILL_OK;
    }
    import->result->documents += chunk->split;
    import->result->missing += chunk->missing;
    if (chunk->record_count == 0 && chunk->update_count == 0 && chunk->skipped == 0)
        return SPILL_OK;
    report_bad(import, chunk);
    return apply_chunk(import, chunk, resumed, error);
}

/* The input ended with this chunk, with or without an error; all its good records are applied. */
static spill_code_t end_import(import_t *import, const spill_chunk_t *chunk, bool was_finished,
                               spill_error_t *error)
{
    if (chunk->code == SPILL_OK && was_finished && import->result->records == 0 &&
        import->result->skipped == 0)
        return spill_fail(error, SPILL_REFUSED,
                          "%s was imported into '%s' already (%" PRId64
                          " records) and has nothing new: --again imports all of it again",
                          import->source, import->definition->name, import->result->before);
    SPILL_TRY(save_applied(import, chunk->code == SPILL_OK, error));
    if (chunk->code != SPILL_OK)
        *error = chunk->error;
    return chunk->code;
}

static spill_code_t process_or_stop(import_t *import, const spill_chunk_t *chunk, bool resumed,
                                    bool was_finished, spill_error_t *error)
{
    if (spill_store_stopped(import->store)) { /* an interruption may have cut the chunk short */
        spill_error_t late;                   /* ignored: the next run finds out what was applied */
        if (import->result->records > 0 && !import->checkpoint.applied)
            save_applied(import, false, &late);
        return spill_fail(error, SPILL_CANCELLED, "the import was interrupted");
    }
    SPILL_TRY(process_chunk(import, chunk, resumed, error));
    return chunk->last ? end_import(import, chunk, was_finished, error) : SPILL_OK;
}

static spill_code_t process_chunks(import_t *import, spill_error_t *error)
{
    bool resumed = spill_parser_continues(&import->parsing);
    bool was_finished = import->checkpoint.finished;
    bool last = false;
    while (!last) {
        spill_chunk_t *chunk = spill_parser_next(import->parser);
        spill_code_t code = process_or_stop(import, chunk, resumed, was_finished, error);
        resumed = false;
        last = chunk->last;
        report_progress(import);
        spill_parser_return(import->parser, chunk);
        SPILL_TRY(code);
    }
    return SPILL_OK;
}

/*
 * Bound an owner's batch to half of the operation window. A batch that fills documents up needs up
 * to two parts for each of its parts, and one more. If half of the window has no room for two such
 * parts, do not fill documents up.
 */
static bool choose_parts(import_t *import, spill_chunk_bounds_t *bounds)
{
    int64_t half = import->definition->op_window / 2;
    bool fill = !spill_schema_of(import->definition)->appends_to_head && half >= 5;
    bounds->parts_max = fill ? (half - 1) / 2 : half > 0 ? half : 1;
    return fill;
}

/* Half of the head's bytes that remain after a summary's elements and their entries. */
static int64_t half_of_head(const spill_definition_t *definition)
{
    int64_t noted = definition->top_count * SPILL_TOP_ENTRY_BYTES_MAX;
    return (definition->bounds.head_bytes_max - spill_top_room(definition)) / 2 - noted;
}

static spill_code_t prepare_import(import_t *import, spill_error_t *error)
{
    spill_parser_options_t *parsing = &import->parsing;
    const spill_bounds_t *bounds = &import->definition->bounds;
    int64_t half_head = half_of_head(import->definition);
    parsing->path = import->options->path;
    parsing->elements = (spill_elements_options_t){.definition = import->definition,
                                                   .array = import->options->elements,
                                                   .owner = import->options->owner,
                                                   .entries_as = import->options->entries_as,
                                                   .inner = import->options->owner_inner,
                                                   .fields = import->options->fields,
                                                   .backwards = import->definition->order ==
                                                                SPILL_ARRAY_NEWEST_FIRST};
    SPILL_TRY(spill_store_definitions(import->store, &import->definitions,
                                      &parsing->elements.stored_count, error));
    parsing->elements.stored = import->definitions;
    parsing->array = import->array;
    parsing->definition = import->definition;
    parsing->id = import->options->id;
    parsing->strings = import->options->strings;
    parsing->new_numbers = import->options->new_numbers;
    parsing->skip_max = import->options->skip_max;
    parsing->stop = import->store->stop;
    parsing->bounds = (spill_chunk_bounds_t){
        .records_max = CHUNK_RECORDS_MAX,
        .bytes_max = CHUNK_BYTES_MAX,
        .page_capacity = bounds->page_capacity,
        .part_bytes_max = bounds->page_bytes_max < half_head ? bounds->page_bytes_max : half_head,
        .op_window = import->definition->op_window,
    };
    /* A referenced element's document stores the owner in a field of this name. */
    if (spill_schema_of(import->definition)->has_referenced_elements &&
        !import->options->elements && import->options->owner &&
        strcmp(import->options->owner, import->definition->page_owner) == 0)
        parsing->bounds.without = import->options->owner;
    bool fill = choose_parts(import, &parsing->bounds);
    SPILL_TRY(spill_elements_check(&parsing->elements, error));
    SPILL_TRY(find_input(import, error));
    SPILL_TRY(find_source(import, error));
    if (import->source)
        SPILL_TRY(load_checkpoint(import, error));
    /* Other programs may make a window of operations while a base that was read ahead waits. */
    bool ahead = import->options->owner && (import->source || parsing->id) &&
                 !import->store->ops->others_write;
    parsing->bases_of = ahead ? import->array : NULL;
    import->writer = (spill_import_writer_t){
        .array = import->array,
        .input = import->server_collection ? import->server_collection : parsing->path,
        .op_window = import->definition->op_window,
        .with_ids = import->options->id != NULL,
        .fill = fill};
    if (import->source) {
        char id[SPILL_IMPORT_ID_SIZE];
        spill_import_id(import->checkpoint_name, id);
        snprintf(import->writer.prefix, sizeof import->writer.prefix, "%s.%" PRId64, id,
                 import->checkpoint.run);
    }
    return SPILL_OK;
}

static void report_checked(void *context, int64_t checked, int64_t bytes_done, int64_t bytes_total)
{
    const import_t *import = context;
    const spill_import_progress_t progress = {.checks = true,
                                              .records = checked,
                                              .elements = import->options->elements != NULL,
                                              .bytes_done = bytes_done,
                                              .bytes_total = bytes_total};
    if (import->options->progress)
        import->options->progress(import->options->context, &progress);
}

/* Check what no earlier run has begun to import, and start the parser. */
static spill_code_t start_import(import_t *import, spill_error_t *error)
{
    const spill_import_checking_t checking = {.report = report_checked, .context = import};
    const spill_import_checkpoint_t *begun = &import->checkpoint;
    spill_code_t code =
        spill_import_check(&import->parsing, begun->end_offset, begun->end_line, &checking, error);
    if (code == SPILL_OK)
        return spill_parser_start(&import->parsing, &import->parser, error);
    import->result->at_least = !begun->applied;
    import->result->before += begun->applied ? begun->records : 0;
    return code;
}

spill_code_t spill_import(spill_store_t *store, spill_array_t *array,
                          const spill_import_options_t *options, spill_import_result_t *result,
                          spill_error_t *error)
{
    *result = (spill_import_result_t){0};
    import_t import = {
        .store = store,
        .array = array,
        .definition = spill_array_get_definition(array),
        .options = options,
        .result = result,
    };
    bool retains = array->retains, any_text = array->keeps_any_text;
    array->keeps_any_text = true; /* the parsers have checked it */
    if (!options->owner)
        array->retains = false; /* the rest of an export must be compared with all of it */
    spill_code_t code = prepare_import(&import, error);
    bool prepared = code == SPILL_OK;
    if (code == SPILL_OK)
        code = start_import(&import, error);
    if (code == SPILL_OK)
        code = process_chunks(&import, error);
    result->resumable = prepared && import.stored && checkpoint_binds(&import.checkpoint);
    array->retains = retains;
    array->keeps_any_text = any_text;
    spill_parser_stop(import.parser);
    spill_import_checkpoint_release(&import.checkpoint);
    bson_destroy(import.stored);
    bson_destroy(import.loaded);
    spill_import_writer_release(&import.writer);
    bson_free(import.source);
    bson_free(import.server_collection);
    bson_free(import.definitions);
    spill_documents_input_release(&import.documents);
    return code;
}
