#include "tools/import/import_exported.h"

#include "bson/field_path.h"
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "tools/import/import_fields.h"
#include "tools/import/import_names.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

#define NUMBER_MAX (INT64_C(1) << 53) /* as in every store */

void spill_exported_release(spill_exported_t *exported)
{
    bson_destroy(&exported->memory);
    *exported = (spill_exported_t){.next = -1};
    bson_init(&exported->memory);
}

static spill_code_t fail_names(const spill_definition_t *definition, const char *what,
                               const char *name, spill_error_t *error)
{
    return spill_fail(error, SPILL_PARSE,
                      "%s '%s': define '%s' with the layout and the names of the definition that "
                      "was exported, import, and then use `spillway convert' for others",
                      what, name, definition->name);
}

/* ---- fields of a document -------------------------------------------------------------------- */

static bool find_value(const bson_t *document, const char *path, spill_value_t *value)
{
    bson_iter_t iter;
    if (!spill_path_find(document, path, &iter))
        return false;
    *value = spill_value_from_iter(&iter);
    return true;
}

static const char *text_at(const bson_t *document, const char *path)
{
    spill_value_t value;
    uint32_t length;
    bool is_text = find_value(document, path, &value) && value.type == BSON_TYPE_UTF8;
    return is_text ? spill_value_text(&value, &length) : NULL;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool is_integer(const spill_value_t *value)
{
    return value->type == BSON_TYPE_INT32 || value->type == BSON_TYPE_INT64;
}

static int64_t integer_of(const spill_value_t *value)
{
    return value->type == BSON_TYPE_INT32 ? spill_value_int32(value) : spill_value_int64(value);
}

/* Go to the next run of numbers without elements, or behind all numbers. */
static void next_deleted(spill_exported_t *exported)
{
    const char *name;
    spill_value_t first, length;
    exported->deleted_first = exported->deleted_end = INT64_MAX;
    if (!spill_fields_next(&exported->deleted, &name, &first))
        return;
    exported->deleted_first = integer_of(&first);
    exported->deleted_end = exported->deleted_first + 1;
    if (exported->gaps && spill_fields_next(&exported->deleted, &name, &length))
        exported->deleted_end = exported->deleted_first + integer_of(&length);
}

int64_t spill_exported_number(spill_exported_t *exported)
{
    if (exported->next < 0)
        return -1;
    while (exported->deleted_first <= exported->next) {
        if (exported->next < exported->deleted_end)
            exported->next = exported->deleted_end;
        next_deleted(exported);
    }
    return exported->next++;
}

static bool is_count(const spill_value_t *value)
{
    return is_integer(value) && integer_of(value) >= 0 && integer_of(value) <= NUMBER_MAX;
}

/* The bookkeeping has the first number, and the numbers of removed elements. */
static spill_code_t read_numbers(const bson_t *bookkeeping, spill_exported_t *exported,
                                 spill_error_t *error)
{
    spill_value_t first, deleted, number;
    const char *name;
    bool good = find_value(bookkeeping, SPILL_STORED_FIRST, &first) && is_count(&first);
    exported->gaps = find_value(bookkeeping, SPILL_STORED_DELETED_RUNS, &deleted);
    bool any = exported->gaps || find_value(bookkeeping, SPILL_STORED_DELETED, &deleted);
    good = good && (!any || deleted.type == BSON_TYPE_ARRAY);
    if (good && any) {
        exported->deleted = spill_fields_of(deleted.data);
        for (spill_fields_t at = exported->deleted; spill_fields_next(&at, &name, &number);)
            good = good && is_count(&number);
    }
    if (!good)
        return spill_fail(error, SPILL_PARSE, "the document's bookkeeping, 'spill', is malformed");
    if (find_value(bookkeeping, SPILL_STORED_WATERMARK, &first) && is_count(&first))
        exported->watermark = integer_of(&first);
    exported->pages = find_value(bookkeeping, SPILL_STORED_PAGES, &number) && is_count(&number)
                          ? integer_of(&number)
                          : 0;
    find_value(bookkeeping, SPILL_STORED_FIRST, &first);
    exported->first = exported->next = integer_of(&first);
    next_deleted(exported);
    return SPILL_OK;
}

/* ---- heads and pages ------------------------------------------------------------------------- */

/* The path of the bookkeeping: of the array, or of a document that is Spillway's own. */
static const char *bookkeeping_path(const spill_definition_t *definition, bool is_head,
                                    char path[SPILL_BOOKKEEPING_PATH_SIZE])
{
    bool within = is_head && !spill_schema_of(definition)->has_windows;
    return within ? spill_bookkeeping_path(definition->array, "", path) : SPILL_STORED_ROOT;
}

/* Has the document's own field the value that its _id has? */
static bool repeats_id(const bson_t *document, const char *field, const char *path)
{
    spill_value_t value, expected;
    return find_value(document, field, &value) && find_value(document, path, &expected) &&
           spill_value_equal(&value, &expected);
}

/* The owner, and with bookkeeping the number, of a page and of every document with a window. */
static spill_code_t find_place(const spill_definition_t *definition, const bson_t *document,
                               bool numbered, spill_exported_t *exported, spill_error_t *error)
{
    bool windows = spill_schema_of(definition)->has_windows;
    spill_value_t page;
    if (!find_value(document, numbered ? SPILL_STORED_PAGE_OWNER : definition->page_owner,
                    &exported->owner))
        return fail_names(definition, "the document has no owner in",
                          numbered ? SPILL_STORED_PAGE_OWNER : definition->page_owner, error);
    if (windows)
        exported->window =
            text_at(document, numbered ? SPILL_STORED_PAGE_WINDOW : definition->window_field);
    if (windows && !exported->window)
        return fail_names(definition, "the document has no window in",
                          numbered ? SPILL_STORED_PAGE_WINDOW : definition->window_field, error);
    if (!numbered)
        return SPILL_OK;
    const char *number = windows ? SPILL_STORED_PAGE_PART : SPILL_STORED_PAGE_NUMBER;
    if (!find_value(document, number, &page) || !is_count(&page))
        return fail_names(definition, "the document has no number in", number, error);
    if (!exported->is_head)
        exported->page = integer_of(&page) - (windows ? 1 : 0);
    return SPILL_OK;
}

/* A document of an element that was removed has only its _id and its bookkeeping. */
static bool is_removed(const spill_definition_t *definition, const spill_exported_t *exported)
{
    return spill_schema_of(definition)->has_referenced_elements && !exported->is_head &&
           exported->deleted_first == exported->first;
}

/*
 * A page, or a document with a window, has each field that the definition names. If it has not, or
 * with another value than its _id, the names are others: the field may be the element's own.
 */
static spill_code_t check_page(const spill_definition_t *definition, const bson_t *document,
                               const spill_exported_t *exported, spill_error_t *error)
{
    bool windows = spill_schema_of(definition)->has_windows;
    const char *number = definition->page_number, *count = definition->page_count;
    spill_value_t value;
    if (is_removed(definition, exported))
        return SPILL_OK;
    if (!repeats_id(document, definition->page_owner, SPILL_STORED_PAGE_OWNER))
        return fail_names(definition, "the document has no owner in", definition->page_owner,
                          error);
    if (windows && !repeats_id(document, definition->window_field, SPILL_STORED_PAGE_WINDOW))
        return fail_names(definition, "the document has no window in", definition->window_field,
                          error);
    if (number[0] != '\0' && !(find_value(document, number, &value) && is_count(&value)))
        return fail_names(definition, "the document has no number in", number, error);
    if (count[0] != '\0' && !(find_value(document, count, &value) && is_count(&value)))
        return fail_names(definition, "the document has no number of elements", count, error);
    return SPILL_OK;
}

static spill_code_t find_array(const spill_definition_t *definition, const bson_t *document,
                               const char *path, spill_exported_t *exported, spill_error_t *error)
{
    if (find_value(document, path, &exported->elements) &&
        exported->elements.type == BSON_TYPE_ARRAY)
        return SPILL_OK;
    exported->elements = (spill_value_t){0};
    return fail_names(definition, "the document has no array", path, error);
}

/* A referenced element has a document; the head has those that have none yet. */
static spill_code_t find_referenced(const spill_definition_t *definition, const bson_t *document,
                                    const bson_t *bookkeeping, spill_exported_t *exported,
                                    spill_error_t *error)
{
    spill_value_t summary;
    if (!exported->is_head) {
        bool there =
            spill_stored_element_read(definition, document, &exported->memory, &exported->element);
        if (!there)
            exported->element = (spill_value_t){0};
        return SPILL_OK;
    }
    if (!find_value(document, definition->array, &summary) || summary.type != BSON_TYPE_DOCUMENT)
        return fail_names(definition, "the document has no summary", definition->array, error);
    bool any = bookkeeping && bson_has_field(bookkeeping, SPILL_STORED_JOURNAL);
    return any ? find_array(definition, bookkeeping, SPILL_STORED_JOURNAL, exported, error)
               : SPILL_OK;
}

static spill_code_t find_elements(const spill_definition_t *definition, const bson_t *document,
                                  const bson_t *bookkeeping, spill_exported_t *exported,
                                  spill_error_t *error)
{
    const spill_schema_t *schema = spill_schema_of(definition);
    if (schema->has_referenced_elements)
        return find_referenced(definition, document, bookkeeping, exported, error);
    bool as_head = exported->is_head || schema->has_windows;
    return find_array(definition, document, as_head ? definition->array : definition->page_array,
                      exported, error);
}

/* Set what kind of document of the definition this is. Windows have their parts in one collection.
 */
static spill_code_t find_kind(const spill_definition_t *definition, const char *collection,
                              const bson_t *document, spill_exported_t *exported,
                              spill_error_t *error)
{
    spill_value_t part;
    exported->is_head = strcmp(collection, definition->collection) == 0;
    if (!exported->is_head && strcmp(collection, definition->page_collection) != 0)
        return fail_names(definition, "neither heads nor pages are in the collection", collection,
                          error);
    if (spill_schema_of(definition)->has_windows &&
        find_value(document, SPILL_STORED_PAGE_PART, &part))
        exported->is_head = is_count(&part) && integer_of(&part) == 0;
    return SPILL_OK;
}

/* The counts of a head show whether its other fields are other fields of the definition, too. */
static spill_code_t check_counts(const spill_definition_t *definition, const bson_t *document,
                                 const spill_exported_t *exported, spill_error_t *error)
{
    spill_value_t value;
    const char *count = definition->count_field, *pages = definition->pages_field;
    const char *overflow = definition->overflow_field;
    if (count[0] != '\0' && !(find_value(document, count, &value) && is_count(&value)))
        return fail_names(definition, "the document has no number of elements", count, error);
    const bool has_pages = exported->pages > 0;
    if (pages[0] != '\0' && (find_value(document, pages, &value) ? !is_count(&value) : has_pages))
        return fail_names(definition, "the document has no number of pages", pages, error);
    if (overflow[0] != '\0' &&
        (find_value(document, overflow, &value) ? value.type != BSON_TYPE_BOOL : has_pages))
        return fail_names(definition, "the document has no flag", overflow, error);
    return SPILL_OK;
}

spill_code_t spill_exported_read(const spill_definition_t *definition, spill_export_lines_t lines,
                                 const spill_export_line_t *line, spill_exported_t *exported,
                                 spill_error_t *error)
{
    const bool numbered = lines == SPILL_EXPORT_DOCUMENTS;
    const spill_schema_t *schema = spill_schema_of(definition);
    char path[SPILL_BOOKKEEPING_PATH_SIZE];
    bson_t document, bookkeeping;
    bson_iter_t iter;
    *exported = (spill_exported_t){.next = -1, .page = -1, .pages = -1};
    bson_init(&exported->memory);
    bson_init_static(&document, line->document.data, line->document.size_bytes);
    if (line->definition.data)
        SPILL_TRY(spill_import_names_check(definition, &line->definition, !numbered, error));
    SPILL_TRY(find_kind(definition, line->collection, &document, exported, error));
    const char *at = bookkeeping_path(definition, exported->is_head, path);
    if (numbered && (!spill_path_find(&document, at, &iter) || !BSON_ITER_HOLDS_DOCUMENT(&iter) ||
                     !spill_inner_document(&iter, &bookkeeping)))
        return fail_names(definition, "the document has no bookkeeping", at, error);
    const bool is_plain_head = exported->is_head && !schema->has_windows;
    if (!is_plain_head)
        SPILL_TRY(find_place(definition, &document, numbered, exported, error));
    else if (!find_value(&document, "_id", &exported->owner))
        return fail_names(definition, "the document has no owner in", "_id", error);
    if (numbered)
        SPILL_TRY(read_numbers(&bookkeeping, exported, error));
    if (is_plain_head)
        SPILL_TRY(check_counts(definition, &document, exported, error));
    else if (numbered)
        SPILL_TRY(check_page(definition, &document, exported, error));
    /* Only a head that keeps the oldest elements has this count. */
    bool newest =
        numbered ? !bson_has_field(&bookkeeping, SPILL_STORED_TOTAL) : schema->appends_to_head;
    exported->is_newest = is_plain_head && newest;
    return find_elements(definition, &document, numbered ? &bookkeeping : NULL, exported, error);
}

spill_code_t spill_exported_fields(const spill_definition_t *definition,
                                   const spill_definition_t *stored, size_t stored_count,
                                   const spill_value_t *document, bson_t *set, spill_error_t *error)
{
    const char *own[SPILL_OWN_FIELDS_MAX + 1];
    size_t count = spill_own_fields(definition, own);
    own[count++] = SPILL_STORED_ROOT;
    const spill_left_out_t left = {.paths = own,
                                   .count = count,
                                   .stored = stored,
                                   .stored_count = stored_count,
                                   .collection = definition->collection,
                                   .name = definition->name};
    if (spill_schema_of(definition)->has_windows)
        return SPILL_OK;
    return spill_import_other_fields(document, &left, set, error);
}
