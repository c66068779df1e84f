/*
 * Stored definitions: their documents, which definition may replace another that has data, and
 * which may be in one store. The document:
 *
 *   {name, collection, ... (every name), layout, keep, order, window (layout bucket), opWindow,
 *    keepElements, keepSeconds, topCount, unique,
 *    bounds: {threshold, pageCapacity, headBytesMax, pageBytesMax}, largest: {the same}, undoing}
 *
 * Names that may be empty are left out if they are, except those of pages in layouts that have
 * pages. `order`, keepElements, keepSeconds and topCount are left out if they are 0, `unique`
 * if it is false. Bounds of pages are left out if the layout has no pages. `undoing` is there while
 * the migration is undone.
 */
#include "bson/field_path.h"
#include "bson/record.h"
#include "definition/schema.h"
#include "util/error.h"

#include <inttypes.h>
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
    SPILL_FIELD(BOOL, spill_definition_t, unique, "unique", .flags = SPILL_FIELD_SPARSE),
    BOUNDS(bounds, "bounds", bounds, has_pages),
    BOUNDS(bounds, "bounds", head_bounds, has_no_pages),
    BOUNDS(largest, "largest", bounds, has_pages),
    BOUNDS(largest, "largest", head_bounds, has_no_pages),
    SPILL_FIELD(INT64, spill_stored_definition_t, undoing, "undoing", .flags = SPILL_FIELD_SPARSE),
};
_Static_assert(offsetof(spill_stored_definition_t, definition) == 0, "fields of both structs");

static const spill_record_t record = {.name = "definition",
                                      .fields = fields,
                                      .count = sizeof fields / sizeof fields[0],
                                      .size_bytes = sizeof(spill_stored_definition_t),
                                      .closed = true};

void spill_stored_definition_to_bson(const spill_stored_definition_t *stored, bson_t *document)
{
    bson_init(document);
    spill_record_write(&record, stored, document);
}

void spill_definition_to_bson(const spill_definition_t *definition, bson_t *document)
{
    if (document == NULL)
        return;
    if (definition != NULL)
        spill_stored_definition_to_bson(&(spill_stored_definition_t){.definition = *definition},
                                        document);
    else
        bson_init(document);
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

static spill_code_t read_definition(const bson_t *document, spill_stored_definition_t *stored,
                                    spill_error_t *error)
{
    SPILL_TRY(spill_record_read(&record, document, stored, error));
    SPILL_TRY(check_largest(&stored->definition, error));
    if (spill_definition_check(&stored->definition, error) != SPILL_OK)
        return spill_fail_prefix(error, SPILL_CORRUPT, "definition");
    return SPILL_OK;
}

spill_code_t spill_stored_definition_from_bson(spill_stored_definition_t *stored,
                                               const bson_t *document, spill_error_t *error)
{
    *stored = (spill_stored_definition_t){0};
    spill_code_t code = read_definition(document, stored, error);
    if (code != SPILL_OK)
        *stored = (spill_stored_definition_t){0};
    return code;
}

spill_code_t spill_definition_from_bson(spill_definition_t *definition, const bson_t *document,
                                        spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, definition);
    *definition = (spill_definition_t){0};
    SPILL_CHECK_POINTERS(error, document);
    spill_stored_definition_t stored;
    spill_code_t code = spill_stored_definition_from_bson(&stored, document, error);
    *definition = stored.definition;
    return code;
}

/* ---- a definition and its successor ---------------------------------------------------------- */

static spill_code_t fail_change(const spill_definition_t *definition, const char *label,
                                const char *now, const char *next, spill_error_t *error)
{
    return spill_fail(error, SPILL_REFUSED,
                      "definition '%s' has data: %s cannot change from '%s' to '%s' (only the "
                      "bounds, opWindow and what is retained can)",
                      definition->name, label, now, next);
}

bool spill_definition_keep_without_id(const spill_definition_t *now, spill_definition_t *next)
{
    bool keeps = spill_schema_of(now)->has_referenced_elements &&
                 now->element_id_field[0] == '\0' &&
                 strcmp(next->element_id_field, SPILL_ELEMENT_ID_FIELD) == 0;
    if (keeps)
        next->element_id_field[0] = '\0';
    return keeps;
}

bool spill_definition_adds_id(const spill_definition_t *now, const spill_definition_t *next)
{
    return now->id_field[0] == '\0' && next->id_field[0] != '\0' && !next->unique &&
           next->layout == SPILL_LAYOUT_OUTLIER;
}

spill_code_t spill_definition_compatible(const spill_definition_t *now,
                                         const spill_definition_t *next, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, now, next);
    if (spill_definition_check(now, error) != SPILL_OK ||
        spill_definition_check(next, error) != SPILL_OK)
        return SPILL_INVALID;
    if (now->layout != next->layout)
        return fail_change(now, "layout", spill_layout_name(now->layout),
                           spill_layout_name(next->layout), error);
    if (now->keep != next->keep)
        return fail_change(now, "keep", spill_keep_name(now->keep), spill_keep_name(next->keep),
                           error);
    if (now->order != next->order)
        return fail_change(now, "order", spill_array_order_name(now->order),
                           spill_array_order_name(next->order), error);
    if (now->window != next->window)
        return fail_change(now, "window", spill_window_name(now->window),
                           spill_window_name(next->window), error);
    if (now->top_count != next->top_count)
        return spill_fail(error, SPILL_REFUSED,
                          "definition '%s' has data: topCount cannot change from %" PRId64
                          " to %" PRId64,
                          now->name, now->top_count, next->top_count);
    if (now->unique != next->unique)
        return fail_change(now, "unique", now->unique ? "true" : "false",
                           next->unique ? "true" : "false", error);
    for (size_t i = 0; i < SPILL_NAME_FIELDS; i++) {
        const spill_name_field_t *field = &spill_name_fields[i];
        const char *name_now = spill_definition_get_name(now, field);
        const char *name_next = spill_definition_get_name(next, field);
        if (strcmp(name_now, name_next) != 0)
            return fail_change(now, field->label, name_now, name_next, error);
    }
    return SPILL_OK;
}

/* ---- two definitions of one store ------------------------------------------------------------ */

/* The option that sets a name of the head. */
static const char *option_of(const spill_name_field_t *field)
{
    static const struct {
        const char *label, *option;
    } options[] = {
        {"array", "--array"},
        {"countField", "--count-field"},
        {"overflowField", "--overflow-field"},
        {"pagesField", "--pages-field"},
    };
    size_t index = 0;
    while (strcmp(options[index].label, field->label) != 0)
        index++;
    return options[index].option;
}

/* Find a field of the head that is at the path, in it or around it; or NULL. */
static const spill_name_field_t *find_head_field(const spill_definition_t *definition,
                                                 const char *name)
{
    for (size_t i = 0; i < SPILL_NAME_FIELDS; i++) {
        const spill_name_field_t *field = &spill_name_fields[i];
        const char *own = spill_definition_get_name(definition, field);
        if (field->role == SPILL_NAME_OF_HEAD_FIELD && own[0] != '\0' &&
            spill_paths_overlap(own, name))
            return field;
    }
    return NULL;
}

/* Check two definitions with heads in one collection. */
static spill_code_t check_head_fields(const spill_definition_t *definition,
                                      const spill_definition_t *other, spill_error_t *error)
{
    for (size_t i = 0; i < SPILL_NAME_FIELDS; i++) {
        const spill_name_field_t *field = &spill_name_fields[i];
        const char *name = spill_definition_get_name(definition, field);
        if (field->role != SPILL_NAME_OF_HEAD_FIELD || name[0] == '\0')
            continue;
        const spill_name_field_t *taken = find_head_field(other, name);
        const char *there = taken != NULL ? spill_definition_get_name(other, taken) : name;
        if (strcmp(there, name) != 0)
            return spill_fail(error, SPILL_REFUSED,
                              "definition '%s' clashes with '%s': in the heads of '%s', one of the "
                              "fields '%s' and '%s' would be in the other (%s, %s); give it "
                              "another %s or --collection",
                              definition->name, other->name, definition->collection, name, there,
                              field->label, taken->label, option_of(field));
        if (taken != NULL)
            return spill_fail(error, SPILL_REFUSED,
                              "definition '%s' clashes with '%s': both have a field '%s' in the "
                              "heads of '%s' (%s, %s); give it another %s or --collection",
                              definition->name, other->name, name, definition->collection,
                              field->label, taken->label, option_of(field));
    }
    return SPILL_OK;
}

/* The contents of the collection of a definition's heads, or of its pages, for a message. */
static const char *contents(const spill_definition_t *definition, bool heads)
{
    if (spill_schema_of(definition)->has_windows)
        return "buckets";
    return heads ? "heads" : "pages";
}

spill_code_t spill_definition_beside(const spill_definition_t *definition,
                                     const spill_definition_t *other, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, definition, other);
    if (spill_definition_check(definition, error) != SPILL_OK ||
        spill_definition_check(other, error) != SPILL_OK)
        return SPILL_INVALID;
    const char *pages = definition->page_collection;
    if (strcmp(definition->collection, other->page_collection) == 0)
        return spill_fail(error, SPILL_REFUSED,
                          "definition '%s' clashes with '%s': its %s would be in '%s', where "
                          "the other has its %s; give it another --collection",
                          definition->name, other->name, contents(definition, true),
                          definition->collection, contents(other, false));
    if (strcmp(definition->collection, other->collection) == 0) {
        spill_code_t code = check_head_fields(definition, other, error);
        if (code != SPILL_OK)
            return code;
    }
    if (pages[0] != '\0' && strcmp(pages, other->page_collection) == 0)
        return spill_fail(error, SPILL_REFUSED,
                          "definition '%s' clashes with '%s': both have their pages in '%s'; give "
                          "it another --page-collection",
                          definition->name, other->name, pages);
    if (strcmp(pages, other->collection) == 0)
        return spill_fail(error, SPILL_REFUSED,
                          "definition '%s' clashes with '%s': its %s would be in '%s', where "
                          "the other has its %s; give it another --%s",
                          definition->name, other->name, contents(definition, false), pages,
                          contents(other, true),
                          spill_schema_of(definition)->has_windows ? "collection"
                                                                   : "page-collection");
    return SPILL_OK;
}
