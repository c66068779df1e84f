#include "tools/convert.h"

#include "tools/import_mark.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

spill_code_t spill_convert_definition(const spill_definition_t *from, const char *as,
                                      spill_layout_t layout, spill_keep_t keep,
                                      spill_definition_t *definition, spill_error_t *error)
{
    static const char suffix[] = ".pages";
    *definition = *from;
    if (strlen(as) + sizeof suffix > SPILL_NAME_SIZE)
        return spill_fail(error, SPILL_INVALID, "'%.40s...' is longer than %zu bytes", as,
                          SPILL_NAME_SIZE - sizeof suffix);
    strcpy(definition->name, as);
    strcpy(definition->collection, as);
    snprintf(definition->page_collection, sizeof definition->page_collection, "%s%s", as, suffix);
    definition->layout = layout;
    definition->keep = keep;
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
