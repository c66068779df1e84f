#include "tools/scan/foresight.h"

#include "util/text.h"

#include <bson/bson.h>
#include <math.h>
#include <stdio.h>

enum {
    HORIZONS = SPILL_FORESIGHT_HORIZONS,
    HORIZON_SHORTEST = 64,
    /* The one that is about a quarter of the past. */
    HORIZON_QUARTER = 15,
    /* Elements that are that part of all from the oldest are strays, for all that is known. */
    STRAYS = 200
};

struct spill_foreseer {
    int64_t since_ms, now_ms;
    double horizons_ms[HORIZONS];
    const spill_history_t *all; /* the growth's */
    spill_outlook_t *owners;    /* learned from the sample */
    spill_outlook_t *together;  /* learned from all as one */
};

double spill_foresight_horizon_ms(double past_ms, size_t index)
{
    return past_ms * pow(HORIZON_SHORTEST, (double)index / (HORIZONS - 1) - 1);
}

/* The newest time that is not later than the scan. */
static int64_t present(const spill_history_t *all, int64_t scan_ms)
{
    if (all->newest <= scan_ms)
        return all->newest;
    for (size_t i = all->count; i > 0; i--)
        if (all->points[i - 1] <= scan_ms)
            return all->points[i - 1];
    return all->oldest;
}

spill_foreseer_t *spill_foreseer_new(spill_growth_t *growth, int64_t scan_ms)
{
    spill_history_t *all = &growth->all;
    const spill_history_t *histories[SPILL_GROWTH_OWNERS];
    spill_history_sort(all);
    int64_t since_ms = all->count > 0 ? all->points[all->count / STRAYS] : 0;
    int64_t now_ms = all->count > 0 ? present(all, scan_ms) + 1 : 0;
    if (now_ms <= since_ms + HORIZON_SHORTEST)
        return NULL;
    spill_foreseer_t *foreseer = bson_malloc(sizeof *foreseer);
    double past_ms = (double)(now_ms - since_ms);
    for (size_t i = 0; i < HORIZONS; i++)
        foreseer->horizons_ms[i] = spill_foresight_horizon_ms(past_ms, i);
    for (size_t i = 0; i < growth->owner_count; i++)
        histories[i] = &growth->owners[i].history;
    foreseer->since_ms = since_ms;
    foreseer->now_ms = now_ms;
    foreseer->all = all;
    foreseer->owners = spill_outlook_new(histories, growth->owner_count, since_ms, now_ms,
                                         foreseer->horizons_ms, HORIZONS);
    foreseer->together =
        spill_outlook_new(&foreseer->all, 1, since_ms, now_ms, foreseer->horizons_ms, HORIZONS);
    return foreseer;
}

void spill_foreseer_free(spill_foreseer_t *foreseer)
{
    if (!foreseer)
        return;
    spill_outlook_free(foreseer->owners);
    spill_outlook_free(foreseer->together);
    bson_free(foreseer);
}

static void foresee(const spill_foreseer_t *foreseer, const spill_outlook_t *outlook,
                    const spill_history_t *history, double share, spill_foresight_t *foresight)
{
    double neighbours = history->seen > 1 ? (double)(history->seen - 1) : 1;
    foresight->timed = true;
    foresight->oldest_ms = history->oldest;
    foresight->newest_ms = history->newest;
    foresight->rising = (double)history->rising / neighbours;
    foresight->falling = (double)history->falling / neighbours;
    foresight->pace = spill_history_pace(history, foreseer->now_ms);
    foresight->horizon_ms = (int64_t)foreseer->horizons_ms[HORIZON_QUARTER];
    foresight->forecast =
        spill_outlook_forecast(outlook, HORIZON_QUARTER, history, &foresight->coming);
    foresight->pace.per_day *= share;
    foresight->coming.low *= share;
    foresight->coming.likely *= share;
    foresight->coming.high *= share;
}

static int64_t moment(const spill_foreseer_t *foreseer, double from_now_ms)
{
    return isfinite(from_now_ms) ? foreseer->now_ms + (int64_t)from_now_ms : SPILL_WHEN_UNKNOWN;
}

static spill_when_t when(const spill_foreseer_t *foreseer, const spill_history_t *history,
                         double share, int64_t elements)
{
    spill_when_t when = {elements, SPILL_WHEN_UNKNOWN, SPILL_WHEN_UNKNOWN, SPILL_WHEN_UNKNOWN,
                         SPILL_WHEN_UNKNOWN};
    if (!foreseer || !history || elements == 0)
        return when;
    when.as_of_ms = foreseer->now_ms - 1; /* the newest element's time */
    spill_reach_t reach = spill_outlook_reach(foreseer->owners, history, (double)elements / share);
    when.earliest_ms = moment(foreseer, reach.earliest_ms);
    when.likely_ms = moment(foreseer, reach.likely_ms);
    when.latest_ms = moment(foreseer, reach.latest_ms);
    return when;
}

/* ---- the course ------------------------------------------------------------------------------ */

static void add_past(spill_course_t *course, int64_t at_ms, double elements)
{
    course->past[course->past_count].at_ms = at_ms;
    course->past[course->past_count++].elements = round(elements);
}

/* What is older than the path's strays counts where the others begin. */
static void tell_past(const spill_foreseer_t *foreseer, const spill_growing_t *array,
                      spill_course_t *course)
{
    const spill_history_t *history = array->history;
    double scale = (double)array->length / (double)history->seen;
    size_t steps = SPILL_COURSE_PAST - 2;
    steps = steps < history->count ? steps : history->count - 1;
    for (size_t i = 0; i <= steps; i++) {
        size_t point = steps > 0 ? i * (history->count - 1) / steps : 0;
        int64_t at_ms = history->points[point];
        if (at_ms >= foreseer->now_ms)
            break;
        double elements = (double)(int64_t)point * (double)history->stride + 1;
        add_past(course, at_ms > foreseer->since_ms ? at_ms : foreseer->since_ms, elements * scale);
    }
    add_past(course, foreseer->now_ms, (double)array->length);
}

static spill_course_t *tell_course(const spill_foreseer_t *foreseer, const spill_growing_t *array)
{
    enum { EVERY = HORIZONS / SPILL_COURSE_COMING };
    spill_course_t *course = bson_malloc0(sizeof *course);
    double length = (double)array->length;
    double share = length / (double)array->history->seen;
    tell_past(foreseer, array, course);
    for (size_t i = EVERY - 1; i < HORIZONS; i += EVERY) {
        spill_forecast_t more;
        if (!spill_outlook_forecast(foreseer->owners, i, array->history, &more))
            continue;
        course->coming[course->coming_count].at_ms =
            foreseer->now_ms + (int64_t)foreseer->horizons_ms[i];
        course->coming[course->coming_count++].elements =
            (spill_forecast_t){.low = round(length + more.low * share),
                               .likely = round(length + more.likely * share),
                               .high = round(length + more.high * share)};
    }
    return course;
}

/* ---- foreseeing ------------------------------------------------------------------------------ */

void spill_foresee(const spill_foreseer_t *foreseer, const spill_growing_t *array,
                   spill_foresight_t *foresight)
{
    const spill_history_t *history = array->history;
    double element_bytes = (double)array->bytes / (double)array->length;
    double to_limit = array->room > 0 ? floor((double)array->room / element_bytes) : 0;
    int64_t to_threshold = array->elements_max - array->length;
    /* Elements for each one that has a time. */
    double share = history ? (double)array->length / (double)history->seen : 1;
    *foresight = (spill_foresight_t){0};
    foresight->threshold = when(foreseer, history, share, to_threshold > 0 ? to_threshold : 0);
    foresight->limit = when(foreseer, history, share, (int64_t)to_limit);
    if (foreseer && history)
        foresee(foreseer, foreseer->owners, history, share, foresight);
    if (foreseer && history && array->course)
        foresight->course = tell_course(foreseer, array);
}

void spill_foresee_all(const spill_foreseer_t *foreseer, spill_foresight_t *foresight)
{
    *foresight = (spill_foresight_t){0};
    foresight->threshold = when(NULL, NULL, 1, 0);
    foresight->limit = when(NULL, NULL, 1, 0);
    foresee(foreseer, foreseer->together, foreseer->all, 1, foresight);
}

bool spill_when_is_past(const spill_when_t *when, int64_t scanned_ms)
{
    return when->likely_ms < scanned_ms && scanned_ms > 0;
}

static const char *mark_of(const spill_when_t *when, int64_t scanned_ms)
{
    if (spill_when_is_past(when, scanned_ms))
        return ", in the past";
    return scanned_ms > 0 && when->earliest_ms < scanned_ms ? ", the earliest in the past" : "";
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
             as_of, mark_of(when, scanned_ms));
    return text;
}
