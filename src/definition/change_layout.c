/*
 * Change the layout of a definition. Layouts form families by their documents: within a family only
 * some fields differ; another family has other fields, which a preset gives.
 */
#include "bson/field_path.h"
#include "definition/schema.h"

#include <string.h>

/* ---- another family -------------------------------------------------------------------------- */

/* The kinds of documents: arrays in heads and pages, referenced elements, or windows. */
typedef enum family { ARRAYS, REFERENCED, WINDOWS } family_t;

static family_t family_of(const spill_definition_t *definition)
{
    const spill_schema_t *schema = spill_schema_of(definition);
    if (schema->has_windows)
        return WINDOWS;
    return schema->has_referenced_elements ? REFERENCED : ARRAYS;
}

static void carry_name(const char *from, char *to)
{
    if (from[0] != '\0')
        strcpy(to, from);
}

/* Keep the statistics of the same value. If there was no such value, keep only the count. */
static void carry_statistics(const spill_definition_t *from, spill_definition_t *definition)
{
    strcpy(definition->value_field, from->value_field);
    carry_name(from->stats_count, definition->stats_count);
    carry_name(from->stats_average, definition->stats_average);
    if (from->value_field[0] != '\0')
        return;
    definition->stats_average[0] = '\0';
    definition->stats_sum[0] = '\0';
    definition->stats_min[0] = '\0';
    definition->stats_max[0] = '\0';
}

/* The elements of windows lie in the collection itself; other pages have one of their own. */
static void carry_collections(const spill_definition_t *from, family_t family,
                              spill_definition_t *definition)
{
    strcpy(definition->collection, from->collection);
    if (family == WINDOWS)
        strcpy(definition->page_collection, from->collection);
    else if (strcmp(from->page_collection, from->collection) != 0)
        carry_name(from->page_collection, definition->page_collection);
}

/*
 * The documents change their shape, so a preset gives their fields and bounds. What describes
 * owners and elements is copied from the old definition.
 */
static void change_family(const spill_definition_t *from, family_t family,
                          spill_definition_t *definition)
{
    static const char *const presets[] = {
        [ARRAYS] = "feed-recent", [REFERENCED] = "reviews-separate", [WINDOWS] = "reviews-bucket"};
    const char *array = family_of(from) == REFERENCED ? "elements" : from->array;
    spill_definition_preset(definition, presets[family], from->name, NULL);
    carry_collections(from, family, definition);
    strcpy(definition->array, array);
    if (family != REFERENCED) { /* only the array of a bucket is at a path in pages, too */
        strcpy(definition->page_array, family == ARRAYS ? spill_path_leaf(array) : array);
        definition->order = from->order;
    }
    if (family == ARRAYS)
        strcpy(definition->count_field, "count");
    else
        carry_statistics(from, definition);
    definition->op_window = from->op_window;
    carry_name(from->page_owner, definition->page_owner);
    strcpy(definition->id_field, from->id_field);
    strcpy(definition->time_field, from->time_field);
    definition->keep_elements = family == WINDOWS ? 0 : from->keep_elements;
    definition->keep_seconds = from->keep_seconds;
    definition->unique = from->unique;
}

/* ---- the fields that one layout of a family has ---------------------------------------------- */

/* Set the fields of the top elements in layout subset; clear them in other layouts. */
static void set_top(spill_definition_t *definition)
{
    if (!spill_schema_of(definition)->has_top) {
        definition->top_field[0] = '\0';
        definition->sort_field[0] = '\0';
        definition->top_count = 0;
        return;
    }
    spill_definition_t preset;
    spill_definition_preset(&preset, "reviews-subset", "", NULL);
    if (definition->top_field[0] == '\0')
        strcpy(definition->top_field, preset.top_field);
    if (definition->top_count == 0)
        definition->top_count = preset.top_count;
}

/* Layouts reference and subset: set the field that stores an element's _id. */
static void set_element_id(spill_definition_t *definition)
{
    if (!spill_schema_of(definition)->has_referenced_elements)
        definition->element_id_field[0] = '\0';
    else if (definition->element_id_field[0] == '\0')
        strcpy(definition->element_id_field, SPILL_ELEMENT_ID_FIELD);
}

/* Clear the names and bounds of pages, or give those that are empty the values of a preset. */
static void set_pages(bool pages, spill_definition_t *definition)
{
    spill_definition_t preset;
    spill_definition_init(&preset, NULL);
    for (size_t i = 0; i < SPILL_NAME_FIELDS; i++) {
        const spill_name_field_t *field = &spill_name_fields[i];
        char *name = (char *)definition + field->offset;
        if (!pages && field->pages)
            name[0] = '\0';
        else if (pages && field->pages && name[0] == '\0' &&
                 (field->required ||
                  (definition->layout == SPILL_LAYOUT_OUTLIER && name == definition->page_array)))
            strcpy(name, spill_definition_get_name(&preset, field));
    }
    for (size_t i = 0; i < SPILL_BOUND_FIELDS; i++) {
        const spill_bound_field_t *field = &spill_bound_fields[i];
        int64_t bound = spill_bounds_get(&definition->bounds, field);
        if (field->pages)
            bound = !pages ? 0 : bound == 0 ? spill_bounds_get(&preset.bounds, field) : bound;
        memcpy((char *)&definition->bounds + field->offset, &bound, sizeof bound);
    }
}

void spill_definition_set_layout(spill_definition_t *definition, spill_layout_t layout)
{
    if (definition == NULL)
        return;
    const spill_definition_t from = *definition;
    bool had_pages = spill_schema_of(&from)->has_pages;
    definition->layout = layout;
    family_t family = family_of(definition);
    if (family != family_of(&from)) {
        change_family(&from, family, definition);
        definition->layout = layout;
    }
    bool pages = spill_schema_of(definition)->has_pages;
    set_pages(pages, definition);
    set_top(definition);
    set_element_id(definition);
    if (!pages)
        definition->keep = SPILL_KEEP_NEWEST;
    if (!pages && had_pages) { /* this layout retains by age, not by number */
        definition->keep_elements = 0;
        definition->keep_seconds = 0;
    }
    definition->unique = definition->unique && spill_definition_has_unique(definition);
    definition->largest = definition->bounds;
}
