/* Removing the oldest elements: below a number, all but so many, or by their time. */
#include "core/building.h"
#include "layout/layout.h"
#include "util/error.h"

static spill_code_t trim_owner(spill_array_t *array, const spill_value_t *owner,
                               const spill_trim_t *trim, int64_t *below, spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    int64_t watermark = 0;
    if (below)
        *below = 0;
    SPILL_TRY(spill_array_check_layout(array, false, "elements go one by one, or with their window",
                                       error));
    SPILL_TRY(spill_array_check_built(array, error));
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    spill_code_t code = spill_layout_trim(&own, trim, &watermark, error);
    if (below) /* also after an error */
        *below = watermark;
    return code;
}

spill_code_t spill_array_trim(spill_array_t *array, const spill_value_t *owner, int64_t below,
                              spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, array, owner);
    SPILL_CHECK_ARGUMENT(error, below >= 0, "a sequence number is 0 or more");
    const spill_trim_t trim = {.below = below};
    return trim_owner(array, owner, &trim, NULL, error);
}

spill_code_t spill_array_trim_keep(spill_array_t *array, const spill_value_t *owner, int64_t keep,
                                   int64_t *below, spill_error_t *error)
{
    const spill_trim_t trim = {.below = INT64_MAX, .keep = keep};
    if (below)
        *below = 0;
    SPILL_CHECK_POINTERS(error, array, owner);
    if (keep < 0)
        return spill_fail(error, SPILL_INVALID, "there are no %lld elements to keep",
                          (long long)keep);
    return trim_owner(array, owner, &trim, below, error);
}

spill_code_t spill_array_trim_older(spill_array_t *array, const spill_value_t *owner,
                                    int64_t time_ms, int64_t *below, spill_error_t *error)
{
    const spill_trim_t trim = {.below = INT64_MAX, .by_time = true, .time_ms = time_ms};
    if (below)
        *below = 0;
    SPILL_CHECK_POINTERS(error, array, owner);
    if (array->definition.time_field[0] == '\0')
        return spill_fail(error, SPILL_INVALID,
                          "definition '%s' does not say what an element's time is (timeField, "
                          "--time-field)",
                          array->definition.name);
    return trim_owner(array, owner, &trim, below, error);
}
