/*
 * A definition as a document:
 *
 *   {name, collection, ... (every name), layout, keep, order, window (layout bucket), opWindow,
 *    keepElements, keepSeconds, topCount,
 *    bounds: {threshold, pageCapacity, headBytesMax, pageBytesMax}, largest: {the same}}
 *
 * Names that may be empty are left out if they are, except those of pages in layouts that have
 * pages. `order`, keepElements, keepSeconds and topCount are left out if they are 0. Bounds of
 * pages are left out if the layout has no pages.
 */
#include "bson/record.h"
#include "definition/fields.h"
#include "definition/schema.h"
#include "util/error.h"

#include <string.h>

static bool has_pages(const void *definition)
{
    return spill_schema_of(definition)->has_pages;
}

static bool has_no_pages(const void *definition)
{
    return !has_pages(definition);
}

static bool has_windows(const void *definition)
{
    return spill_schema_of(definition)->has_windows;
}

static const char *layout_name(int layout)
{
    return spill_layout_name((spill_layout_t)layout);
}

static const char *keep_name(int keep)
{
    return spill_keep_name((spill_keep_t)keep);
}

static const char *order_name(int order)
{
    return spill_array_order_name((spill_array_order_t)order);
}

static const char *window_name(int window)
{
    return spill_window_name((spill_window_t)window);
}

#define BOUND(member, name) SPILL_FIELD(INT64, spill_bounds_t, member, name)

static const spill_field_t bound_fields[] = {
    BOUND(threshold, "threshold"), BOUND(page_capacity, "pageCapacity"),
    BOUND(head_bytes_max, "headBytesMax"), BOUND(page_bytes_max, "pageBytesMax")};
static const spill_field_t head_bound_fields[] = {BOUND(threshold, "threshold"),
                                                  BOUND(head_bytes_max, "headBytesMax")};

static const spill_record_t bounds = SPILL_RECORD("bounds", spill_bounds_t, bound_fields);
static const spill_record_t head_bounds = SPILL_RECORD("bounds", spill_bounds_t, head_bound_fields);

#define NAME(label, member, role, required) SPILL_FIELD(CHARS, spill_definition_t, member, label),
#define PAGES(label, member, role, required)                                                       \
    SPILL_FIELD(CHARS, spill_definition_t, member, label, .when = has_pages,                       \
                .flags = SPILL_FIELD_REQUIRED_WHEN),
#define ADDED(label, member, role)                                                                 \
    SPILL_FIELD(CHARS, spill_definition_t, member, label, .flags = SPILL_FIELD_SPARSE),
#define ENUM(member, label, ...) SPILL_FIELD(ENUM, spill_definition_t, member, label, __VA_ARGS__)
#define RETAINED(member, label, range)                                                             \
    SPILL_FIELD(INT64, spill_definition_t, member, label, .flags = SPILL_FIELD_SPARSE,             \
                .least = -(range), .most = (range))
#define BOUNDS(member, label, of_, when_)                                                          \
    SPILL_FIELD(RECORD, spill_definition_t, member, label, .of = &(of_), .when = (when_))

static const spill_field_t fields[] = {
    SPILL_DEFINITION_NAMES(NAME, PAGES, ADDED)
        ENUM(layout, "layout", .name_of = layout_name, .values = SPILL_LAYOUTS_MAX),
    ENUM(keep, "keep", .name_of = keep_name, .values = SPILL_KEEP_NEWEST + 1),
    ENUM(order, "order", .name_of = order_name, .values = SPILL_ARRAY_NEWEST_FIRST + 1,
         .flags = SPILL_FIELD_SPARSE),
    ENUM(window, "window", .name_of = window_name, .values = SPILL_WINDOW_FIELD + 1,
         .when = has_windows),
    SPILL_FIELD(INT32, spill_definition_t, op_window, "opWindow"),
    RETAINED(keep_elements, "keepElements", SPILL_KEEP_ELEMENTS_MAX),
    RETAINED(keep_seconds, "keepSeconds", SPILL_KEEP_SECONDS_MAX),
    RETAINED(top_count, "topCount", SPILL_TOP_MAX),
    BOUNDS(bounds, "bounds", bounds, has_pages),
    BOUNDS(bounds, "bounds", head_bounds, has_no_pages),
    BOUNDS(largest, "largest", bounds, has_pages),
    BOUNDS(largest, "largest", head_bounds, has_no_pages),
};

static const spill_record_t record = {.name = "definition",
                                      .fields = fields,
                                      .count = sizeof fields / sizeof fields[0],
                                      .size_bytes = sizeof(spill_definition_t),
                                      .closed = true};

void spill_definition_to_bson(const spill_definition_t *definition, bson_t *document)
{
    if (document == NULL)
        return;
    bson_init(document);
    if (definition != NULL)
        spill_record_write(&record, definition, document);
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
    return fits ? SPILL_OK
                : spill_fail(error, SPILL_CORRUPT,
                             "definition: field 'largest' has a number out of range");
}

static spill_code_t read_definition(const bson_t *document, spill_definition_t *definition,
                                    spill_error_t *error)
{
    SPILL_TRY(spill_record_read(&record, document, definition, error));
    SPILL_TRY(check_largest(definition, error));
    if (spill_definition_check(definition, error) != SPILL_OK)
        return spill_fail_prefix(error, SPILL_CORRUPT, "definition");
    return SPILL_OK;
}

spill_code_t spill_definition_from_bson(spill_definition_t *definition, const bson_t *document,
                                        spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, definition);
    *definition = (spill_definition_t){0};
    SPILL_CHECK_POINTERS(error, document);
    spill_code_t code = read_definition(document, definition, error);
    if (code != SPILL_OK)
        *definition = (spill_definition_t){0};
    return code;
}
