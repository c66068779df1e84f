#include "core/array.h"

#include "bson/key.h"
#include "store/timed.h"
#include "util/error.h"

#include <string.h>

/* The windows of the first batch, and at most: a reader of the newest elements needs one or two. */
enum { WINDOWS_FIRST = 2, WINDOWS_AT_A_TIME = 100 };

/* ---- the walk -------------------------------------------------------------------------------- */

static spill_code_t call_one(const spill_value_t *owner, const char *text, bool last,
                             spill_each_window_fn call, void *context, bool *stop,
                             spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_bucket_name(&storage, owner, text);
    return call(context, &name, text, last, stop, error);
}

spill_code_t spill_each_window(spill_array_t *array, const spill_value_t *owner,
                               const spill_window_range_t *range, spill_each_window_fn call,
                               void *context, spill_error_t *error)
{
    bool stop = false;
    const spill_item_t *item;
    spill_timed_forget_changes();
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t key = SPILL_BUFFER_INIT;
    SPILL_TRY(spill_array_check_layout(array, true, "there are no windows", error));
    SPILL_TRY(spill_owner_key(owner, &key, error)); /* can the value be an owner? */
    int order = range->from && range->to ? strcmp(range->from, range->to) : -1;
    if (order > 0)
        return SPILL_OK;
    if (order == 0 && !range->id) /* whoever visits it sees whether it is there */
        return call_one(owner, range->from, true, call, context, &stop, error);
    SPILL_SCOPED(spill_cursor_release)
    spill_cursor_t cursor = {.store = array->store,
                             .definition = &array->definition,
                             .binding = &array->binding,
                             .query = {.list = SPILL_LIST_WINDOWS,
                                       .limit = WINDOWS_FIRST,
                                       .windows = {.owner = owner,
                                                   .from = range->from,
                                                   .to = range->to,
                                                   .newest_first = range->newest_first,
                                                   .id = range->id}},
                             .limit_max = WINDOWS_AT_A_TIME};
    do {
        SPILL_TRY(spill_cursor_next(&cursor, &item, error));
        if (item)
            SPILL_TRY(call_one(owner, item->text, spill_cursor_at_end(&cursor), call, context,
                               &stop, error));
    } while (item && !stop);
    return SPILL_OK;
}

/* ---- statistics ------------------------------------------------------------------------------ */

typedef struct summing {
    spill_array_t *array;
    spill_bucket_window_fn visit;
    void *context;
    spill_statistics_t all;
    int64_t windows;
} summing_t;

/* A document wholly below the head's trim watermark was trimmed, and is not emptied yet. */
static void add_document(const spill_state_t *state, int64_t watermark,
                         spill_bucket_window_t *window)
{
    spill_statistics_t own;
    window->parts++;
    if (spill_state_end(state) <= watermark)
        return;
    spill_window_stats_derive(&state->window_stats, state->live, &own);
    spill_statistics_join(&window->statistics, &own);
}

static spill_code_t sum_window(summing_t *summing, const spill_value_t *name,
                               spill_bucket_window_t *window, spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_init(&own, summing->array, name, error));
    SPILL_TRY(spill_owner_read_state(&own, SPILL_HEAD, &head, error));
    if (head.state.present)
        add_document(&head.state, head.state.watermark, window);
    int64_t missing = 0;
    for (int64_t number = 0; number < head.state.pages; number++) {
        SPILL_TRY(spill_owner_read_state(&own, number, &page, error));
        if (page.state.present && page.state.incarnation == head.state.incarnation)
            add_document(&page.state, head.state.watermark, window);
        missing = page.state.present ? 0 : missing + 1;
        SPILL_TRY(spill_owner_check_missing(&own, &head.state, number, missing, error));
    }
    return SPILL_OK;
}

static spill_code_t show_window(void *context, const spill_value_t *name, const char *text,
                                bool last, bool *stop, spill_error_t *error)
{
    (void)last;
    (void)stop;
    summing_t *summing = context;
    spill_bucket_window_t window = {.window = text};
    SPILL_TRY(sum_window(summing, name, &window, error));
    if (window.parts == 0) /* dropped meanwhile */
        return SPILL_OK;
    spill_statistics_join(&summing->all, &window.statistics);
    summing->windows++;
    bool stopped = summing->visit && !summing->visit(summing->context, &window);
    return stopped ? spill_walk_stopped(error) : SPILL_OK;
}

spill_code_t spill_bucket_windows(spill_array_t *array, const spill_value_t *owner,
                                  const char *from, const char *to, spill_order_t order,
                                  spill_bucket_window_fn visit, void *context, spill_error_t *error)
{
    SPILL_CHECK_ARRAY(error, array, owner);
    SPILL_CHECK_ARGUMENT(error, order == SPILL_NEWEST_FIRST || order == SPILL_OLDEST_FIRST,
                         "there is no such order");
    SPILL_CHECK_ARGUMENT(error, visit != NULL, "the argument 'visit' is NULL");
    summing_t summing = {.array = array, .visit = visit, .context = context};
    spill_window_range_t range = {
        .from = from, .to = to, .newest_first = order == SPILL_NEWEST_FIRST};
    return spill_each_window(array, owner, &range, show_window, &summing, error);
}

spill_code_t spill_bucket_statistics(spill_array_t *array, const spill_value_t *owner,
                                     const char *from, const char *to,
                                     spill_statistics_t *statistics, int64_t *windows,
                                     spill_error_t *error)
{
    if (statistics != NULL)
        *statistics = (spill_statistics_t){.version = SPILL_STATISTICS_VERSION};
    if (windows != NULL)
        *windows = 0;
    SPILL_CHECK_ARRAY(error, array, owner, statistics);
    summing_t summing = {.array = array};
    spill_window_range_t range = {.from = from, .to = to};
    spill_code_t code = spill_each_window(array, owner, &range, show_window, &summing, error);
    *statistics = summing.all;
    statistics->version = SPILL_STATISTICS_VERSION;
    if (windows)
        *windows = summing.windows;
    return code;
}

/* ---- dropping -------------------------------------------------------------------------------- */

typedef struct dropping {
    spill_array_t *array;
    const char *before; /* or NULL */
    int64_t limit;
    int64_t dropped;
    bool more;
} dropping_t;

static spill_code_t drop_window(void *context, const spill_value_t *name, const char *window,
                                bool last, bool *stop, spill_error_t *error)
{
    (void)last;
    dropping_t *dropping = context;
    *stop = dropping->before && strcmp(window, dropping->before) >= 0;
    dropping->more = !*stop && dropping->dropped == dropping->limit;
    *stop = *stop || dropping->more;
    if (*stop)
        return SPILL_OK;
    spill_code_t code = spill_array_drop_owner(dropping->array, name, error);
    dropping->dropped += code == SPILL_OK ? 1 : 0;
    return code == SPILL_NOT_FOUND ? SPILL_OK : code; /* another client was faster */
}

spill_code_t spill_windows_drop(spill_array_t *array, const spill_value_t *owner,
                                const char *before, int64_t limit, int64_t *dropped, bool *more,
                                spill_error_t *error)
{
    dropping_t dropping = {.array = array, .before = before, .limit = limit};
    spill_window_range_t range = {.to = before};
    spill_code_t code = spill_each_window(array, owner, &range, drop_window, &dropping, error);
    *dropped = dropping.dropped;
    *more = dropping.more;
    return code;
}

spill_code_t spill_bucket_drop_before(spill_array_t *array, const spill_value_t *owner,
                                      const char *window, int64_t *dropped, spill_error_t *error)
{
    if (dropped != NULL)
        *dropped = 0;
    SPILL_CHECK_ARRAY(error, array, owner);
    int64_t count = 0;
    bool more;
    SPILL_TRY(spill_array_check_layout(array, true, "there are no windows", error));
    if (window != NULL)
        SPILL_TRY(spill_window_check(&array->definition, window, error));
    spill_code_t code = spill_windows_drop(array, owner, window, INT64_MAX, &count, &more, error);
    if (dropped) /* also after an error */
        *dropped = count;
    if (code == SPILL_OK && window == NULL && count == 0)
        return spill_fail(error, SPILL_NOT_FOUND, "there is no such owner in '%s'",
                          array->definition.name);
    return code;
}

spill_code_t spill_bucket_drop_older(spill_array_t *array, const spill_value_t *owner,
                                     int64_t time_ms, int64_t *dropped, spill_error_t *error)
{
    char window[SPILL_WINDOW_SIZE];
    if (dropped)
        *dropped = 0;
    SPILL_CHECK_ARRAY(error, array, owner);
    SPILL_TRY(spill_array_check_layout(array, true, "there are no windows", error));
    SPILL_TRY(spill_window_of_time(array->definition.window, time_ms, window, error));
    return spill_bucket_drop_before(array, owner, window, dropped, error);
}
