/*
 * Two definitions: may one replace the other, which has data, and may both be in one store, or do
 * they use the same collections or fields?
 */
#include "definition/fields.h"
#include "definition/schema.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

/* ---- a definition and its successor -----------------------------------------------------------
 */

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

/* Find a field of the head by its name, or NULL. */
static const spill_name_field_t *find_head_field(const spill_definition_t *definition,
                                                 const char *name)
{
    for (size_t i = 0; i < SPILL_NAME_FIELDS; i++) {
        const spill_name_field_t *field = &spill_name_fields[i];
        if (field->role == SPILL_NAME_OF_HEAD_FIELD &&
            strcmp(spill_definition_get_name(definition, field), name) == 0)
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
