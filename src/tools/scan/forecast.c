#include "tools/scan/forecast.h"

#include "tools/scan/growth.h"

#include <bson/bson.h>
#include <math.h>
#include <stdlib.h>

enum {
    /* With fewer predictions that could be compared, nothing is said. */
    PAIRS_MIN = 20,
    /* At least so many of them, and an eighth of all, are nearest. */
    NEAREST_MIN = 30,
    NEAREST_SHARE = 8,
    /* The histories are looked at from so many earlier moments at least; few of them from more. */
    MOMENTS_MIN = 4,
    MOMENTS_MAX = 24,
    PAIRS_WANTED = 128,
    /* Fewer histories than this are one experience told many times: see few_forecast. */
    HISTORIES_FEW = 8
};

/* The earliest of these moments: in 100 parts of the time that has passed. */
static const double earliest_moment = 0.55;

static const double windows[] = {1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1, 2};
enum { WINDOWS = sizeof windows / sizeof windows[0] };

/* What was predicted at an earlier moment and what came, both as log(1 + elements). */
typedef struct pair {
    double predicted;
    double error; /* what came, less what was predicted */
} pair_t;

typedef struct step {
    double horizon_ms;
    pair_t *pairs; /* ascending by prediction */
    size_t count;
} step_t;

struct spill_outlook {
    double since_ms, now_ms;
    bool few;
    step_t *steps;
    size_t count;
};

/* log(1 + elements) that come within the horizon after that moment, if rates go on. */
static double predict(const spill_history_t *history, double since_ms, double moment_ms,
                      double horizon_ms)
{
    double sum = 0;
    for (size_t i = 0; i < WINDOWS; i++) {
        double window_ms = fmin(windows[i] * horizon_ms, moment_ms - since_ms);
        sum += log1p(spill_history_between(history, moment_ms - window_ms, moment_ms) * horizon_ms /
                     window_ms);
    }
    return sum / WINDOWS;
}

/* ---- learning -------------------------------------------------------------------------------- */

static int by_prediction(const void *left, const void *right)
{
    double a = ((const pair_t *)left)->predicted, b = ((const pair_t *)right)->predicted;
    return (a > b) - (a < b);
}

/* Predict, for every history, at a moment that is to `end_ms` as now is to the horizon's end. */
static void look_back(const spill_outlook_t *outlook, const spill_history_t *const *histories,
                      size_t history_count, double end_ms, step_t *step)
{
    double passed = outlook->now_ms - outlook->since_ms;
    double moment_ms =
        outlook->since_ms + (end_ms - outlook->since_ms) * passed / (passed + step->horizon_ms);
    for (size_t i = 0; i < history_count; i++) {
        const spill_history_t *history = histories[i];
        if (spill_history_before(history, moment_ms) < SPILL_GROWTH_LENGTH_MIN)
            continue;
        double predicted = predict(history, outlook->since_ms, moment_ms, end_ms - moment_ms);
        step->pairs[step->count++] = (pair_t){
            predicted, log1p(spill_history_between(history, moment_ms, end_ms)) - predicted};
    }
}

static void learn(const spill_outlook_t *outlook, const spill_history_t *const *histories,
                  size_t history_count, step_t *step)
{
    size_t moments = history_count ? (PAIRS_WANTED + history_count - 1) / history_count : 0;
    moments = moments < MOMENTS_MIN ? MOMENTS_MIN : moments > MOMENTS_MAX ? MOMENTS_MAX : moments;
    step->pairs = bson_malloc(moments * history_count * sizeof *step->pairs + 1);
    for (size_t i = 0; i < moments; i++) {
        double part = 1 - (1 - earliest_moment) * (double)i / (double)(moments - 1);
        look_back(outlook, histories, history_count,
                  outlook->since_ms + part * (outlook->now_ms - outlook->since_ms), step);
    }
    if (step->count > 0)
        qsort(step->pairs, step->count, sizeof *step->pairs, by_prediction);
}

spill_outlook_t *spill_outlook_new(const spill_history_t *const *histories, size_t history_count,
                                   int64_t since_ms, int64_t now_ms, const double *horizons_ms,
                                   size_t horizon_count)
{
    spill_outlook_t *outlook = bson_malloc0(sizeof *outlook);
    outlook->since_ms = (double)since_ms;
    outlook->now_ms = (double)now_ms;
    outlook->few = history_count < HISTORIES_FEW;
    outlook->count = horizon_count;
    outlook->steps = bson_malloc0(horizon_count * sizeof *outlook->steps + 1);
    for (size_t i = 0; i < horizon_count; i++) {
        outlook->steps[i].horizon_ms = horizons_ms[i];
        if (since_ms < now_ms)
            learn(outlook, histories, history_count, &outlook->steps[i]);
    }
    return outlook;
}

void spill_outlook_free(spill_outlook_t *outlook)
{
    if (!outlook)
        return;
    for (size_t i = 0; i < outlook->count; i++)
        bson_free(outlook->steps[i].pairs);
    bson_free(outlook->steps);
    bson_free(outlook);
}

/* ---- forecasting ----------------------------------------------------------------------------- */

/* The first of `wanted` neighbouring pairs whose predictions are nearest to this one. */
static size_t find_nearest(const step_t *step, double predicted, size_t wanted)
{
    size_t first = 0;
    while (first + wanted < step->count && predicted - step->pairs[first].predicted >
                                               step->pairs[first + wanted].predicted - predicted)
        first++;
    return first;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Interpolated between the two values that are next to it. */
static double quantile(const double *sorted, size_t count, double part)
{
    double at = part * (double)(count - 1);
    size_t below = (size_t)at;
    size_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (sorted[above] - sorted[below]) * (at - (double)below);
}

/* A whole number of elements, and not fewer than none. */
static double elements_of(double logarithm)
{
    return fmax(0, round(expm1(logarithm)));
}

/* The errors of the predictions that were nearest to this one, ascending. Free them. */
static double *nearest_errors(const step_t *step, double predicted, size_t *count)
{
    size_t wanted = step->count / NEAREST_SHARE;
    wanted = wanted < NEAREST_MIN ? NEAREST_MIN : wanted;
    *count = wanted > step->count ? step->count : wanted;
    const pair_t *nearest = &step->pairs[find_nearest(step, predicted, *count)];
    double *errors = bson_malloc(*count * sizeof *errors);
    for (size_t i = 0; i < *count; i++)
        errors[i] = nearest[i].error;
    qsort(errors, *count, sizeof *errors, by_value);
    return errors;
}

/*
 * The earlier moments of few arrays overlap, so their errors lean to one side together: they tell
 * how far off a prediction may be, and not in which direction.
 */
static spill_forecast_t few_forecast(double predicted, double *errors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        errors[i] = fabs(errors[i]);
    qsort(errors, count, sizeof *errors, by_value);
    double spread = quantile(errors, count, 0.8);
    return (spill_forecast_t){.low = elements_of(predicted - spread),
                              .likely = elements_of(predicted),
                              .high = elements_of(predicted + spread)};
}

bool spill_outlook_forecast(const spill_outlook_t *outlook, size_t horizon,
                            const spill_history_t *history, spill_forecast_t *forecast)
{
    const step_t *step = &outlook->steps[horizon];
    size_t count;
    *forecast = (spill_forecast_t){0};
    if (step->count < PAIRS_MIN)
        return false;
    double predicted = predict(history, outlook->since_ms, outlook->now_ms, step->horizon_ms);
    double *errors = nearest_errors(step, predicted, &count);
    if (outlook->few)
        *forecast = few_forecast(predicted, errors, count);
    else
        *forecast =
            (spill_forecast_t){.low = elements_of(predicted + quantile(errors, count, 0.1)),
                               .likely = elements_of(predicted + quantile(errors, count, 0.5)),
                               .high = elements_of(predicted + quantile(errors, count, 0.9))};
    bson_free(errors);
    return true;
}

/* Where the line from one horizon's value to the next one's gets to `more`; or as before. */
static double crossing(double before_ms, double before, double at_ms, double at, double more,
                       double found_ms)
{
    if (isfinite(found_ms) || at < more)
        return found_ms;
    double part = at > before ? (more - before) / (at - before) : 0;
    return before_ms + fmin(fmax(part, 0), 1) * (at_ms - before_ms);
}

spill_reach_t spill_outlook_reach(const spill_outlook_t *outlook, const spill_history_t *history,
                                  double more)
{
    spill_reach_t reach = {INFINITY, INFINITY, INFINITY};
    spill_forecast_t now, before = {0};
    double before_ms = 0;
    for (size_t i = 0; i < outlook->count; i++) {
        double at_ms = outlook->steps[i].horizon_ms;
        if (!spill_outlook_forecast(outlook, i, history, &now))
            continue;
        reach.earliest_ms =
            crossing(before_ms, before.high, at_ms, now.high, more, reach.earliest_ms);
        reach.likely_ms =
            crossing(before_ms, before.likely, at_ms, now.likely, more, reach.likely_ms);
        reach.latest_ms = crossing(before_ms, before.low, at_ms, now.low, more, reach.latest_ms);
        before = now;
        before_ms = at_ms;
    }
    return reach;
}
