/*
 * How many elements will come, and when an array will have so many, each with an 80 % interval.
 *
 * The prediction is that rates go on: the geometric mean of those over the last 1/16, 1/8, 1/4,
 * 1/2, 1 and 2 horizons. How far that can be trusted is learned from the arrays themselves: the
 * same is predicted at earlier moments, from what was there then, with horizons in the same
 * proportion to the past, and compared with what came. The errors (as ratios) of the predictions
 * that were nearest in size give the correction and the interval (conformal prediction: Vovk,
 * Gammerman and Shafer, "Algorithmic Learning in a Random World"). So a collection of steady arrays
 * gets narrow intervals, and one of bursts gets wide ones, without a model of either. Where there
 * are fewer than eight arrays, predictions are not corrected and intervals are symmetric ratios.
 *
 * It knows of nothing that has not happened before: a bot that is switched off, a new campaign. It
 * does not look further ahead than it can look back. Elements that were removed again are not seen.
 * docs/internals/forecast.md has the results of back-tests on real streams.
 */
#ifndef SPILL_TOOLS_SCAN_FORECAST_H
#define SPILL_TOOLS_SCAN_FORECAST_H

#include "tools/scan/history.h"

#include <stdbool.h>

typedef struct spill_forecast {
    double low, likely, high; /* 10 %, 50 % and 90 % */
} spill_forecast_t;

/* What was learned of histories for some horizons. */
typedef struct spill_forecast_model spill_forecast_model_t;

/*
 * Learn. `histories` are sorted (spill_history_sort) and borrowed for the call; they are best a
 * fair sample of arrays that have SPILL_GROWTH_LENGTH_MIN elements or more: spill_growth_t has one.
 * `since_ms` is when the first elements came, `now_ms` is after the last; horizons are in
 * milliseconds, ascending, at most now - since. Free with spill_forecast_model_free. Cost:
 * O(horizons * histories * log(points)), some milliseconds.
 */
spill_forecast_model_t *spill_forecast_model_new(const spill_history_t *const *histories,
                                                 size_t history_count, int64_t since_ms,
                                                 int64_t now_ms, const double *horizons_ms,
                                                 size_t horizon_count);
void spill_forecast_model_free(spill_forecast_model_t *model); /* NULL is accepted */

/*
 * Elements that come to the array of `history` (sorted) within the horizon of that index: no fewer
 * than within a shorter one, each of the three. False where the histories were too few to learn
 * from.
 */
bool spill_forecast_model_forecast(const spill_forecast_model_t *model, size_t horizon,
                                   const spill_history_t *history, spill_forecast_t *forecast);

/*
 * How long until the array of `history` (sorted) has got `more` elements, in milliseconds from now:
 * by the high end of the intervals, by the likely course, by their low end. Interpolated between
 * horizons. INFINITY: not within the last of them.
 */
typedef struct spill_reach {
    double earliest_ms, likely_ms, latest_ms;
} spill_reach_t;

spill_reach_t spill_forecast_model_reach(const spill_forecast_model_t *model,
                                         const spill_history_t *history, double more);

#endif
