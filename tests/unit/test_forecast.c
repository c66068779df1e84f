/* Forecasts learn from the histories how reliable a rate is. */
#include "tools/scan/forecast.h"
#include "tools/scan/growth.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { OWNERS = 200, TAUGHT = 100, DAYS = 400, CUT = 300 };

static const double day_ms = 86400e3;

typedef struct world {
    spill_history_t history[OWNERS]; /* until the cut */
    const spill_history_t *histories[OWNERS];
    double came[OWNERS]; /* arrivals after the cut */
    uint64_t random;
} world_t;

static double next_random(world_t *world)
{
    world->random = world->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(world->random >> 11) / (double)(UINT64_C(1) << 53);
}

/* Add elements of that day. */
static void add_day(world_t *world, size_t owner, int64_t day, int64_t count)
{
    if (day >= CUT)
        world->came[owner] += (double)count;
    for (int64_t i = 0; day < CUT && i < count; i++)
        spill_history_add(&world->history[owner],
                          (int64_t)(day_ms * ((double)day + (double)i / (double)count)));
}

/* Steady: each owner has its own daily number, with noise. Bursts: many elements on rare days. */
static world_t *make_world(bool bursts)
{
    world_t *world = calloc(1, sizeof *world);
    world->random = 7;
    for (size_t i = 0; i < OWNERS; i++) {
        spill_history_init(&world->history[i], SPILL_GROWTH_POINTS);
        int64_t daily = 2 + (int64_t)(i % 20);
        for (int64_t day = 0; day < DAYS; day++) {
            bool burst = next_random(world) < 0.03;
            int64_t steady = (int64_t)((double)daily * 2 * next_random(world));
            add_day(world, i, day, !bursts ? steady : burst ? 30 * daily : 0);
        }
        spill_history_sort(&world->history[i]);
        world->histories[i] = &world->history[i];
    }
    return world;
}

static void free_world(world_t *world)
{
    for (size_t i = 0; i < OWNERS; i++)
        spill_history_release(&world->history[i]);
    free(world);
}

typedef struct outcome {
    double hit;   /* share of the owners with their arrivals within the interval */
    double error; /* mean |log| of the ratio */
    double width; /* mean log of high / low */
} outcome_t;

/* Train on the first half and forecast the other half. */
static outcome_t forecast_second_half(const world_t *world)
{
    outcome_t outcome = {0};
    double horizon_ms = (DAYS - CUT) * day_ms;
    spill_forecast_model_t *model = spill_forecast_model_new(
        world->histories, TAUGHT, 0, (int64_t)(CUT * day_ms), &horizon_ms, 1);
    for (size_t i = TAUGHT; i < OWNERS; i++) {
        spill_forecast_t forecast;
        assert_true(spill_forecast_model_forecast(model, 0, &world->history[i], &forecast));
        assert_true(forecast.low <= forecast.likely && forecast.likely <= forecast.high);
        outcome.hit += world->came[i] >= forecast.low && world->came[i] <= forecast.high;
        outcome.error += fabs(log1p(world->came[i]) - log1p(forecast.likely));
        outcome.width += log1p(forecast.high) - log1p(forecast.low);
    }
    spill_forecast_model_free(model);
    outcome.hit /= OWNERS - TAUGHT;
    outcome.error /= OWNERS - TAUGHT;
    outcome.width /= OWNERS - TAUGHT;
    return outcome;
}

static void steady_arrays_are_predictable(void **state)
{
    (void)state;
    world_t *world = make_world(false);
    outcome_t outcome = forecast_second_half(world);
    assert_true(outcome.hit > 0.65 && outcome.hit < 0.95);
    assert_true(outcome.error < 0.15);
    assert_true(outcome.width < 0.5);
    free_world(world);
}

static void bursts_are_uncertain(void **state)
{
    (void)state;
    world_t *world = make_world(true);
    outcome_t outcome = forecast_second_half(world);
    assert_true(outcome.hit > 0.5 && outcome.hit < 0.95);
    assert_true(outcome.width > 1);
    free_world(world);
}

/* Ten years of one element a day: the limit is reached when simple arithmetic says. */
static void steady_array_reaches_limit_on_time(void **state)
{
    (void)state;
    enum { STEPS = 40 };
    double horizons_ms[STEPS];
    world_t *world = make_world(false);
    for (size_t i = 0; i < STEPS; i++)
        horizons_ms[i] = CUT * day_ms * (double)(i + 1) / STEPS;
    spill_forecast_model_t *model = spill_forecast_model_new(
        world->histories, OWNERS, 0, (int64_t)(CUT * day_ms), horizons_ms, STEPS);
    for (size_t i = 0; i < OWNERS; i += 13) {
        double rate = (double)world->history[i].seen / CUT;
        spill_reach_t reach = spill_forecast_model_reach(model, &world->history[i], 100 * rate);
        assert_true(reach.earliest_ms <= reach.likely_ms);
        assert_true(reach.likely_ms <= reach.latest_ms);
        assert_true(isfinite(reach.latest_ms));
        assert_true(fabs(reach.likely_ms / day_ms - 100) < 25);
        /* Beyond the forecast's horizon. */
        reach = spill_forecast_model_reach(model, &world->history[i], 3 * CUT * rate);
        assert_true(isinf(reach.earliest_ms) && isinf(reach.likely_ms) && isinf(reach.latest_ms));
        /* The limit is reached already. */
        reach = spill_forecast_model_reach(model, &world->history[i], 0);
        assert_true(reach.earliest_ms == 0 && reach.likely_ms == 0 && reach.latest_ms == 0);
    }
    spill_forecast_model_free(model);
    free_world(world);
}

/* Elements accumulate: a longer horizon never has fewer, by any of the three estimates. */
static void forecasts_do_not_fall(void **state)
{
    (void)state;
    enum { STEPS = 24 };
    double horizons_ms[STEPS];
    world_t *world = make_world(true);
    for (size_t i = 0; i < STEPS; i++)
        horizons_ms[i] = CUT * day_ms * (double)(i + 1) / STEPS;
    spill_forecast_model_t *model = spill_forecast_model_new(
        world->histories, OWNERS, 0, (int64_t)(CUT * day_ms), horizons_ms, STEPS);
    for (size_t i = 0; i < OWNERS; i++) {
        spill_forecast_t before = {0}, forecast;
        for (size_t j = 0; j < STEPS; j++, before = forecast) {
            assert_true(spill_forecast_model_forecast(model, j, &world->history[i], &forecast));
            assert_true(forecast.low >= before.low && forecast.likely >= before.likely);
            assert_true(forecast.high >= before.high);
            assert_true(forecast.low <= forecast.likely && forecast.likely <= forecast.high);
        }
    }
    spill_forecast_model_free(model);
    free_world(world);
}

/* If arrays become silent, an interval begins at zero and still excludes two in ten. */
static void silence_is_forecast(void **state)
{
    (void)state;
    double horizon_ms = (DAYS - CUT) * day_ms;
    double hit = 0, from_none = 0;
    world_t *world = make_world(false);
    for (size_t i = 0; i < OWNERS; i++) {
        spill_history_clear(&world->history[i]);
        world->came[i] = 0;
        for (int64_t day = 0, silent = 0; day < DAYS; day++) {
            silent = silent || next_random(world) < 0.005;
            add_day(world, i, day, silent ? 0 : (int64_t)(20 * next_random(world)));
        }
        spill_history_sort(&world->history[i]);
    }
    spill_forecast_model_t *model = spill_forecast_model_new(
        world->histories, TAUGHT, 0, (int64_t)(CUT * day_ms), &horizon_ms, 1);
    for (size_t i = TAUGHT; i < OWNERS; i++) {
        spill_forecast_t forecast;
        assert_true(spill_forecast_model_forecast(model, 0, &world->history[i], &forecast));
        hit += world->came[i] >= forecast.low && world->came[i] <= forecast.high;
        from_none += forecast.low == 0;
    }
    assert_true(hit / (OWNERS - TAUGHT) > 0.7 && hit / (OWNERS - TAUGHT) < 0.95);
    assert_true(from_none / (OWNERS - TAUGHT) > 0.7);
    spill_forecast_model_free(model);
    free_world(world);
}

/* A single array has only its own past. */
static void forecast_of_one_array(void **state)
{
    (void)state;
    world_t *world = make_world(false);
    double horizon_ms = (DAYS - CUT) * day_ms;
    spill_forecast_model_t *model =
        spill_forecast_model_new(world->histories, 1, 0, (int64_t)(CUT * day_ms), &horizon_ms, 1);
    spill_forecast_t forecast;
    assert_true(spill_forecast_model_forecast(model, 0, &world->history[0], &forecast));
    double likely = (double)world->history[0].seen * (DAYS - CUT) / CUT;
    assert_true(fabs(forecast.likely / likely - 1) < 0.2);
    assert_true(forecast.low < forecast.likely && forecast.likely < forecast.high);
    spill_forecast_model_free(model);
    free_world(world);
}

static void too_little_data_gives_no_forecast(void **state)
{
    (void)state;
    spill_history_t history;
    const spill_history_t *only = &history;
    double horizon_ms = day_ms;
    spill_forecast_t forecast = {1, 1, 1};
    spill_history_init(&history, SPILL_GROWTH_POINTS);
    for (int64_t i = 0; i < SPILL_GROWTH_LENGTH_MIN - 1; i++)
        spill_history_add(&history, (int64_t)day_ms * i);
    spill_forecast_model_t *model =
        spill_forecast_model_new(&only, 1, 0, 30 * (int64_t)day_ms, &horizon_ms, 1);
    assert_false(spill_forecast_model_forecast(model, 0, &history, &forecast));
    assert_true(forecast.high == 0);
    assert_true(isinf(spill_forecast_model_reach(model, &history, 1).earliest_ms));
    spill_forecast_model_free(model);
    /* No arrays at all, and no time with any arrival. */
    model = spill_forecast_model_new(NULL, 0, 0, 10, &horizon_ms, 1);
    assert_false(spill_forecast_model_forecast(model, 0, &history, &forecast));
    spill_forecast_model_free(model);
    model = spill_forecast_model_new(&only, 1, 5, 5, &horizon_ms, 1);
    assert_false(spill_forecast_model_forecast(model, 0, &history, &forecast));
    spill_forecast_model_free(model);
    spill_forecast_model_free(NULL);
    spill_history_release(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steady_arrays_are_predictable),
        cmocka_unit_test(bursts_are_uncertain),
        cmocka_unit_test(steady_array_reaches_limit_on_time),
        cmocka_unit_test(forecast_of_one_array),
        cmocka_unit_test(forecasts_do_not_fall),
        cmocka_unit_test(silence_is_forecast),
        cmocka_unit_test(too_little_data_gives_no_forecast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
