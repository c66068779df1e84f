#include "cli/definition_options.h"

#include "definition/fields.h"
#include "util/error.h"

spill_code_t spill_cli_layout(const char *name, spill_layout_t *layout, spill_error_t *error)
{
    if (!name || spill_layout_of_name(name, layout))
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID,
                      "there is no layout '%s'; the layouts are: outlier, capped, reference, "
                      "subset, bucket",
                      name);
}

spill_code_t spill_cli_keep(const char *name, spill_keep_t *keep, spill_error_t *error)
{
    if (!name || spill_keep_of_name(name, keep))
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID, "--keep must be 'newest' or 'oldest', not '%s'", name);
}
