/*
 * Changes of several windows: by an element's id, by a filter, and by age. Each function first
 * finds the windows, then changes each one like any other array.
 */
#include "bson/element_fields.h"
#include "core/array.h"
#include "core/building.h"
#include "definition/schema.h"
#include "layout/layout.h"
#include "layout/locate.h"
#include "layout/trim.h"
#include "util/error.h"

#include <string.h>

/* ---- by id ----------------------------------------------------------------------------------- */

typedef enum action { ACTION_FIND, ACTION_EDIT, ACTION_REMOVE } action_t;

typedef struct search {
    spill_array_t *array;
    action_t action;
    const spill_value_t *id;
    const spill_value_t *element; /* ACTION_EDIT */
    char *window;
    int64_t *seq;
} search_t;

static spill_code_t act(void *context, const spill_value_t *name, const char *window, bool last,
                        bool *stop, spill_error_t *error)
{
    (void)last;
    const search_t *search = context;
    spill_code_t code;
    if (search->action == ACTION_EDIT)
        code = spill_array_edit_id(search->array, name, search->id, search->element, search->seq,
                                   error);
    else if (search->action == ACTION_REMOVE)
        code = spill_array_remove_id(search->array, name, search->id, search->seq, error);
    else
        code = spill_array_find_id(search->array, name, search->id, search->seq, error);
    if (code == SPILL_NOT_FOUND) /* it was removed meanwhile; another window may have the id */
        return SPILL_OK;
    memcpy(search->window, window, strlen(window) + 1);
    *stop = true;
    return code;
}

static spill_code_t by_id(spill_array_t *array, const spill_value_t *owner, search_t *search,
                          spill_error_t *error)
{
    spill_window_range_t range = {.id = search->id};
    spill_which_t which = {.id = search->id};
    spill_owner_t own = {.array = array, .value = owner};
    search->array = array;
    search->window[0] = '\0';
    *search->seq = -1;
    SPILL_TRY(spill_array_check_layout(array, true, "there are no windows", error));
    SPILL_TRY(spill_array_check_id(array, search->id, error));
    SPILL_TRY(spill_each_window(array, owner, &range, act, search, error));
    return search->window[0] == '\0' ? spill_outlier_absent_element(&own, &which, error) : SPILL_OK;
}

spill_code_t spill_bucket_find_id(spill_array_t *array, const spill_value_t *owner,
                                  const spill_value_t *id, char window[SPILL_WINDOW_SIZE],
                                  int64_t *seq, spill_error_t *error)
{
    if (window != NULL)
        window[0] = '\0';
    if (seq != NULL)
        *seq = -1;
    SPILL_CHECK_ARRAY(error, array, owner, id, window, seq);
    search_t search = {.action = ACTION_FIND, .id = id, .window = window, .seq = seq};
    return by_id(array, owner, &search, error);
}

spill_code_t spill_bucket_edit_id(spill_array_t *array, const spill_value_t *owner,
                                  const spill_value_t *id, const spill_value_t *element,
                                  char window[SPILL_WINDOW_SIZE], int64_t *seq,
                                  spill_error_t *error)
{
    if (window != NULL)
        window[0] = '\0';
    if (seq != NULL)
        *seq = -1;
    SPILL_CHECK_ARRAY(error, array, owner, id, element, window, seq);
    search_t search = {
        .action = ACTION_EDIT, .id = id, .element = element, .window = window, .seq = seq};
    return by_id(array, owner, &search, error);
}

spill_code_t spill_bucket_remove_id(spill_array_t *array, const spill_value_t *owner,
                                    const spill_value_t *id, char window[SPILL_WINDOW_SIZE],
                                    int64_t *seq, spill_error_t *error)
{
    if (window != NULL)
        window[0] = '\0';
    if (seq != NULL)
        *seq = -1;
    SPILL_CHECK_ARRAY(error, array, owner, id, window, seq);
    search_t search = {.action = ACTION_REMOVE, .id = id, .window = window, .seq = seq};
    return by_id(array, owner, &search, error);
}

/* ---- by a filter ----------------------------------------------------------------------------- */

typedef struct removing {
    spill_array_t *array;
    const bson_t *filter;
    int64_t limit; /* 0: none */
    int64_t removed;
} removing_t;

static spill_code_t remove_where(void *context, const spill_value_t *name, const char *window,
                                 bool last, bool *stop, spill_error_t *error)
{
    (void)window;
    (void)last;
    removing_t *removing = context;
    int64_t removed = 0;
    int64_t left = removing->limit > 0 ? removing->limit - removing->removed : 0;
    spill_code_t code =
        spill_array_remove_where(removing->array, name, removing->filter, left, &removed, error);
    removing->removed += removed;
    *stop = removing->limit > 0 && removing->removed >= removing->limit;
    return code;
}

spill_code_t spill_bucket_remove_where(spill_array_t *array, const spill_value_t *owner,
                                       const bson_t *filter, int64_t limit, int64_t *removed,
                                       spill_error_t *error)
{
    removing_t removing = {.array = array, .filter = filter, .limit = limit};
    spill_window_range_t range = {.newest_first = false};
    if (removed)
        *removed = 0;
    SPILL_CHECK_ARRAY(error, array, owner, filter);
    if (limit < 0)
        return spill_fail(error, SPILL_INVALID, "the limit is %lld, below 0", (long long)limit);
    SPILL_TRY(spill_match_check(filter, error));
    spill_code_t code = spill_each_window(array, owner, &range, remove_where, &removing, error);
    if (removed) /* also after an error */
        *removed = removing.removed;
    return code;
}

/* ---- trims ----------------------------------------------------------------------------------- */

/* Trim one window. An absent window needs no trim. */
static spill_code_t trim_window(spill_array_t *array, const spill_value_t *owner,
                                const char *window, const spill_trim_t *trim, spill_error_t *error)
{
    int64_t watermark;
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_bucket_name(&storage, owner, window);
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_owner_init(&own, array, &name, error));
    spill_code_t code = spill_layout_trim(&own, trim, &watermark, error);
    return code == SPILL_NOT_FOUND ? SPILL_OK : code;
}

/* Drop at most `limit` windows. Trim the window of the limit itself if the call gets that far. */
static spill_code_t trim_older(spill_array_t *array, const spill_value_t *owner, int64_t time_ms,
                               int64_t limit, spill_error_t *error)
{
    const spill_trim_t trim = {.below = INT64_MAX, .by_time = true, .time_ms = time_ms};
    char window[SPILL_WINDOW_SIZE];
    int64_t dropped;
    bool more;
    SPILL_TRY(spill_array_check_layout(array, true, "there are no windows", error));
    SPILL_TRY(spill_array_check_built(array, error));
    SPILL_TRY(spill_window_of_time(array->definition.window, time_ms, window, error));
    SPILL_TRY(spill_windows_drop(array, owner, window, limit, &dropped, &more, error));
    return more ? SPILL_OK : trim_window(array, owner, window, &trim, error);
}

spill_code_t spill_bucket_trim_older(spill_array_t *array, const spill_value_t *owner,
                                     int64_t time_ms, spill_error_t *error)
{
    SPILL_CHECK_ARRAY(error, array, owner);
    return trim_older(array, owner, time_ms, INT64_MAX, error);
}

/* Finds the window in which the newest `keep` elements begin. */
typedef struct counting {
    spill_array_t *array;
    int64_t keep; /* the number of elements still to be found */
    char window[SPILL_WINDOW_SIZE];
    bool found; /* `window` has at least this number */
} counting_t;

/*
 * Count elements like spill_array_count. The statistics of a window still have an element while it
 * is being removed, so with them the trim would keep one element too few.
 */
static spill_code_t count_window(void *context, const spill_value_t *name, const char *window,
                                 bool last, bool *stop, spill_error_t *error)
{
    (void)last;
    counting_t *counting = context;
    spill_count_t count;
    SPILL_TRY(spill_array_count(counting->array, name, &count, error));
    memcpy(counting->window, window, strlen(window) + 1);
    *stop = counting->found = count.count >= counting->keep;
    counting->keep -= counting->found ? 0 : count.count;
    return SPILL_OK;
}

spill_code_t spill_bucket_trim_keep(spill_array_t *array, const spill_value_t *owner, int64_t keep,
                                    spill_error_t *error)
{
    SPILL_CHECK_ARRAY(error, array, owner);
    counting_t counting = {.array = array, .keep = keep};
    spill_window_range_t range = {.newest_first = true};
    int64_t dropped;
    bool more;
    if (keep < 1)
        return spill_fail(error, SPILL_INVALID,
                          "at least one element is kept, not %lld: drop the owner instead",
                          (long long)keep);
    SPILL_TRY(spill_array_check_built(array, error));
    SPILL_TRY(spill_each_window(array, owner, &range, count_window, &counting, error));
    if (!counting.found)
        return SPILL_OK;
    SPILL_TRY(spill_windows_drop(array, owner, counting.window, INT64_MAX, &dropped, &more, error));
    const spill_trim_t trim = {.below = INT64_MAX, .keep = counting.keep};
    return trim_window(array, owner, counting.window, &trim, error);
}

void spill_windows_retain(spill_array_t *array, const spill_value_t *window)
{
    const spill_definition_t *definition = &array->definition;
    spill_value_t owner;
    const char *text;
    spill_error_t error;
    if (!spill_schema_of(definition)->has_windows || !array->retains ||
        definition->keep_seconds == 0 || !spill_window_split(window, &owner, &text))
        return;
    spill_owner_t own = {.array = array, .value = &owner};
    int64_t time_ms = spill_owner_now(&own) / 1000 - definition->keep_seconds * 1000;
    if (trim_older(array, &owner, time_ms, SPILL_BUCKET_RETAINED, &error) != SPILL_OK)
        spill_store_log(array->store, SPILL_LOG_WARNING, "retention put off: %s", error.message);
}
