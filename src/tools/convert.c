#include "tools/convert.h"

#include "definition/fields.h"
#include "tools/import_mark.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the new definition ---------------------------------------------------------------------- */

/* What a definition's documents are: arrays in heads and pages, elements apart, or windows. */
typedef enum family { ARRAYS, APART, WINDOWS } family_t;

static family_t family_of(spill_layout_t layout)
{
    spill_definition_t definition = {.layout = layout};
    if (layout == SPILL_LAYOUT_BUCKET)
        return WINDOWS;
    return spill_elements_apart(&definition) ? APART : ARRAYS;
}

static void carry_name(const char *from, char *to)
{
    if (from[0] != '\0')
        strcpy(to, from);
}

/* Statistics are of the value that they were of; where there was none, how many elements there are.
 */
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

/*
 * Other documents have other fields, and other bounds: what says something of owners and elements
 * is the old definition's, the rest is that of a preset.
 */
static void change_shape(const spill_definition_t *from, family_t family,
                         spill_definition_t *definition)
{
    const char *array = family_of(from->layout) == APART ? "elements" : from->array;
    if (family == ARRAYS)
        spill_definition_init(definition, from->name);
    else
        spill_definition_preset(definition, family == APART ? "reviews-separate" : "reviews-bucket",
                                from->name, NULL);
    strcpy(definition->array, array);
    if (family != APART) {
        strcpy(definition->page_array, array);
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
}

/*
 * What is retained. Where a number and an age are, an element stays that either keeps: of the two
 * a cap has the number, and windows, which have no number, keep everything.
 */
static void carry_retention(const spill_definition_t *from, spill_definition_t *definition)
{
    bool capped = definition->layout == SPILL_LAYOUT_CAPPED;
    bool both = !capped && definition->layout != SPILL_LAYOUT_BUCKET;
    definition->keep_elements = both ? from->keep_elements : 0;
    definition->keep_seconds = both || from->keep_elements == 0 ? from->keep_seconds : 0;
    if (capped && from->keep_elements > 0)
        definition->bounds.threshold = from->keep_elements;
}

spill_code_t spill_convert_definition(const spill_definition_t *from, const char *as,
                                      spill_layout_t layout, const spill_keep_t *keep,
                                      spill_definition_t *definition, spill_error_t *error)
{
    static const char suffix[] = ".pages";
    family_t family = family_of(layout);
    *definition = *from;
    if (family != family_of(from->layout))
        change_shape(from, family, definition);
    if (strlen(as) + sizeof suffix > SPILL_NAME_SIZE)
        return spill_fail(error, SPILL_INVALID, "'%.40s...' is longer than %zu bytes", as,
                          SPILL_NAME_SIZE - sizeof suffix);
    strcpy(definition->name, as);
    strcpy(definition->collection, as);
    spill_definition_set_layout(definition, layout);
    carry_retention(from, definition);
    if (keep)
        definition->keep = *keep;
    if (definition->page_collection[0] != '\0')
        snprintf(definition->page_collection, sizeof definition->page_collection, "%s%s", as,
                 family == WINDOWS ? "" : suffix);
    definition->largest = definition->bounds;
    return spill_definition_check(definition, error);
}

spill_code_t spill_convert(spill_store_t *store, const char *name,
                           const spill_copy_options_t *options, spill_copy_result_t *result,
                           spill_error_t *error)
{
    if (strcmp(name, options->as) == 0)
        return spill_fail(error, SPILL_INVALID,
                          "'%s' cannot be converted into itself: the old documents stay beside the "
                          "new ones, so it takes a definition of another name",
                          name);
    return spill_copy(store, store, name, options, result, error);
}

spill_code_t spill_convert_finish(spill_store_t *store, const char *name,
                                  const spill_copy_options_t *options, spill_copy_result_t *result,
                                  spill_error_t *error)
{
    spill_copy_options_t compared = *options;
    compared.unverified = false;
    compared.dropping = true;
    int64_t differences = result->differences;
    spill_code_t code = spill_convert(store, name, &compared, result, error);
    differences = result->differences - differences;
    if (code == SPILL_OK && differences > 0)
        return spill_fail(error, SPILL_REFUSED,
                          "'%s' is kept: %" PRId64 " of its owners are not the same in '%s'; drop "
                          "these there, and convert again",
                          name, differences, options->as);
    if (code == SPILL_OK)
        code = spill_import_marks_drop(store, name, error);
    return code == SPILL_OK ? spill_store_drop(store, name, error) : code;
}
