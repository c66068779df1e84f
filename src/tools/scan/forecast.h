/* The forecast of an array's growth. */
#ifndef SPILL_TOOLS_SCAN_FORECAST_H
#define SPILL_TOOLS_SCAN_FORECAST_H

#include "tools/scan/growth.h"

#include <stdbool.h>

/* ---- rates and intervals --------------------------------------------------------------------- */

/*
 * Forecast: how many elements will come, and when an array will have a given number, each with an
 * 80 % interval.
 *
 * The prediction assumes that rates continue. It is the geometric mean of the rates over the last
 * 1/16, 1/8, 1/4, 1/2, 1 and 2 horizons. The arrays themselves show how far that can be trusted:
 * the same prediction is made at earlier moments, from the data before them, with horizons in the
 * same proportion to the past, and compared with what came. The errors (as ratios) of the
 * predictions of nearest size give the correction and the interval (conformal prediction: Vovk,
 * Gammerman and Shafer, "Algorithmic Learning in a Random World"). So steady arrays get narrow
 * intervals, and arrays with bursts get wide ones, without a model of either. With fewer than eight
 * arrays, predictions are not corrected and intervals are symmetric ratios.
 *
 * A forecast cannot know what has not happened before, such as a bot that is switched off or a new
 * campaign. It looks no further ahead than it can look back. Elements that were removed again are
 * not visible. docs/internals/forecast.md has the results of back-tests on real streams.
 */

typedef struct spill_forecast {
    double low, likely, high; /* 10 %, 50 % and 90 % */
} spill_forecast_t;

/* What was learned from histories for some horizons. */
typedef struct spill_forecast_model spill_forecast_model_t;

/*
 * Learn from `histories`, which are sorted (spill_history_sort) and borrowed for the call. They
 * should be a fair sample of arrays with SPILL_GROWTH_LENGTH_MIN elements or more, as
 * spill_growth_t has it. `since_ms` is when the first elements came, `now_ms` is after the last.
 * Horizons are in milliseconds, ascending, at most now - since. Free with
 * spill_forecast_model_free. Cost: O(horizons * histories * log(points)), some milliseconds.
 */
spill_forecast_model_t *spill_forecast_model_new(const spill_history_t *const *histories,
                                                 size_t history_count, int64_t since_ms,
                                                 int64_t now_ms, const double *horizons_ms,
                                                 size_t horizon_count);
void spill_forecast_model_free(spill_forecast_model_t *model); /* NULL is accepted */

/*
 * Forecast the elements that come to the array of `history` (sorted) within the horizon of that
 * index. Each of the three numbers is at least as high as for a shorter horizon. False: too few
 * histories to learn from.
 */
bool spill_forecast_model_forecast(const spill_forecast_model_t *model, size_t horizon,
                                   const spill_history_t *history, spill_forecast_t *forecast);

/*
 * Forecast when the array of `history` (sorted) will have got `more` elements, in milliseconds from
 * now: by the high ends of the intervals, by the likely numbers, and by the low ends. Values
 * between horizons are interpolated. INFINITY: not within the last horizon.
 */
typedef struct spill_reach {
    double earliest_ms, likely_ms, latest_ms;
} spill_reach_t;

spill_reach_t spill_forecast_model_reach(const spill_forecast_model_t *model,
                                         const spill_history_t *history, double more);

/* ---- pace, coming elements, and the dates of limits ------------------------------------------ */

/*
 * The forecast of an array's growth: its pace, the elements that will come, and when it reaches its
 * threshold and the document limit. It is made from a path's growth (growth.h) by forecast.h.
 */

/* Milliseconds since 1970. */
typedef struct spill_when {
    int64_t elements; /* still to come; 0: the array is there already */
    /* SPILL_WHEN_UNKNOWN: later than the forecast reaches, or times are unknown. */
    int64_t earliest_ms, likely_ms, latest_ms;
    /* The present of the forecast: the newest element of the path, or the scan if elements have no
     * times. Nothing is known of what came after it. SPILL_WHEN_UNKNOWN: there is no forecast. */
    int64_t as_of_ms;
    bool past; /* derived: the likely date is before the scan */
} spill_when_t;

#define SPILL_WHEN_UNKNOWN INT64_MAX

/* Report whether the likely date is before the scan (0: time of the scan unknown). */
bool spill_when_is_past(const spill_when_t *when, int64_t scanned_ms);

/*
 * "2027-03-01 (80 %: 2026-12-24 to 2028-02-02) as of 2026-11-20", or that it is later than can be
 * foreseen. A text says if dates are before the scan: "in the past", or "the earliest in the past".
 */
typedef struct spill_when_text {
    char text[160];
} spill_when_text_t;
spill_when_text_t spill_when_text(const spill_when_t *when, int64_t scanned_ms);

/* The past and likely future number of an array's elements: the points of a plot. */
enum { SPILL_COURSE_PAST = 34, SPILL_COURSE_COMING = 8 };

typedef struct spill_course {
    struct {
        int64_t at_ms;
        double elements;
    } past[SPILL_COURSE_PAST]; /* evenly spaced in elements; the last is the present */
    size_t past_count;
    struct {
        int64_t at_ms;
        spill_forecast_t elements; /* the forecast of the array's number of elements */
    } coming[SPILL_COURSE_COMING]; /* up to as far ahead as the past reaches back */
    size_t coming_count;
} spill_course_t;

typedef struct spill_growth_forecast {
    spill_when_t threshold; /* elements */
    spill_when_t limit;     /* bytes of the document, by the mean size of its elements */

    /* If elements have no times, or too few have, only the comparison with an earlier scan is set.
     */
    bool timed;
    int64_t oldest_ms, newest_ms; /* of its elements; strays included */
    double rising, falling;       /* shares of the neighbours that are in order, or in reverse */
    int64_t later;                /* of a path: about how many have times after the scan */
    spill_pace_t pace;

    /* Compared with an earlier scan. elapsed 0: no comparison, or the owner was not among the
     * largest then. Without times, the pace per day is computed from it. */
    int64_t elapsed_ms;
    int64_t added;        /* elements; negative if there are fewer now */
    double added_per_day; /* derived */

    bool forecast;           /* the fields below are set: there was enough to learn from */
    int64_t horizon_ms;      /* a length of time: about a quarter of the path's past */
    spill_forecast_t coming; /* elements that come in it */

    spill_course_t *course; /* NULL: unknown, or not requested; free with bson_free */
} spill_growth_forecast_t;

/*
 * Why the text of this date (spill_when_text) has no likely date, and what is needed for one; "" if
 * it has one, or if elements have no times.
 */
typedef struct spill_no_date_text {
    char text[256];
} spill_no_date_text_t;
spill_no_date_text_t spill_no_date_text(const spill_growth_forecast_t *growth,
                                        const spill_when_t *when);

/* How many elements of a path the forecasts leave out, because their times are after the scan. */
typedef struct spill_later_text {
    char text[128];
} spill_later_text_t;

/* "about 5 elements have times after the scan, ..."; "" if none has. `map`: it has keys. */
spill_later_text_t spill_later_text(const spill_growth_forecast_t *growth, bool map);

/* Does the text of this date (spill_when_text) have an interval? */
bool spill_when_has_interval(const spill_growth_forecast_t *growth, const spill_when_t *when);

/* What "80 %" means in these texts. */
#define SPILL_INTERVAL_MEANING                                                                     \
    "80 % behind a date: in about eight of ten cases the true date is within these dates."

/*
 * The horizons range from a 64th of the past to all of it, each a fifth longer than the last; this
 * is the one of that index.
 */
enum { SPILL_GROWTH_FORECAST_HORIZONS = 24 };
double spill_growth_forecast_horizon_ms(double past_ms, size_t index);

/* What was learned from one path. */
typedef struct spill_growth_model spill_growth_model_t;

/*
 * Learn from a path's growth; its `all` gets sorted. The present is the newest element's time, or
 * `scan_ms` if that is earlier: dumps end before now, and some times are in the future. NULL: no
 * time has passed in which anything came. Free with spill_growth_model_free.
 */
spill_growth_model_t *spill_growth_model_new(spill_growth_t *growth, int64_t scan_ms);
void spill_growth_model_free(spill_growth_model_t *growth_model); /* NULL is accepted */

/* An array whose future is to be forecast. */
typedef struct spill_growing {
    int64_t length;                 /* elements, with a time or not */
    int64_t bytes;                  /* of all elements */
    int64_t room;                   /* bytes until its document is full */
    int64_t elements_max;           /* the threshold */
    bool course;                    /* compute its course */
    const spill_history_t *history; /* sorted; or NULL */
} spill_growing_t;

/* `growth_model` may be NULL: then only the numbers of elements still to come are known. */
void spill_growth_predict(const spill_growth_model_t *growth_model, const spill_growing_t *array,
                          spill_growth_forecast_t *growth_forecast);

/* The same for all arrays of the path together, which have neither threshold nor limit. */
void spill_growth_predict_all(const spill_growth_model_t *growth_model,
                              spill_growth_forecast_t *growth_forecast);

#endif
