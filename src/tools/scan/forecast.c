#include "tools/scan/forecast.h"

#include "tools/scan/growth.h"

#include <bson/bson.h>
#include <math.h>
#include <stdlib.h>

enum {
    /* With fewer predictions to compare, there is no forecast. */
    PAIRS_MIN = 20,
    /* How many predictions are nearest: at least this many, and an eighth of all. */
    NEAREST_MIN = 30,
    NEAREST_SHARE = 8,
    /* From how many earlier moments each history is predicted; few histories need more. */
    MOMENTS_MIN = 4,
    MOMENTS_MAX = 24,
    PAIRS_WANTED = 128,
    /* Fewer histories than this give dependent errors: see few_forecast. */
    HISTORIES_FEW = 8
};

/* The earliest of these moments, as a share of the time that has passed. */
static const double earliest_moment = 0.55;

static const double windows[] = {1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1, 2};
enum { WINDOWS = sizeof windows / sizeof windows[0] };

/* A prediction at an earlier moment and what came, both as log(1 + elements). */
typedef struct pair {
    double predicted;
    double error; /* what came minus the prediction */
} pair_t;

typedef struct step {
    double horizon_ms;
    pair_t *pairs; /* ascending by prediction */
    size_t count;
} step_t;

struct spill_forecast_model {
    double since_ms, now_ms;
    bool few;
    step_t *steps;
    size_t count;
    size_t known; /* the first steps with enough pairs: longer horizons have fewer */
};

/* log(1 + elements) that come within the horizon after that moment, if rates continue. */
static double predict_logarithm(const spill_history_t *history, double since_ms, double moment_ms,
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

/* Predict every history at a moment that relates to `end_ms` as now relates to the horizon's end.
 */
static void predict_back(const spill_forecast_model_t *model,
                         const spill_history_t *const *histories, size_t history_count,
                         double end_ms, step_t *step)
{
    double passed = model->now_ms - model->since_ms;
    double moment_ms =
        model->since_ms + (end_ms - model->since_ms) * passed / (passed + step->horizon_ms);
    for (size_t i = 0; i < history_count; i++) {
        const spill_history_t *history = histories[i];
        if (spill_history_before(history, moment_ms) < SPILL_GROWTH_LENGTH_MIN)
            continue;
        double predicted =
            predict_logarithm(history, model->since_ms, moment_ms, end_ms - moment_ms);
        step->pairs[step->count++] = (pair_t){
            predicted, log1p(spill_history_between(history, moment_ms, end_ms)) - predicted};
    }
}

/*
 * What all arrays have in common at a moment (a holiday, a campaign) is observed at a few moments
 * only, and the present is one more. So the spread around the mean of these moments follows
 * Student's distribution, not that of the errors. Return the factor by which the 10 % quantile of
 * Student's distribution exceeds the normal one, to spread the moments' means by it. (1.28 z, and
 * the first two terms of the Cornish-Fisher expansion.)
 */
static double moment_factor(size_t moments)
{
    double k = (double)moments, freedom = k - 1;
    return (1 + 0.66 / freedom + 0.45 / (freedom * freedom)) * sqrt(1 + 1 / k);
}

static double mean_error(const pair_t *pairs, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += pairs[i].error;
    return count > 0 ? sum / (double)count : 0;
}

/* Spread the moments' means. `ends`: the index behind the last pair of each moment. */
static void spread_moments(step_t *step, const size_t *ends, size_t moments)
{
    double mean = mean_error(step->pairs, step->count), factor = moment_factor(moments);
    for (size_t i = 0; i < moments; i++) {
        size_t first = i > 0 ? ends[i - 1] : 0;
        double more = (factor - 1) * (mean_error(&step->pairs[first], ends[i] - first) - mean);
        for (size_t j = first; j < ends[i]; j++)
            step->pairs[j].error += more;
    }
}

static void learn_step(const spill_forecast_model_t *model, const spill_history_t *const *histories,
                       size_t history_count, step_t *step)
{
    size_t moments = history_count ? (PAIRS_WANTED + history_count - 1) / history_count : 0;
    moments = moments < MOMENTS_MIN ? MOMENTS_MIN : moments > MOMENTS_MAX ? MOMENTS_MAX : moments;
    step->pairs = bson_malloc(moments * history_count * sizeof *step->pairs + 1);
    size_t ends[MOMENTS_MAX];
    for (size_t i = 0; i < moments; i++) {
        double part = 1 - (1 - earliest_moment) * (double)i / (double)(moments - 1);
        predict_back(model, histories, history_count,
                     model->since_ms + part * (model->now_ms - model->since_ms), step);
        ends[i] = step->count;
    }
    spread_moments(step, ends, moments);
    if (step->count > 0)
        qsort(step->pairs, step->count, sizeof *step->pairs, by_prediction);
}

spill_forecast_model_t *spill_forecast_model_new(const spill_history_t *const *histories,
                                                 size_t history_count, int64_t since_ms,
                                                 int64_t now_ms, const double *horizons_ms,
                                                 size_t horizon_count)
{
    spill_forecast_model_t *model = bson_malloc0(sizeof *model);
    model->since_ms = (double)since_ms;
    model->now_ms = (double)now_ms;
    model->few = history_count < HISTORIES_FEW;
    model->count = horizon_count;
    model->steps = bson_malloc0(horizon_count * sizeof *model->steps + 1);
    for (size_t i = 0; i < horizon_count; i++) {
        model->steps[i].horizon_ms = horizons_ms[i];
        if (since_ms < now_ms)
            learn_step(model, histories, history_count, &model->steps[i]);
        if (model->known == i && model->steps[i].count >= PAIRS_MIN)
            model->known++;
    }
    return model;
}

void spill_forecast_model_free(spill_forecast_model_t *model)
{
    if (!model)
        return;
    for (size_t i = 0; i < model->count; i++)
        bson_free(model->steps[i].pairs);
    bson_free(model->steps);
    bson_free(model);
}

/* ---- forecasting ----------------------------------------------------------------------------- */

/* The first of `wanted` neighbouring pairs that have the nearest predictions to this one. */
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

/* Interpolate between the two nearest values. */
static double quantile(const double *sorted, size_t count, double part)
{
    double at = part * (double)(count - 1);
    size_t below = (size_t)at;
    size_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (sorted[above] - sorted[below]) * (at - (double)below);
}

/* A whole number of elements, at least 0. */
static double elements_of(double logarithm)
{
    return fmax(0, round(expm1(logarithm)));
}

/* The errors of the predictions nearest to this one, ascending. Free them. */
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
 * An interval leaves out 20 % of the outcomes, half on either side. If it begins at 0 elements,
 * nothing is below it, and all 20 % are above.
 */
static spill_forecast_t many_forecast(double predicted, const double *errors, size_t count)
{
    double low = elements_of(predicted + quantile(errors, count, 0.1));
    return (spill_forecast_t){
        .low = low,
        .likely = elements_of(predicted + quantile(errors, count, 0.5)),
        .high = elements_of(predicted + quantile(errors, count, low > 0 ? 0.9 : 0.8))};
}

/*
 * The earlier moments of few arrays overlap, so their errors lean to one side together. They show
 * how far off a prediction may be, but not in which direction.
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

/* Forecast from what was learned for that horizon alone. */
static spill_forecast_t forecast_alone(const spill_forecast_model_t *model, const step_t *step,
                                       const spill_history_t *history)
{
    size_t count;
    double predicted = predict_logarithm(history, model->since_ms, model->now_ms, step->horizon_ms);
    double *errors = nearest_errors(step, predicted, &count);
    spill_forecast_t forecast = model->few ? few_forecast(predicted, errors, count)
                                           : many_forecast(predicted, errors, count);
    bson_free(errors);
    return forecast;
}

/* Of each two numbers, the first forecast gets the lower one. */
static void put_in_order(spill_forecast_t *first, spill_forecast_t *second)
{
    spill_forecast_t a = *first, b = *second;
    *first = (spill_forecast_t){fmin(a.low, b.low), fmin(a.likely, b.likely), fmin(a.high, b.high)};
    *second =
        (spill_forecast_t){fmax(a.low, b.low), fmax(a.likely, b.likely), fmax(a.high, b.high)};
}

/*
 * Elements that came stay, so a forecast is no lower than that for a shorter horizon. Each horizon
 * was learned separately. So sort the values of each of the three curves ("rearrangement"): that
 * brings them nearer to the true rising curves and makes intervals no worse (Chernozhukov,
 * Fernandez-Val, Galichon, "Improving point and interval estimators of monotone functions by
 * rearrangement", Biometrika 2009). Returns a forecast for each of model->known steps; free it.
 */
static spill_forecast_t *forecast_all(const spill_forecast_model_t *model,
                                      const spill_history_t *history)
{
    spill_forecast_t *forecasts = bson_malloc(model->known * sizeof *forecasts + 1);
    for (size_t i = 0; i < model->known; i++)
        forecasts[i] = forecast_alone(model, &model->steps[i], history);
    for (size_t i = 1; i < model->known; i++)
        for (size_t j = i; j > 0; j--)
            put_in_order(&forecasts[j - 1], &forecasts[j]);
    return forecasts;
}

bool spill_forecast_model_forecast(const spill_forecast_model_t *model, size_t horizon,
                                   const spill_history_t *history, spill_forecast_t *forecast)
{
    *forecast = (spill_forecast_t){0};
    if (horizon >= model->known)
        return false;
    spill_forecast_t *forecasts = forecast_all(model, history);
    *forecast = forecasts[horizon];
    bson_free(forecasts);
    return true;
}

/* When the line between two horizons' values reaches `more`; else the time found before. */
static double crossing(double before_ms, double before, double at_ms, double at, double more,
                       double found_ms)
{
    if (isfinite(found_ms) || at < more)
        return found_ms;
    double part = at > before ? (more - before) / (at - before) : 0;
    return before_ms + fmin(fmax(part, 0), 1) * (at_ms - before_ms);
}

spill_reach_t spill_forecast_model_reach(const spill_forecast_model_t *model,
                                         const spill_history_t *history, double more)
{
    spill_reach_t reach = {INFINITY, INFINITY, INFINITY};
    spill_forecast_t *forecasts = forecast_all(model, history), before = {0};
    double before_ms = 0;
    for (size_t i = 0; i < model->known; i++) {
        double at_ms = model->steps[i].horizon_ms;
        const spill_forecast_t *at = &forecasts[i];
        reach.earliest_ms =
            crossing(before_ms, before.high, at_ms, at->high, more, reach.earliest_ms);
        reach.likely_ms =
            crossing(before_ms, before.likely, at_ms, at->likely, more, reach.likely_ms);
        reach.latest_ms = crossing(before_ms, before.low, at_ms, at->low, more, reach.latest_ms);
        before = *at;
        before_ms = at_ms;
    }
    bson_free(forecasts);
    return reach;
}
