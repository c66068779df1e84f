/* Forecast an array's growth: its pace, coming elements, and when it reaches its limits. */
#include "tools/scan/forecast.h"

#include "util/text.h"

#include <bson/bson.h>
#include <math.h>
#include <stdio.h>

enum {
    HORIZONS = SPILL_GROWTH_FORECAST_HORIZONS,
    HORIZON_SHORTEST = 64,
    /* The horizon that is about a quarter of the past. */
    HORIZON_QUARTER = 15,
    /* This fraction of all elements, the oldest ones, may have wrong times. */
    STRAYS = 200
};

struct spill_growth_model {
    int64_t since_ms, now_ms, scan_ms;
    double horizons_ms[HORIZONS];
    const spill_history_t *all;       /* of the growth */
    spill_forecast_model_t *owners;   /* learned from the sample */
    spill_forecast_model_t *together; /* learned from all as one */
};

double spill_growth_forecast_horizon_ms(double past_ms, size_t index)
{
    return past_ms * pow(HORIZON_SHORTEST, (double)index / (HORIZONS - 1) - 1);
}

/* The newest time that is not after the scan. */
static int64_t present(const spill_history_t *all, int64_t scan_ms)
{
    if (all->newest <= scan_ms)
        return all->newest;
    for (size_t i = all->count; i > 0; i--)
        if (all->points[i - 1] <= scan_ms)
            return all->points[i - 1];
    return all->oldest;
}

spill_growth_model_t *spill_growth_model_new(spill_growth_t *growth, int64_t scan_ms)
{
    spill_history_t *all = &growth->all;
    const spill_history_t *histories[SPILL_GROWTH_OWNERS];
    spill_history_sort(all);
    int64_t since_ms = all->count > 0 ? all->points[all->count / STRAYS] : 0;
    int64_t now_ms = all->count > 0 ? present(all, scan_ms) + 1 : 0;
    if (now_ms <= since_ms + HORIZON_SHORTEST)
        return NULL;
    spill_growth_model_t *growth_model = bson_malloc(sizeof *growth_model);
    double past_ms = (double)(now_ms - since_ms);
    for (size_t i = 0; i < HORIZONS; i++)
        growth_model->horizons_ms[i] = spill_growth_forecast_horizon_ms(past_ms, i);
    for (size_t i = 0; i < growth->owner_count; i++)
        histories[i] = &growth->owners[i].history;
    growth_model->since_ms = since_ms;
    growth_model->now_ms = now_ms;
    growth_model->scan_ms = scan_ms;
    growth_model->all = all;
    growth_model->owners = spill_forecast_model_new(histories, growth->owner_count, since_ms,
                                                    now_ms, growth_model->horizons_ms, HORIZONS);
    growth_model->together = spill_forecast_model_new(&growth_model->all, 1, since_ms, now_ms,
                                                      growth_model->horizons_ms, HORIZONS);
    return growth_model;
}

void spill_growth_model_free(spill_growth_model_t *growth_model)
{
    if (!growth_model)
        return;
    spill_forecast_model_free(growth_model->owners);
    spill_forecast_model_free(growth_model->together);
    bson_free(growth_model);
}

static void set_forecast(const spill_growth_model_t *growth_model,
                         const spill_forecast_model_t *model, const spill_history_t *history,
                         double share, spill_growth_forecast_t *growth_forecast)
{
    double neighbours = history->seen > 1 ? (double)(history->seen - 1) : 1;
    growth_forecast->timed = true;
    growth_forecast->oldest_ms = history->oldest;
    growth_forecast->newest_ms = history->newest;
    growth_forecast->rising = (double)history->rising / neighbours;
    growth_forecast->falling = (double)history->falling / neighbours;
    growth_forecast->pace = spill_history_pace(history, growth_model->now_ms);
    growth_forecast->horizon_ms = (int64_t)growth_model->horizons_ms[HORIZON_QUARTER];
    growth_forecast->forecast =
        spill_forecast_model_forecast(model, HORIZON_QUARTER, history, &growth_forecast->coming);
    growth_forecast->pace.per_day *= share;
    growth_forecast->coming.low *= share;
    growth_forecast->coming.likely *= share;
    growth_forecast->coming.high *= share;
}

static int64_t moment(const spill_growth_model_t *growth_model, double from_now_ms)
{
    return isfinite(from_now_ms) ? growth_model->now_ms + (int64_t)from_now_ms : SPILL_WHEN_UNKNOWN;
}

static spill_when_t when(const spill_growth_model_t *growth_model, const spill_history_t *history,
                         double share, int64_t elements)
{
    spill_when_t when = {.elements = elements,
                         .earliest_ms = SPILL_WHEN_UNKNOWN,
                         .likely_ms = SPILL_WHEN_UNKNOWN,
                         .latest_ms = SPILL_WHEN_UNKNOWN,
                         .as_of_ms = SPILL_WHEN_UNKNOWN};
    if (!growth_model || !history || elements == 0)
        return when;
    when.as_of_ms = growth_model->now_ms - 1; /* the newest element's time */
    spill_reach_t reach =
        spill_forecast_model_reach(growth_model->owners, history, (double)elements / share);
    when.earliest_ms = moment(growth_model, reach.earliest_ms);
    when.likely_ms = moment(growth_model, reach.likely_ms);
    when.latest_ms = moment(growth_model, reach.latest_ms);
    return when;
}

/* ---- the course ------------------------------------------------------------------------------ */

static void add_past(spill_course_t *course, int64_t at_ms, double elements)
{
    course->past[course->past_count].at_ms = at_ms;
    course->past[course->past_count++].elements = round(elements);
}

/* Elements with times older than the path's strays count at the beginning of the others. */
static void set_past(const spill_growth_model_t *growth_model, const spill_growing_t *array,
                     spill_course_t *course)
{
    const spill_history_t *history = array->history;
    double scale = (double)array->length / (double)history->seen;
    size_t steps = SPILL_COURSE_PAST - 2;
    steps = steps < history->count ? steps : history->count - 1;
    for (size_t i = 0; i <= steps; i++) {
        size_t point = steps > 0 ? i * (history->count - 1) / steps : 0;
        int64_t at_ms = history->points[point];
        if (at_ms >= growth_model->now_ms)
            break;
        double elements = (double)(int64_t)point * (double)history->stride + 1;
        add_past(course, at_ms > growth_model->since_ms ? at_ms : growth_model->since_ms,
                 elements * scale);
    }
    add_past(course, growth_model->now_ms, (double)array->length);
}

static spill_course_t *make_course(const spill_growth_model_t *growth_model,
                                   const spill_growing_t *array)
{
    enum { EVERY = HORIZONS / SPILL_COURSE_COMING };
    spill_course_t *course = bson_malloc0(sizeof *course);
    double length = (double)array->length;
    double share = length / (double)array->history->seen;
    set_past(growth_model, array, course);
    for (size_t i = EVERY - 1; i < HORIZONS; i += EVERY) {
        spill_forecast_t more;
        if (!spill_forecast_model_forecast(growth_model->owners, i, array->history, &more))
            continue;
        course->coming[course->coming_count].at_ms =
            growth_model->now_ms + (int64_t)growth_model->horizons_ms[i];
        course->coming[course->coming_count++].elements =
            (spill_forecast_t){.low = round(length + more.low * share),
                               .likely = round(length + more.likely * share),
                               .high = round(length + more.high * share)};
    }
    return course;
}

/* ---- forecasts ------------------------------------------------------------------------------- */

void spill_growth_predict(const spill_growth_model_t *growth_model, const spill_growing_t *array,
                          spill_growth_forecast_t *growth_forecast)
{
    const spill_history_t *history = array->history;
    double element_bytes = (double)array->bytes / (double)array->length;
    double to_limit = array->room > 0 ? floor((double)array->room / element_bytes) : 0;
    int64_t to_threshold = array->elements_max - array->length;
    /* Elements per element with a time. */
    double share = history ? (double)array->length / (double)history->seen : 1;
    *growth_forecast = (spill_growth_forecast_t){0};
    growth_forecast->threshold =
        when(growth_model, history, share, to_threshold > 0 ? to_threshold : 0);
    growth_forecast->limit = when(growth_model, history, share, (int64_t)to_limit);
    if (growth_model && history)
        set_forecast(growth_model, growth_model->owners, history, share, growth_forecast);
    if (growth_model && history && array->course)
        growth_forecast->course = make_course(growth_model, array);
}

/* About how many elements have times after the scan. At least 1 if the newest one has. */
static int64_t count_later(const spill_growth_model_t *growth_model)
{
    const spill_history_t *all = growth_model->all;
    if (all->newest <= growth_model->scan_ms)
        return 0;
    double before = spill_history_before(all, (double)growth_model->scan_ms + 1);
    return (int64_t)fmax(round((double)all->seen - before), 1);
}

void spill_growth_predict_all(const spill_growth_model_t *growth_model,
                              spill_growth_forecast_t *growth_forecast)
{
    *growth_forecast = (spill_growth_forecast_t){0};
    growth_forecast->threshold = when(NULL, NULL, 1, 0);
    growth_forecast->limit = when(NULL, NULL, 1, 0);
    set_forecast(growth_model, growth_model->together, growth_model->all, 1, growth_forecast);
    growth_forecast->later = count_later(growth_model);
}

bool spill_when_is_past(const spill_when_t *when, int64_t scanned_ms)
{
    return when->likely_ms < scanned_ms && scanned_ms > 0;
}

static const char *past_note(const spill_when_t *when, int64_t scanned_ms)
{
    if (spill_when_is_past(when, scanned_ms))
        return ", in the past";
    return scanned_ms > 0 && when->earliest_ms < scanned_ms ? ", the earliest in the past" : "";
}

bool spill_when_has_interval(const spill_growth_forecast_t *growth, const spill_when_t *when)
{
    return when->elements > 0 && (growth->timed || growth->elapsed_ms > 0) &&
           when->earliest_ms != SPILL_WHEN_UNKNOWN;
}

spill_when_text_t spill_when_text(const spill_when_t *when, int64_t scanned_ms)
{
    spill_when_text_t text;
    char interval[64] = "", as_of[32] = "";
    bool likely = when->likely_ms != SPILL_WHEN_UNKNOWN;
    bool latest = when->latest_ms != SPILL_WHEN_UNKNOWN;
    if (when->earliest_ms != SPILL_WHEN_UNKNOWN)
        snprintf(interval, sizeof interval, " (80 %%: %s %s%s)",
                 spill_day_text(when->earliest_ms).text, latest ? "to " : "or later",
                 latest ? spill_day_text(when->latest_ms).text : "");
    if (when->as_of_ms != SPILL_WHEN_UNKNOWN)
        snprintf(as_of, sizeof as_of, " as of %s", spill_day_text(when->as_of_ms).text);
    snprintf(text.text, sizeof text.text, "%s%s%s%s",
             likely ? spill_day_text(when->likely_ms).text : "later than can be foreseen", interval,
             as_of, past_note(when, scanned_ms));
    return text;
}

/*
 * A forecast reaches as far ahead as the path's past is long. With each day, the past is a day
 * longer and the date a day nearer.
 */
spill_no_date_text_t spill_no_date_text(const spill_growth_forecast_t *growth,
                                        const spill_when_t *when)
{
    const double day_ms = 86400e3;
    spill_no_date_text_t text = {.text = ""};
    if (when->likely_ms != SPILL_WHEN_UNKNOWN || when->elements == 0 || !growth->timed)
        return text;
    if (growth->pace.per_day <= 0) {
        snprintf(text.text, sizeof text.text, "no date: no elements have come lately");
        return text;
    }
    double past_days = 4 * (double)growth->horizon_ms / day_ms; /* the horizon is a quarter */
    double left_days = (double)when->elements / growth->pace.per_day;
    int64_t more =
        left_days > past_days ? (int64_t)fmin(ceil((left_days - past_days) / 2), 1e6) : 1;
    snprintf(text.text, sizeof text.text, "the past of %s is too short: a date needs %s of data",
             spill_counted_text((int64_t)fmax(round(past_days), 1), "day", "days").text,
             spill_counted_text(more, "more day", "more days").text);
    return text;
}

spill_later_text_t spill_later_text(const spill_growth_forecast_t *growth, bool map)
{
    spill_later_text_t text = {.text = ""};
    if (growth->later > 0)
        snprintf(
            text.text, sizeof text.text, "about %s %s after the scan, which forecasts leave out",
            spill_counted_text(growth->later, map ? "key" : "element", map ? "keys" : "elements")
                .text,
            growth->later == 1 ? "has a time" : "have times");
    return text;
}
