/* Changing and removing single elements, by number or by id. */
#include "core/array.h"
#include "core/building.h"
#include "layout/layout.h"
#include "util/error.h"

static spill_code_t edit(spill_array_t *array, const spill_value_t *owner, spill_which_t *which,
                         const spill_value_t *element, spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_array_check_built(array, error));
    SPILL_TRY(spill_array_check_element(element, 0, error));
    SPILL_TRY(spill_array_check_rank(&array->definition, element, error));
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    SPILL_TRY(spill_array_check_window(&own, element, error));
    return spill_layout_edit(&own, which, element, error);
}

static spill_code_t remove_element(spill_array_t *array, const spill_value_t *owner,
                                   spill_which_t *which, spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_array_check_built(array, error));
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    return spill_layout_remove(&own, which, error);
}

spill_code_t spill_array_edit(spill_array_t *array, const spill_value_t *owner, int64_t seq,
                              const spill_value_t *element, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, array, owner, element);
    SPILL_CHECK_ARGUMENT(error, seq >= 0, "a sequence number is 0 or more");
    spill_which_t which = {.seq = seq};
    return edit(array, owner, &which, element, error);
}

spill_code_t spill_array_remove(spill_array_t *array, const spill_value_t *owner, int64_t seq,
                                spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, array, owner);
    SPILL_CHECK_ARGUMENT(error, seq >= 0, "a sequence number is 0 or more");
    spill_which_t which = {.seq = seq};
    return remove_element(array, owner, &which, error);
}

/* ---- by id ----------------------------------------------------------------------------------- */

/*
 * Try once to find the element. The head may hold it, or a page, which is then read. If no other
 * client has trimmed the array meanwhile, *still is true.
 */
static spill_code_t find_once(const spill_owner_t *owner, spill_which_t *which, bool *still,
                              spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    int64_t where;
    *still = true;
    SPILL_TRY(spill_outlier_read_head(owner, which->id, &head, error));
    if (!head.state.present)
        return spill_outlier_absent_element(owner, which, error);
    spill_code_t code = spill_outlier_find_id(owner, &head, which, &page, &where, error);
    if ((code == SPILL_OK || code == SPILL_NOT_FOUND) && head.state.pages > 0)
        SPILL_TRY(
            spill_owner_still_has(owner, &head.state, head.state.watermark, &page, still, error));
    return *still ? code : SPILL_OK;
}

static spill_code_t find_element(const spill_owner_t *owner, spill_which_t *which,
                                 spill_error_t *error)
{
    bool still = false;
    int tries = 0;
    while (true) {
        SPILL_TRY(find_once(owner, which, &still, error));
        if (still)
            return SPILL_OK;
        which->seq = -1;
        SPILL_TRY(spill_owner_again(owner, &tries, error));
    }
}

/* Set *seq to the number of the element, -1 if none was found, also if `code` is an error. */
static spill_code_t return_seq(const spill_which_t *which, int64_t *seq, spill_code_t code)
{
    if (seq)
        *seq = which->seq;
    return code;
}

spill_code_t spill_array_find_id(spill_array_t *array, const spill_value_t *owner,
                                 const spill_value_t *id, int64_t *seq, spill_error_t *error)
{
    if (seq != NULL)
        *seq = -1;
    SPILL_CHECK_POINTERS(error, array, owner, id, seq);
    spill_which_t which = {.id = id, .seq = -1};
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_array_check_id(array, id, error));
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    return return_seq(&which, seq, find_element(&own, &which, error));
}

spill_code_t spill_array_edit_id(spill_array_t *array, const spill_value_t *owner,
                                 const spill_value_t *id, const spill_value_t *element,
                                 int64_t *seq, spill_error_t *error)
{
    if (seq != NULL)
        *seq = -1;
    SPILL_CHECK_POINTERS(error, array, owner, id, element);
    spill_which_t which = {.id = id, .seq = -1};
    SPILL_TRY(spill_array_check_id(array, id, error));
    return return_seq(&which, seq, edit(array, owner, &which, element, error));
}

spill_code_t spill_array_remove_id(spill_array_t *array, const spill_value_t *owner,
                                   const spill_value_t *id, int64_t *seq, spill_error_t *error)
{
    if (seq != NULL)
        *seq = -1;
    SPILL_CHECK_POINTERS(error, array, owner, id);
    spill_which_t which = {.id = id, .seq = -1};
    SPILL_TRY(spill_array_check_id(array, id, error));
    return return_seq(&which, seq, remove_element(array, owner, &which, error));
}
