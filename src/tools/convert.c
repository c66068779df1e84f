#include "tools/convert.h"

#include "definition/fields.h"
#include "tools/import_mark.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * Documents of one element have other fields than arrays, and other bounds: the names of the
 * owner's field and the element's time are the old ones, the others those of the layout.
 */
static void take_apart(const spill_definition_t *from, spill_definition_t *definition)
{
    spill_definition_preset(definition, "reviews-separate", from->name, NULL);
    strcpy(definition->array, from->array);
    definition->value_field[0] = '\0';
    definition->stats_average[0] = '\0';
}

static void put_together(const spill_definition_t *from, spill_definition_t *definition)
{
    spill_definition_init(definition, from->name);
    strcpy(definition->array, "elements");
    strcpy(definition->page_array, "elements");
    strcpy(definition->count_field, "count");
}

static void change_shape(const spill_definition_t *from, spill_definition_t *definition)
{
    if (spill_elements_apart(from))
        put_together(from, definition);
    else
        take_apart(from, definition);
    definition->op_window = from->op_window;
    strcpy(definition->page_owner, from->page_owner);
    strcpy(definition->time_field, from->time_field);
}

spill_code_t spill_convert_definition(const spill_definition_t *from, const char *as,
                                      spill_layout_t layout, spill_keep_t keep,
                                      spill_definition_t *definition, spill_error_t *error)
{
    static const char suffix[] = ".pages";
    spill_definition_t wanted = {.layout = layout};
    *definition = *from;
    if (spill_elements_apart(from) != spill_elements_apart(&wanted)) {
        change_shape(from, definition);
        keep = spill_elements_apart(&wanted) ? definition->keep : keep;
    }
    if (strlen(as) + sizeof suffix > SPILL_NAME_SIZE)
        return spill_fail(error, SPILL_INVALID, "'%.40s...' is longer than %zu bytes", as,
                          SPILL_NAME_SIZE - sizeof suffix);
    bool bucket = layout == SPILL_LAYOUT_BUCKET;
    if (bucket != (from->layout == SPILL_LAYOUT_BUCKET))
        return spill_fail(error, SPILL_INVALID,
                          "arrays are not converted to or from the layout bucket: export them, and "
                          "import them there");
    strcpy(definition->name, as);
    strcpy(definition->collection, as);
    if (layout == SPILL_LAYOUT_CAPPED && from->layout != SPILL_LAYOUT_CAPPED)
        return spill_fail(error, SPILL_REFUSED,
                          "'%s' cannot be converted to layout capped: what that drops would be "
                          "missing in the new arrays",
                          from->name);
    spill_definition_set_layout(definition, layout);
    definition->keep = keep;
    if (definition->page_collection[0] != '\0')
        snprintf(definition->page_collection, sizeof definition->page_collection, "%s%s", as,
                 bucket ? "" : suffix);
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
