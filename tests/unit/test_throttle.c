/* The throttle, on a simulated clock: the test itself takes no time. */
#include "tools/throttle.h"
#include "util/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct world {
    int64_t now_us;
    int64_t longest_sleep_us;
    int64_t slow_until_us; /* the server is slow until then */
    int64_t lags_until_us; /* a secondary is behind until then */
    bool unreachable;
    int64_t stop_at_us;       /* 0: never */
    spill_job_pace_t *resume; /* its job is resumed at remove_at_us */
    const char *remove_at_end;
    int64_t remove_at_us;
    spill_job_pace_t *change; /* its rate becomes new_rate at change_at_us */
    int64_t change_at_us, new_rate;
    int notices;
    bool waits; /* the last notice said so */
    int delays;
    int64_t delay_us; /* reported last */
    char first_notice[512], last_notice[512];
} world_t;

static int64_t now(void *context)
{
    return ((world_t *)context)->now_us;
}

static void sleep_on(void *context, int64_t duration_us)
{
    world_t *world = context;
    world->now_us += duration_us;
    if (duration_us > world->longest_sleep_us)
        world->longest_sleep_us = duration_us;
    if (world->change && world->now_us >= world->change_at_us)
        atomic_store(&world->change->rate_per_s, world->new_rate);
    if (world->resume && world->now_us >= world->remove_at_us)
        atomic_store(&world->resume->paused, false);
    if (world->remove_at_end && world->now_us >= world->remove_at_us) {
        unlink(world->remove_at_end);
        world->remove_at_end = NULL;
    }
}

static double latency(void *context)
{
    const world_t *world = context;
    if (world->unreachable)
        return -1;
    return world->now_us < world->slow_until_us ? 0.2 : 0.001;
}

static double lag(void *context)
{
    const world_t *world = context;
    if (world->unreachable)
        return -1;
    return world->now_us < world->lags_until_us ? 12.5 : 0;
}

static bool stop(void *context)
{
    const world_t *world = context;
    return world->stop_at_us > 0 && world->now_us >= world->stop_at_us;
}

static void note_pause(void *context, bool waits, const char *text)
{
    world_t *world = context;
    assert_int_not_equal(waits, world->waits);
    world->waits = waits;
    if (world->notices++ == 0)
        snprintf(world->first_notice, sizeof world->first_notice, "%s", text);
    snprintf(world->last_notice, sizeof world->last_notice, "%s", text);
}

static spill_throttle_options_t options_of(world_t *world)
{
    return (spill_throttle_options_t){.clock = {world, now, sleep_on},
                                      .latency = latency,
                                      .stop = stop,
                                      .notice = note_pause,
                                      .context = world};
}

/* Work off chunks that take this long per unit, for `span_us`. Return the units. */
static int64_t work(spill_throttle_t *throttle, world_t *world, int64_t unit_us, int64_t span_us)
{
    int64_t end_us = world->now_us + span_us, units = 0;
    while (world->now_us < end_us && spill_throttle_wait(throttle)) {
        int64_t size = spill_throttle_chunk_size(throttle);
        world->now_us += size * unit_us;
        spill_throttle_ran(throttle, size, size * unit_us);
        units += size;
    }
    return units;
}

static void test_unthrottled_never_sleeps(void **state)
{
    (void)state;
    world_t world = {.now_us = 1000000};
    spill_throttle_options_t options = options_of(&world);
    spill_throttle_t throttle;
    spill_throttle_init(&throttle, &options);
    for (int i = 0; i < 10; i++) {
        assert_true(spill_throttle_wait(&throttle));
        spill_throttle_ran(&throttle, 100, 1000);
    }
    assert_int_equal(world.now_us, 1000000);
    assert_int_equal(world.notices, 0);
}

static void test_rate_holds(void **state)
{
    (void)state;
    static const int64_t rates[] = {1, 7, 500, 20000};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        world_t world = {.now_us = 1000000};
        spill_throttle_options_t options = options_of(&world);
        options.rate_per_s = rates[i];
        spill_throttle_t throttle;
        spill_throttle_init(&throttle, &options);
        int64_t units = work(&throttle, &world, 20, 60000000);
        assert_in_range(units, rates[i] * 60 * 95 / 100, rates[i] * 62);
        assert_true(spill_throttle_chunk_size(&throttle) <= rates[i]);
        assert_true(world.longest_sleep_us <= 500000); /* so that a stop is noticed */
    }
}

/* Parallel chunks share the rate. */
static void test_parallel_chunks_share_rate(void **state)
{
    (void)state;
    world_t world = {.now_us = 1000000};
    spill_throttle_options_t options = options_of(&world);
    options.rate_per_s = 100;
    spill_throttle_t throttle;
    spill_throttle_init(&throttle, &options);
    int64_t end_us = world.now_us + 60000000, units = 0;
    while (world.now_us < end_us) {
        assert_true(spill_throttle_wait(&throttle));
        world.now_us += 200000; /* two chunks of 20 units, which begin and end together */
        spill_throttle_ran(&throttle, 20, 200000);
        spill_throttle_ran(&throttle, 20, 200000);
        units += 40;
    }
    assert_in_range(units, 5800, 6100);
}

/* Idle time is not made up for. */
static void test_rate_has_no_burst(void **state)
{
    (void)state;
    world_t world = {.now_us = 1000000};
    spill_throttle_options_t options = options_of(&world);
    options.rate_per_s = 100;
    spill_throttle_t throttle;
    spill_throttle_init(&throttle, &options);
    work(&throttle, &world, 20, 10000000);
    world.now_us += 3600000000;
    assert_in_range(work(&throttle, &world, 20, 10000000), 950, 1100);
}

static void note_delay(void *context, int64_t left_us)
{
    world_t *world = context;
    assert_true(left_us >= 0);
    if (world->delays > 0)
        assert_true(left_us < world->delay_us);
    world->delays++;
    world->delay_us = left_us;
}

/* A delay by the rate is reported until it ends. */
static void test_reports_delays_of_the_rate(void **state)
{
    (void)state;
    world_t world = {.now_us = 1};
    spill_throttle_options_t options = options_of(&world);
    spill_throttle_t throttle;
    options.rate_per_s = 1000;
    options.delayed = note_delay;
    spill_throttle_init(&throttle, &options);
    assert_int_equal(spill_throttle_rate(&throttle), 1000);
    assert_true(spill_throttle_wait(&throttle));
    assert_int_equal(world.delays, 0);
    spill_throttle_ran(&throttle, 5000, 0);
    assert_true(spill_throttle_wait(&throttle));
    assert_true(world.delays >= 5000 / 250);
    assert_int_equal(world.delay_us, 0);
    int reported = world.delays;
    assert_true(spill_throttle_wait(&throttle));
    assert_int_equal(world.delays, reported);
}

static void test_chunks_follow_their_time(void **state)
{
    (void)state;
    static const struct {
        int64_t unit_us, size_min, size_max;
    } cases[] = {{100, 900, 1100}, {10000, 9, 11}, {1000000, 1, 1}, {1, 10000, 10000}};
    world_t world = {.now_us = 1};
    spill_throttle_options_t options = options_of(&world);
    spill_throttle_t throttle;
    spill_throttle_init(&throttle, &options);
    assert_int_equal(spill_throttle_chunk_size(&throttle), SPILL_THROTTLE_CHUNK_FIRST);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int chunk = 0; chunk < 20; chunk++) {
            int64_t size = spill_throttle_chunk_size(&throttle);
            spill_throttle_ran(&throttle, size, size * cases[i].unit_us);
        }
        assert_in_range(spill_throttle_chunk_size(&throttle), cases[i].size_min, cases[i].size_max);
    }
}

static void test_last_chunk_does_not_grow_the_next(void **state)
{
    (void)state;
    world_t world = {.now_us = 1};
    spill_throttle_options_t options = options_of(&world);
    options.chunk_first = 50;
    spill_throttle_t throttle;
    spill_throttle_init(&throttle, &options);
    spill_throttle_ran(&throttle, 3, 10);
    assert_int_equal(spill_throttle_chunk_size(&throttle), 50);
    spill_throttle_ran(&throttle, 0, 0);
    assert_int_equal(spill_throttle_chunk_size(&throttle), 50);
    spill_throttle_ran(&throttle, 3, 10000000); /* but a reason to shrink */
    assert_int_equal(spill_throttle_chunk_size(&throttle), 25);
}

static void test_waits_for_a_slow_server(void **state)
{
    (void)state;
    world_t world = {.now_us = 1000000, .slow_until_us = 4000000};
    spill_throttle_options_t options = options_of(&world);
    options.latency_max_s = 0.05;
    spill_throttle_t throttle;
    spill_throttle_init(&throttle, &options);
    assert_true(spill_throttle_wait(&throttle));
    assert_in_range(world.now_us, 4000000, 4500000);
    assert_int_equal(world.notices, 2);
    assert_string_equal(world.first_notice, "paused: the server takes 200.0 ms, limit 50.0");
    assert_string_equal(world.last_notice, "going on");
    assert_true(spill_throttle_wait(&throttle));
    assert_int_equal(world.notices, 2);

    world.unreachable = true;
    int64_t before_us = world.now_us;
    assert_true(spill_throttle_wait(&throttle));
    assert_int_equal(world.now_us, before_us);
}

static void test_waits_for_secondaries(void **state)
{
    (void)state;
    world_t world = {.now_us = 1000000, .lags_until_us = 4000000};
    spill_throttle_options_t options = options_of(&world);
    options.lag = lag;
    options.lag_max_s = 10;
    spill_throttle_t throttle;
    spill_throttle_init(&throttle, &options);
    assert_true(spill_throttle_wait(&throttle));
    assert_in_range(world.now_us, 4000000, 4500000);
    assert_string_equal(world.first_notice, "paused: a secondary is 12.5 s behind, limit 10.0");
    assert_string_equal(world.last_notice, "going on");

    world.unreachable = true;
    world.lags_until_us = INT64_MAX;
    int64_t before_us = world.now_us;
    assert_true(spill_throttle_wait(&throttle));
    assert_int_equal(world.now_us, before_us);

    world.unreachable = false;
    options.lag_max_s = 0; /* no limit */
    spill_throttle_init(&throttle, &options);
    assert_true(spill_throttle_wait(&throttle));
    assert_int_equal(world.now_us, before_us);
}

/* Return the units of one-unit chunks of 100 ms each within 100 s. */
static int64_t count_chunks(double latency_max_s)
{
    world_t world = {.now_us = 1000000}; /* a latency of 1 ms */
    spill_throttle_options_t options = options_of(&world);
    options.latency_max_s = latency_max_s;
    spill_throttle_t throttle;
    spill_throttle_init(&throttle, &options);
    int64_t units = 0, end_us = world.now_us + 100000000;
    while (world.now_us < end_us) {
        world.slow_until_us = 0;
        assert_true(spill_throttle_wait(&throttle));
        world.now_us += 100000;
        if (latency_max_s < 0.2)
            world.slow_until_us = world.now_us + 1; /* the chunk makes the server slow */
        spill_throttle_ran(&throttle, 1, 100000);
        units++;
    }
    return units;
}

/* Run a fifth of the time if a chunk makes the server slow, otherwise four fifths. */
static void test_rests_by_the_latency(void **state)
{
    (void)state;
    assert_in_range(count_chunks(0.05), 195, 206);
    assert_in_range(count_chunks(0.5), 780, 800);
    assert_in_range(count_chunks(0), 1000, 1000);
}

static void test_waits_for_the_pause_file(void **state)
{
    (void)state;
    char path[] = "/tmp/spillway-pause-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    world_t world = {.now_us = 1000000, .remove_at_end = path, .remove_at_us = 9000000};
    spill_throttle_options_t options = options_of(&world);
    options.pause_file = path;
    spill_throttle_t throttle;
    spill_throttle_init(&throttle, &options);
    assert_true(spill_throttle_wait(&throttle));
    assert_in_range(world.now_us, 9000000, 9500000);
    assert_int_equal(world.notices, 2);
    assert_non_null(strstr(world.first_notice, path));
}

static void test_pace_changes_while_it_runs(void **state)
{
    (void)state;
    world_t world = {.now_us = 1000000};
    spill_job_pace_t pace = {.rate_per_s = 100, .threads = 3};
    spill_throttle_options_t options = options_of(&world);
    spill_throttle_t throttle;
    options.rate_per_s = 7; /* the pace replaces it */
    options.pace = &pace;
    spill_throttle_init(&throttle, &options);
    assert_ptr_equal(spill_throttle_threads(&throttle), &pace.threads);
    assert_in_range(work(&throttle, &world, 10, 10000000), 950, 1100);
    atomic_store(&pace.rate_per_s, 1000);
    /* The last wait begins before the end, and a chunk of a second follows it. */
    assert_in_range(work(&throttle, &world, 10, 10000000), 9500, 12000);
    atomic_store(&pace.latency_max_us, 100000);
    world.slow_until_us = world.now_us + 5000000;
    assert_true(spill_throttle_wait(&throttle));
    assert_true(world.now_us >= world.slow_until_us);
    atomic_store(&pace.paused, true);
    world.resume = &pace;
    world.remove_at_us = world.now_us + 7000000;
    assert_true(spill_throttle_wait(&throttle));
    assert_in_range(world.now_us, world.remove_at_us, world.remove_at_us + 1000000);
    assert_string_equal(world.last_notice, "going on");
    options.pace = NULL;
    spill_throttle_init(&throttle, &options);
    assert_null(spill_throttle_threads(&throttle));
    assert_null(spill_throttle_threads(NULL));
}

/*
 * Do 140 units at once at 5 a second, and change the rate 2 s later: 130 units of debt are left,
 * and the wait lasts as long as the new rate needs for them.
 */
static void test_new_rate_applies_to_a_wait(void **state)
{
    (void)state;
    static const struct {
        int64_t new_rate, least_us, most_us;
    } cases[] = {{1000, 2130000, 2400000},
                 {50, 4600000, 4900000},
                 {5, 28000000, 28300000},
                 {1, 132000000, 132300000},
                 {0, 2000000, 2300000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        spill_job_pace_t pace = {.rate_per_s = 5};
        world_t world = {.now_us = 1000000,
                         .change = &pace,
                         .change_at_us = 3000000,
                         .new_rate = cases[i].new_rate};
        spill_throttle_options_t options = options_of(&world);
        options.pace = &pace;
        spill_throttle_t throttle;
        spill_throttle_init(&throttle, &options);
        assert_true(spill_throttle_wait(&throttle));
        spill_throttle_ran(&throttle, 140, 0);
        assert_true(spill_throttle_wait(&throttle));
        assert_in_range(world.now_us - 1000000, cases[i].least_us, cases[i].most_us);
    }
}

/* A rate that replaces `not limited' counts from then on; units done before are free. */
static void test_rate_after_no_limit(void **state)
{
    (void)state;
    world_t world = {.now_us = 1000000};
    spill_job_pace_t pace = {.rate_per_s = 0};
    spill_throttle_options_t options = options_of(&world);
    options.pace = &pace;
    spill_throttle_t throttle;
    spill_throttle_init(&throttle, &options);
    spill_throttle_ran(&throttle, 1000000, 1000);
    atomic_store(&pace.rate_per_s, 10);
    assert_true(spill_throttle_wait(&throttle));
    assert_int_equal(world.now_us, 1000000);
    spill_throttle_ran(&throttle, 10, 0);
    assert_true(spill_throttle_wait(&throttle));
    assert_in_range(world.now_us, 1990000, 2010000);
}

/* While a job is paused, the rate pays for the units before; a resumed job has no burst. */
static void test_pause_within_a_delay(void **state)
{
    (void)state;
    world_t world = {.now_us = 1000000, .remove_at_us = 21000000};
    spill_job_pace_t pace = {.rate_per_s = 100, .paused = true};
    world.resume = &pace;
    spill_throttle_options_t options = options_of(&world);
    options.pace = &pace;
    spill_throttle_t throttle;
    spill_throttle_init(&throttle, &options);
    spill_throttle_ran(&throttle, 1000, 0);
    assert_true(spill_throttle_wait(&throttle));
    assert_in_range(world.now_us, 21000000, 21300000);
    assert_in_range(work(&throttle, &world, 20, 10000000), 950, 1100);
}

/* Without a limit on latency there is no rest, also for a job that rests already. */
static void test_rest_ends_with_its_limit(void **state)
{
    (void)state;
    world_t world = {.now_us = 1000000, .slow_until_us = 1000001};
    spill_job_pace_t pace = {.latency_max_us = 50000};
    spill_throttle_options_t options = options_of(&world);
    options.pace = &pace;
    spill_throttle_t throttle;
    spill_throttle_init(&throttle, &options);
    spill_throttle_ran(&throttle, 10, 5000000);
    atomic_store(&pace.latency_max_us, 0);
    assert_true(spill_throttle_wait(&throttle));
    assert_int_equal(world.now_us, 1000000);
    atomic_store(&pace.latency_max_us, 50000);
    assert_true(spill_throttle_wait(&throttle));
    assert_in_range(world.now_us, 11000000, 11000000);
}

static void test_stops_while_it_waits(void **state)
{
    (void)state;
    world_t world = {.now_us = 1000000, .slow_until_us = INT64_MAX, .stop_at_us = 3000000};
    spill_throttle_options_t options = options_of(&world);
    options.latency_max_s = 0.05;
    spill_throttle_t throttle;
    spill_throttle_init(&throttle, &options);
    assert_false(spill_throttle_wait(&throttle));
    assert_in_range(world.now_us, 3000000, 3500000);

    world = (world_t){.now_us = 1000000, .stop_at_us = 3000000};
    options.latency_max_s = 0;
    options.rate_per_s = 1;
    spill_throttle_init(&throttle, &options);
    spill_throttle_ran(&throttle, 3600, 1000);
    assert_false(spill_throttle_wait(&throttle));
    assert_in_range(world.now_us, 3000000, 3500000);
}

/* The real time may be set back: a job with a rate would then wait for it. */
static void test_usual_clock_is_never_set(void **state)
{
    (void)state;
    spill_throttle_t throttle;
    spill_throttle_options_t options = {.rate_per_s = 1};
    spill_throttle_init(&throttle, &options);
    int64_t before_us = spill_clock_monotonic_us(NULL);
    int64_t now_us = spill_throttle_now_us(&throttle);
    assert_in_range(now_us, before_us, spill_clock_monotonic_us(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unthrottled_never_sleeps),
        cmocka_unit_test(test_rate_holds),
        cmocka_unit_test(test_parallel_chunks_share_rate),
        cmocka_unit_test(test_rate_has_no_burst),
        cmocka_unit_test(test_reports_delays_of_the_rate),
        cmocka_unit_test(test_chunks_follow_their_time),
        cmocka_unit_test(test_last_chunk_does_not_grow_the_next),
        cmocka_unit_test(test_waits_for_a_slow_server),
        cmocka_unit_test(test_waits_for_secondaries),
        cmocka_unit_test(test_rests_by_the_latency),
        cmocka_unit_test(test_waits_for_the_pause_file),
        cmocka_unit_test(test_pace_changes_while_it_runs),
        cmocka_unit_test(test_new_rate_applies_to_a_wait),
        cmocka_unit_test(test_rate_after_no_limit),
        cmocka_unit_test(test_pause_within_a_delay),
        cmocka_unit_test(test_rest_ends_with_its_limit),
        cmocka_unit_test(test_stops_while_it_waits),
        cmocka_unit_test(test_usual_clock_is_never_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
