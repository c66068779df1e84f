/* Removes elements that match a filter: walks over the array, and removes each match by number. */
#include "bson/element_fields.h"
#include "core/array.h"
#include "core/building.h"
#include "core/walk.h"
#include "layout/layout.h"
#include "util/error.h"

/* Remove the stretch's elements that match and lie below `end`, up to the limit. */
static spill_code_t remove_matches(spill_owner_t *owner, const spill_run_t *run,
                                   const bson_t *filter, int64_t end, int64_t *left,
                                   spill_error_t *error)
{
    for (size_t i = 0; *left > 0 && i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        if (element.seq >= end || !spill_match(filter, &element.value))
            continue;
        spill_which_t which = {.seq = element.seq};
        spill_code_t code = spill_layout_remove(owner, &which, error);
        if (code == SPILL_OK)
            --*left;
        else if (code != SPILL_NOT_FOUND) /* another client was faster */
            return code;
    }
    return SPILL_OK;
}

static spill_code_t remove_from(spill_owner_t *owner, const bson_t *filter, int64_t *left,
                                spill_error_t *error)
{
    spill_count_t count;
    SPILL_SCOPED(spill_stretch_release) spill_stretch_t stretch = {.last = false};
    SPILL_TRY(spill_layout_count(owner, &count, error));
    while (!stretch.last && *left > 0 && stretch.next < count.next) {
        SPILL_TRY(spill_stretch_read(owner, &stretch, error));
        SPILL_TRY(remove_matches(owner, stretch.run, filter, count.next, left, error));
    }
    return SPILL_OK;
}

spill_code_t spill_array_remove_where(spill_array_t *array, const spill_value_t *owner,
                                      const bson_t *filter, int64_t limit, int64_t *removed,
                                      spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    int64_t most = limit > 0 ? limit : INT64_MAX;
    int64_t left = most;
    if (removed)
        *removed = 0;
    SPILL_CHECK_POINTERS(error, array, owner, filter);
    if (limit < 0)
        return spill_fail(error, SPILL_INVALID, "the limit is %lld, below 0", (long long)limit);
    SPILL_TRY(spill_match_check(filter, error));
    SPILL_TRY(spill_array_check_built(array, error));
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    spill_code_t code = remove_from(&own, filter, &left, error);
    if (removed) /* also after an error */
        *removed = most - left;
    return code;
}
