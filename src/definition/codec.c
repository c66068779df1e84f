/*
 * A definition as a document:
 *
 *   {name, layout, keep, order, collection, ... (every name), window (layout bucket), opWindow,
 *    bounds: {threshold, pageCapacity, headBytesMax, pageBytesMax}, largest: {the same}}
 *
 * `order` is omitted unless it is newest-first; keepElements, keepSeconds and topCount are omitted
 * if they are 0. Names and bounds of pages are omitted if the layout has no pages.
 */
#include "bson/number.h"
#include "definition/fields.h"
#include "definition/limits.h"
#include "definition/schema.h"
#include "util/argument.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

/* ---- writing --------------------------------------------------------------------------------- */

static void append_bounds(bson_t *document, const char *label, const spill_bounds_t *bounds,
                          bool pages)
{
    bson_t child;
    BSON_APPEND_DOCUMENT_BEGIN(document, label, &child);
    for (size_t i = 0; i < SPILL_BOUND_FIELDS; i++)
        if (pages || !spill_bound_fields[i].pages)
            BSON_APPEND_INT64(&child, spill_bound_fields[i].label,
                              spill_bounds_get(bounds, &spill_bound_fields[i]));
    bson_append_document_end(document, &child);
}

/* `name` is NULL for a number outside the enum, which the check refuses. */
static void append_name(bson_t *document, const char *label, const char *name)
{
    BSON_APPEND_UTF8(document, label, name != NULL ? name : "");
}

void spill_definition_to_bson(const spill_definition_t *definition, bson_t *document)
{
    if (document == NULL)
        return;
    bson_init(document);
    if (definition == NULL)
        return;
    bool pages = spill_schema_of(definition)->has_pages;
    for (size_t i = 0; i < SPILL_NAME_FIELDS; i++) {
        const spill_name_field_t *field = &spill_name_fields[i];
        const char *name = spill_definition_get_name(definition, field);
        if (name[0] != '\0' || (!field->added && (pages || !field->pages)))
            bson_append_utf8(document, field->label, -1, name, (int)strnlen(name, SPILL_NAME_SIZE));
    }
    append_name(document, "layout", spill_layout_name(definition->layout));
    append_name(document, "keep", spill_keep_name(definition->keep));
    if (definition->order != SPILL_ARRAY_OLDEST_FIRST)
        append_name(document, "order", spill_array_order_name(definition->order));
    if (definition->window != SPILL_WINDOW_NONE)
        append_name(document, "window", spill_window_name(definition->window));
    BSON_APPEND_INT32(document, "opWindow", definition->op_window);
    if (definition->keep_elements > 0)
        BSON_APPEND_INT64(document, "keepElements", definition->keep_elements);
    if (definition->keep_seconds > 0)
        BSON_APPEND_INT64(document, "keepSeconds", definition->keep_seconds);
    if (definition->top_count > 0)
        BSON_APPEND_INT64(document, "topCount", definition->top_count);
    append_bounds(document, "bounds", &definition->bounds, pages);
    append_bounds(document, "largest", &definition->largest, pages);
}

/* ---- reading --------------------------------------------------------------------------------- */

static spill_code_t fail_field(const char *label, const char *problem, spill_error_t *error)
{
    return spill_fail(error, SPILL_CORRUPT, "definition: field '%s' %s", label, problem);
}

/* Returns NULL after an error. */
static const char *read_text(const bson_t *document, const char *label, spill_error_t *error)
{
    bson_iter_t iter;
    uint32_t length;
    if (!bson_iter_init_find(&iter, document, label) || !BSON_ITER_HOLDS_UTF8(&iter)) {
        fail_field(label, "is missing or not a string", error);
        return NULL;
    }
    const char *text = bson_iter_utf8(&iter, &length);
    if (strlen(text) != length) {
        fail_field(label, "contains a NUL", error);
        return NULL;
    }
    return text;
}

static spill_code_t read_name(const bson_t *document, const spill_name_field_t *field,
                              spill_definition_t *definition, spill_error_t *error)
{
    bool optional = field->added || (field->pages && !spill_schema_of(definition)->has_pages);
    if (optional && !bson_has_field(document, field->label))
        return SPILL_OK;
    const char *text = read_text(document, field->label, error);
    if (text == NULL)
        return SPILL_CORRUPT;
    if (strlen(text) >= SPILL_NAME_SIZE)
        return fail_field(field->label, "is too long", error);
    memcpy((char *)definition + field->offset, text, strlen(text) + 1);
    return SPILL_OK;
}

static spill_code_t read_layout(const bson_t *document, spill_definition_t *definition,
                                spill_error_t *error)
{
    const char *text = read_text(document, "layout", error);
    if (text == NULL)
        return SPILL_CORRUPT;
    return spill_layout_of_name(text, &definition->layout)
               ? SPILL_OK
               : fail_field("layout", "is not a layout of this version", error);
}

static spill_code_t read_keep(const bson_t *document, spill_definition_t *definition,
                              spill_error_t *error)
{
    const char *text = read_text(document, "keep", error);
    if (text == NULL)
        return SPILL_CORRUPT;
    return spill_keep_of_name(text, &definition->keep)
               ? SPILL_OK
               : fail_field("keep", "is neither 'oldest' nor 'newest'", error);
}

static spill_code_t read_order(const bson_t *document, spill_definition_t *definition,
                               spill_error_t *error)
{
    if (!bson_has_field(document, "order"))
        return SPILL_OK;
    const char *text = read_text(document, "order", error);
    if (text == NULL)
        return SPILL_CORRUPT;
    return spill_array_order_of_name(text, &definition->order)
               ? SPILL_OK
               : fail_field("order", "is neither 'oldest-first' nor 'newest-first'", error);
}

/* Read the window of layout bucket. Call it after the layout was read. */
static spill_code_t read_time_window(const bson_t *document, spill_definition_t *definition,
                                     spill_error_t *error)
{
    if (!spill_schema_of(definition)->has_windows)
        return bson_has_field(document, "window")
                   ? fail_field("window", "belongs to layout 'bucket'", error)
                   : SPILL_OK;
    const char *text = read_text(document, "window", error);
    if (text == NULL)
        return SPILL_CORRUPT;
    return spill_window_of_name(text, &definition->window)
               ? SPILL_OK
               : fail_field("window", "is not a window of this version", error);
}

static spill_code_t read_bounds(const bson_t *document, const char *label, bool pages,
                                spill_bounds_t *bounds, spill_error_t *error)
{
    bson_iter_t iter, child;
    for (size_t i = 0; i < SPILL_BOUND_FIELDS; i++) {
        const spill_bound_field_t *field = &spill_bound_fields[i];
        if (field->pages && !pages)
            continue;
        if (!bson_iter_init_find(&iter, document, label) || !BSON_ITER_HOLDS_DOCUMENT(&iter) ||
            !bson_iter_recurse(&iter, &child) || !bson_iter_find(&child, field->label) ||
            !BSON_ITER_HOLDS_INT(&child))
            return spill_fail(error, SPILL_CORRUPT,
                              "definition: field '%s.%s' is missing or not an integer", label,
                              field->label);
        int64_t value = spill_iter_int64(&child);
        memcpy((char *)bounds + field->offset, &value, sizeof value);
    }
    return SPILL_OK;
}

static spill_code_t read_window(const bson_t *document, spill_definition_t *definition,
                                spill_error_t *error)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, document, "opWindow") || !BSON_ITER_HOLDS_INT32(&iter))
        return fail_field("opWindow", "is missing or not an int32", error);
    definition->op_window = bson_iter_int32(&iter);
    return SPILL_OK;
}

/* *number is 0 if the field is missing. */
static spill_code_t read_optional(const bson_t *document, const char *label, int64_t *number,
                                  spill_error_t *error)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, document, label))
        return SPILL_OK;
    if (!BSON_ITER_HOLDS_INT(&iter))
        return fail_field(label, "is not an integer", error);
    *number = spill_iter_int64(&iter);
    return SPILL_OK;
}

static spill_code_t read_names(const bson_t *document, spill_definition_t *definition,
                               spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; code == SPILL_OK && i < SPILL_NAME_FIELDS; i++)
        code = read_name(document, &spill_name_fields[i], definition, error);
    return code;
}

static bool is_known(const char *label)
{
    static const char *const others[] = {"layout",      "keep",    "order",   "window",
                                         "opWindow",    "bounds",  "largest", "keepElements",
                                         "keepSeconds", "topCount"};
    for (size_t i = 0; i < SPILL_NAME_FIELDS; i++)
        if (strcmp(label, spill_name_fields[i].label) == 0)
            return true;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(label, others[i]) == 0)
            return true;
    return false;
}

/* Refuse unknown fields: a later version's field may change the meaning of the others. */
static spill_code_t refuse_unknown(const bson_t *document, spill_error_t *error)
{
    bson_iter_t iter;
    if (!bson_iter_init(&iter, document))
        return spill_fail(error, SPILL_CORRUPT, "definition: not a document");
    while (bson_iter_next(&iter)) {
        if (!is_known(bson_iter_key(&iter)))
            return spill_fail(error, SPILL_FORMAT,
                              "definition: field '%s' is not known to this version",
                              bson_iter_key(&iter));
    }
    return SPILL_OK;
}

/* Check the ranges of `largest`, so that sums do not overflow; spill_definition_check checks
 * `bounds`. */
static spill_code_t check_largest(const spill_definition_t *definition, spill_error_t *error)
{
    const spill_bounds_t *largest = &definition->largest;
    bool fits =
        largest->threshold >= 0 && largest->threshold <= SPILL_ELEMENTS_MAX &&
        largest->page_capacity >= 0 && largest->page_capacity <= SPILL_ELEMENTS_MAX &&
        largest->head_bytes_max >= 0 && largest->head_bytes_max <= SPILL_DOCUMENT_BYTES_HIGHEST &&
        largest->page_bytes_max >= 0 && largest->page_bytes_max <= SPILL_DOCUMENT_BYTES_HIGHEST;
    return fits ? SPILL_OK : fail_field("largest", "has a number out of range", error);
}

static spill_code_t read_all(const bson_t *document, spill_definition_t *definition,
                             spill_error_t *error)
{
    spill_code_t code = refuse_unknown(document, error);
    if (code == SPILL_OK)
        code = read_layout(document, definition, error);
    if (code == SPILL_OK)
        code = read_names(document, definition, error);
    bool pages = spill_schema_of(definition)->has_pages;
    if (code == SPILL_OK)
        code = read_keep(document, definition, error);
    if (code == SPILL_OK)
        code = read_order(document, definition, error);
    if (code == SPILL_OK)
        code = read_time_window(document, definition, error);
    if (code == SPILL_OK)
        code = read_window(document, definition, error);
    if (code == SPILL_OK)
        code = read_optional(document, "keepElements", &definition->keep_elements, error);
    if (code == SPILL_OK)
        code = read_optional(document, "keepSeconds", &definition->keep_seconds, error);
    if (code == SPILL_OK)
        code = read_optional(document, "topCount", &definition->top_count, error);
    if (code == SPILL_OK)
        code = read_bounds(document, "bounds", pages, &definition->bounds, error);
    if (code == SPILL_OK)
        code = read_bounds(document, "largest", pages, &definition->largest, error);
    if (code == SPILL_OK)
        code = check_largest(definition, error);
    if (code == SPILL_OK && spill_definition_check(definition, error) != SPILL_OK)
        code = spill_fail_prefix(error, SPILL_CORRUPT, "definition");
    return code;
}

spill_code_t spill_definition_from_bson(spill_definition_t *definition, const bson_t *document,
                                        spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, definition);
    *definition = (spill_definition_t){0};
    SPILL_CHECK_POINTERS(error, document);
    spill_code_t code = read_all(document, definition, error);
    if (code != SPILL_OK)
        *definition = (spill_definition_t){0};
    return code;
}
