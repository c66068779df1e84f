/*
 * Split the documents of an export into elements: a head and its pages, in the order of the
 * elements' numbers. If the head has the newest elements, a copy of it waits until its pages were
 * read.
 */
#include "tools/import/import_elements.h"

#include "bson/key.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

bool spill_split_is_exported(const spill_split_t *split)
{
    return !split->options->owner &&
           (split->lines == SPILL_EXPORT_DOCUMENTS || split->lines == SPILL_EXPORT_PLAIN);
}

/* Read the other fields of a head; they are its last item. */
static spill_code_t read_head_fields(spill_split_t *split, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t set = BSON_INITIALIZER;
    split->update_due = false;
    if (!split->exported.is_head)
        return SPILL_OK;
    SPILL_TRY(spill_exported_fields(split->options->definition, split->options->stored,
                                    split->options->stored_count, &split->line.document, &set,
                                    error));
    split->update_due = !bson_empty(&set);
    bson_reinit(&split->update_storage);
    BSON_APPEND_DOCUMENT(&split->update_storage, "$set", &set);
    return SPILL_OK;
}

/* Begin with the items of the line's document. */
static spill_code_t open_exported(spill_split_t *split, spill_error_t *error)
{
    const spill_exported_t *exported = &split->exported;
    spill_exported_release(&split->exported);
    spill_split_begin_array(split, NULL);
    SPILL_TRY(spill_exported_read(split->options->definition, split->lines, &split->line,
                                  &split->exported, error));
    SPILL_TRY(read_head_fields(split, error));
    split->owner = exported->owner;
    spill_split_begin_array(split, exported->elements.data ? &exported->elements : NULL);
    return SPILL_OK;
}

static spill_code_t fail_owner(const spill_split_t *split, const char *what, spill_error_t *error)
{
    char *json = spill_value_to_json(&split->owner, false);
    spill_fail(error, SPILL_PARSE, "owner %.100s%s%s: %s", json ? json : "?",
               split->exported.window ? ", window " : "",
               split->exported.window ? split->exported.window : "", what);
    bson_free(json);
    return SPILL_PARSE;
}

/* Begin with the documents of another owner. The head that has the newest elements waits. */
spill_code_t spill_split_begin_exported(spill_split_t *split, spill_error_t *error)
{
    split->finished = false;
    bson_destroy(split->held);
    split->held = NULL;
    if (!split->options->definition)
        return spill_fail(error, SPILL_PARSE, "an export's documents need a definition");
    SPILL_TRY(open_exported(split, error));
    if (!split->exported.is_head)
        return fail_owner(split,
                          "this page follows neither its head nor another page of it, so "
                          "trimmed elements would come back",
                          error);
    spill_buffer_clear(&split->owner_key);
    SPILL_TRY(spill_owner_key(&split->owner, &split->owner_key, error));
    split->watermark = split->exported.watermark;
    split->pages = split->exported.pages;
    split->first = split->exported.first;
    split->is_newest = split->exported.is_newest;
    split->next_page = 0;
    split->lacks = false;
    bson_strncpy(split->window, split->exported.window ? split->exported.window : "",
                 sizeof split->window);
    if (!split->exported.is_newest)
        return SPILL_OK;
    split->held = bson_copy(split->document);
    split->update_due = false;
    spill_split_begin_array(split, NULL);
    split->exported.element = (spill_value_t){0};
    return SPILL_OK;
}

spill_code_t spill_split_join(spill_split_t *split, const bson_t *document, bool *joins,
                              spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t key = SPILL_BUFFER_INIT;
    spill_export_lines_t lines = split->lines;
    spill_export_line_t line;
    spill_exported_t exported;
    *joins = false;
    SPILL_TRY(spill_export_line_read(document, &lines, &line, error));
    spill_code_t code =
        spill_exported_read(split->options->definition, lines, &line, &exported, error);
    if (code == SPILL_OK)
        code = spill_owner_key(&exported.owner, &key, error);
    *joins = code == SPILL_OK && !exported.is_head && spill_buffer_equal(&key, &split->owner_key) &&
             strcmp(exported.window ? exported.window : "", split->window) == 0;
    spill_exported_release(&exported);
    bson_destroy(&exported.memory);
    SPILL_TRY(code);
    if (!*joins)
        return SPILL_OK;
    split->line = line;
    split->document = document;
    return open_exported(split, error);
}

void spill_split_leave_out(spill_split_t *split)
{
    split->lacks = true;
}

/* Pages below the watermark may be absent: they were trimmed. */
spill_code_t spill_split_check_gap(spill_split_t *split, spill_error_t *error)
{
    const spill_exported_t *exported = &split->exported;
    char what[160];
    int64_t expected = split->next_page;
    if (exported->page < 0)
        return SPILL_OK;
    split->next_page = exported->page + 1;
    if (split->lacks || exported->page == expected || exported->first <= split->watermark)
        return SPILL_OK;
    split->lacks = true;
    snprintf(what, sizeof what,
             "page %" PRId64 " should be here, and this is page %" PRId64
             ": import all lines of the export, in their order",
             expected, exported->page);
    return fail_owner(split, what, error);
}

spill_code_t spill_split_check_end(spill_split_t *split, spill_error_t *error)
{
    char what[192];
    bool all_trimmed = split->is_newest && split->first <= split->watermark;
    if (split->lacks || split->next_page >= split->pages || all_trimmed)
        return SPILL_OK;
    split->lacks = true;
    snprintf(what, sizeof what,
             "the head counts %" PRId64 " pages, and page %" PRId64
             " and later ones do not follow: import all lines of the export, in their order",
             split->pages, split->next_page);
    return fail_owner(split, what, error);
}

bool spill_split_finish(spill_split_t *split)
{
    spill_error_t unused;
    if (!split->held || split->finished)
        return false;
    split->finished = true;
    split->document = split->held;
    /* It was read before, without an error. */
    return spill_export_line_read(split->held, &split->lines, &split->line, &unused) == SPILL_OK &&
           open_exported(split, &unused) == SPILL_OK;
}

/* The next element of a head or page that was not trimmed. */
static bool next_element(spill_split_t *split, spill_input_item_t *item)
{
    spill_exported_t *exported = &split->exported;
    const char *name;
    do {
        if (exported->element.data) {
            item->element = exported->element;
            exported->element = (spill_value_t){0};
        } else if (!spill_split_next_field(split, &name, &item->element)) {
            return false;
        }
        item->seq = spill_exported_number(exported);
    } while (item->seq >= 0 && item->seq < split->watermark);
    return true;
}

/* Then the head's other fields. */
bool spill_split_next_exported(spill_split_t *split, spill_input_item_t *item)
{
    item->owner = split->owner;
    item->window = split->exported.window;
    if (!next_element(split, item)) {
        if (!split->update_due)
            return false;
        split->update_due = false;
        *item = (spill_input_item_t){
            .owner = split->owner, .seq = -1, .update = &split->update_storage};
    }
    split->items++;
    return true;
}
