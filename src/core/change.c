/* Edit and remove elements: one by number or by id, all that match a filter, or the oldest. */
#include "bson/element_fields.h"
#include "core/array.h"
#include "core/building.h"
#include "layout/layout.h"
#include "layout/locate.h"
#include "layout/trim.h"
#include "util/error.h"

static spill_code_t refuse_id_change(const spill_array_t *array, spill_error_t *error)
{
    return spill_fail(error, SPILL_INVALID,
                      "'%s' keeps each id once, so an edit cannot change it: remove the element, "
                      "and append the new one",
                      array->definition.name);
}

/* An array that keeps each id once: has the new element the id of the one that it replaces? */
static spill_code_t check_same_id(spill_array_t *array, const spill_value_t *owner,
                                  const spill_which_t *which, const spill_value_t *element,
                                  spill_error_t *error)
{
    const char *path = array->definition.id_field;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t old = SPILL_BUFFER_INIT;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t now = SPILL_BUFFER_INIT;
    spill_read_options_t options;
    spill_slice_t *slice = NULL;
    if (!array->definition.unique)
        return SPILL_OK;
    if (!spill_element_key(element, path, true, &now))
        return refuse_id_change(array, error);
    if (which->id != NULL) {
        SPILL_TRY(spill_element_id_key(which->id, true, &old, error));
        return spill_buffer_equal(&old, &now) ? SPILL_OK : refuse_id_change(array, error);
    }
    spill_read_options_init(&options);
    options.before = which->seq < INT64_MAX ? which->seq + 1 : which->seq;
    options.after = which->seq - 1;
    options.limit = 1;
    SPILL_TRY(spill_array_read(array, owner, &options, &slice, error));
    bool same =
        slice->count == 0 || (spill_element_key(&slice->elements[0].value, path, true, &old) &&
                              spill_buffer_equal(&old, &now));
    spill_slice_free(slice);
    return same ? SPILL_OK : refuse_id_change(array, error);
}

static spill_code_t edit(spill_array_t *array, const spill_value_t *owner, spill_which_t *which,
                         const spill_value_t *element, spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_array_check_built(array, error));
    SPILL_TRY(spill_array_check_element(element, 0, error));
    SPILL_TRY(spill_array_check_text(array, element, 0, error));
    SPILL_TRY(spill_array_check_rank(&array->definition, element, error));
    SPILL_TRY(check_same_id(array, owner, which, element, error));
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
    SPILL_CHECK_ARRAY(error, array, owner, element);
    SPILL_CHECK_ARGUMENT(error, seq >= 0, "a sequence number is 0 or more");
    spill_which_t which = {.seq = seq};
    return edit(array, owner, &which, element, error);
}

spill_code_t spill_array_remove(spill_array_t *array, const spill_value_t *owner, int64_t seq,
                                spill_error_t *error)
{
    SPILL_CHECK_ARRAY(error, array, owner);
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
    if ((code == SPILL_OK || code == SPILL_NOT_FOUND) && head.state.pages > 0 && !head.id_absent)
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
    SPILL_CHECK_ARRAY(error, array, owner, id, seq);
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
    SPILL_CHECK_ARRAY(error, array, owner, id, element);
    spill_which_t which = {.id = id, .seq = -1};
    SPILL_TRY(spill_array_check_id(array, id, error));
    return return_seq(&which, seq, edit(array, owner, &which, element, error));
}

spill_code_t spill_array_remove_id(spill_array_t *array, const spill_value_t *owner,
                                   const spill_value_t *id, int64_t *seq, spill_error_t *error)
{
    if (seq != NULL)
        *seq = -1;
    SPILL_CHECK_ARRAY(error, array, owner, id);
    spill_which_t which = {.id = id, .seq = -1};
    SPILL_TRY(spill_array_check_id(array, id, error));
    return return_seq(&which, seq, remove_element(array, owner, &which, error));
}

/* ---- removals by a filter -------------------------------------------------------------------- */

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
    SPILL_CHECK_ARRAY(error, array, owner, filter);
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

/* ---- trims ----------------------------------------------------------------------------------- */

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
    SPILL_CHECK_ARRAY(error, array, owner);
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
    SPILL_CHECK_ARRAY(error, array, owner);
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
    SPILL_CHECK_ARRAY(error, array, owner);
    if (array->definition.time_field[0] == '\0')
        return spill_fail(error, SPILL_INVALID,
                          "definition '%s' does not say what an element's time is (timeField, "
                          "--time-field)",
                          array->definition.name);
    return trim_owner(array, owner, &trim, below, error);
}
