/*
 * Random schedules. SPILLWAY_SCHEDULES is their number (20000, or 4000 with a sanitizer),
 * SPILLWAY_SEED the first seed (1), SPILLWAY_ENGINE the store (model or embedded; by default three
 * quarters run on model, one quarter on embedded). A single schedule prints everything that happens
 * in it.
 */
#include "support/effort.h"
#include "world.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SCHEDULES_USUAL = 20000 };

static sim_coverage_t coverage;

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && text[0] ? strtoull(text, NULL, 10) : otherwise;
}

static uint64_t schedules(void)
{
    return number_from("SPILLWAY_SCHEDULES",
                       (uint64_t)effort(SCHEDULES_USUAL, SCHEDULES_USUAL, 4000));
}

static const char *engine_name(sim_engine_t engine)
{
    return engine == SIM_MODEL ? "model" : "embedded";
}

/* The number of schedules for this engine. */
static uint64_t share_of_engine(sim_engine_t engine)
{
    const char *chosen = getenv("SPILLWAY_ENGINE");
    if (chosen && chosen[0])
        return strcmp(chosen, engine_name(engine)) == 0 ? schedules() : 0;
    uint64_t embedded = schedules() / 4;
    return engine == SIM_EMBEDDED ? embedded : schedules() - embedded;
}

/* Run the failed schedule again and print what happens. */
static void explain(sim_world_t *world, uint64_t seed)
{
    char failure[sizeof world->failure];
    memcpy(failure, world->failure, sizeof failure);
    world->trace = stderr;
    fprintf(stderr, "\nseed %" PRIu64 ", %s store: %s\n", seed, engine_name(world->engine),
            failure);
    if (sim_schedule_run(world, seed) || strcmp(failure, world->failure) != 0)
        fprintf(stderr, "this run differs: the simulation is not deterministic\n");
    fprintf(stderr,
            "again: SPILLWAY_ENGINE=%s SPILLWAY_SCHEDULES=1 SPILLWAY_SEED=%" PRIu64
            " tests/simulation/test_simulation\n\n",
            engine_name(world->engine), seed);
    world->trace = NULL;
    fail_msg("seed %" PRIu64 ", %s store: %s", seed, engine_name(world->engine), failure);
}

static void run_schedules(sim_engine_t engine)
{
    uint64_t count = share_of_engine(engine);
    uint64_t first = number_from("SPILLWAY_SEED", 1);
    sim_world_t world;
    sim_world_init(&world, engine, &coverage);
    if (schedules() == 1)
        world.trace = stderr;
    for (uint64_t seed = first; seed < first + count; seed++)
        if (!sim_schedule_run(&world, seed))
            explain(&world, seed);
    sim_world_release(&world);
}

static void model_store(void **state)
{
    (void)state;
    run_schedules(SIM_MODEL);
}

static void embedded_store(void **state)
{
    (void)state;
    run_schedules(SIM_EMBEDDED);
}

static bool both_engines(sim_event_t event)
{
    (void)event;
    return schedules() >= SCHEDULES_USUAL && getenv("SPILLWAY_ENGINE") == NULL;
}

/* Every counted event occurred in some schedule. */
static void every_event_was_reached(void **state)
{
    (void)state;
    int missing = sim_coverage_report(&coverage, both_engines, stdout);
    fflush(stdout);
    assert_int_equal(missing, 0);
}

/* The same seed makes the same decisions, so that a failure can be replayed. */
static void same_seed_repeats_schedule(void **state)
{
    (void)state;
    sim_coverage_t first = {0};
    sim_coverage_t second = {0};
    for (int i = 0; i < 2; i++) {
        sim_world_t world;
        sim_world_init(&world, SIM_MODEL, i == 0 ? &first : &second);
        for (uint64_t seed = 1; seed <= 50; seed++)
            assert_true(sim_schedule_run(&world, seed));
        sim_world_release(&world);
    }
    assert_memory_equal(&first, &second, sizeof first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_store),
        cmocka_unit_test(embedded_store),
        cmocka_unit_test(every_event_was_reached),
        cmocka_unit_test(same_seed_repeats_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
