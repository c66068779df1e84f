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
#ifndef SPILL_TOOLS_SCAN_FORECAST_H
#define SPILL_TOOLS_SCAN_FORECAST_H

#include "tools/scan/history.h"

#include <stdbool.h>

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

#endif
