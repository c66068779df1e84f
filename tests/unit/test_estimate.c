/* The time that is left: on a steady stream it changes by at most half between two calls, and it is
 * right soon after a slow start. */
#include "util/estimate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

/* The number that a person reads. */
static double shown(double seconds)
{
    char *end;
    spill_duration_text_t text = spill_duration_text(seconds);
    double number = strtod(text.text, &end);
    if (end[1] == 'm')
        return number * 60;
    if (end[1] == 'h')
        return number * 3600 + strtod(end + 2, NULL) * 60;
    return number;
}

static void assert_steady(double before, double left)
{
    if (before == 0)
        return;
    assert_true(fabs(shown(left) - shown(before)) <= shown(before) / 2 + 1e-6);
}

/* Work whose parts arrive evenly, in bursts, or with a speed that changes. */
static double run(double whole_s, double step_s, double burst_s, double slows_at, double *worst)
{
    spill_estimate_t estimate = {0};
    double before = 0, part = 0, done_s = 0, left = 0;
    *worst = 0;
    for (double now = step_s; part < whole_s; now += step_s) {
        done_s += now > slows_at ? step_s / 10 : step_s;
        part = burst_s > 0 ? burst_s * floor(done_s / burst_s) : done_s;
        part = part < whole_s ? part : whole_s;
        left = spill_estimate_left(&estimate, now, part, whole_s);
        assert_true(left >= 0);
        assert_steady(before, left);
        if (left > 0 && now > 2)
            *worst = fmax(*worst, fabs(left - (whole_s - now)) / (whole_s - now + 1));
        before = left;
    }
    return left;
}

static void the_time_left_changes_by_at_most_half(void **state)
{
    (void)state;
    const double steps[] = {0.2, 0.35, 5.0}, lengths[] = {3, 40, 500, 20000};
    double worst;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++) {
            run(lengths[j], steps[i], 0, INFINITY, &worst);
            run(lengths[j], steps[i], 1.7, INFINITY, &worst);
            run(lengths[j], steps[i], 0, lengths[j] / 2, &worst);
        }
}

static void the_time_left_of_even_work_is_right(void **state)
{
    (void)state;
    double worst;
    assert_true(run(60, 0.2, 0, INFINITY, &worst) <= 1);
    assert_true(worst < 0.25);
    assert_true(run(60, 0.2, 1.0, INFINITY, &worst) <= 1);
    assert_true(worst < 1.2); /* a burst may come a second late */
}

/*
 * Work that starts with a hundredth of its later speed. 20 seconds after the slow start the time
 * left is right, on a terminal and in a log with a line every five seconds.
 */
static void a_slow_start_is_soon_forgotten(void **state)
{
    (void)state;
    const double steps[] = {0.2, 5.0}, slows[] = {5, 10, 60, 600};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        for (size_t j = 0; j < sizeof slows / sizeof *slows; j++) {
            spill_estimate_t estimate = {0};
            double slow = slows[j], whole = slow / 100 + 300, end = slow + 300;
            for (double now = steps[i]; now < end - 1; now += steps[i]) {
                double part = now < slow ? now / 100 : slow / 100 + now - slow;
                double left = spill_estimate_left(&estimate, now, part, whole);
                if (now > slow + 20)
                    assert_true(fabs(left - (end - now)) <= 0.25 * (end - now) + 60);
                if (now > slow + 20 && end - now < 110)
                    assert_true(fabs(left - (end - now)) <= 3);
            }
        }
}

/* A stream that is steady but for noise of a third of its speed. */
static void noise_changes_the_time_left_by_at_most_half(void **state)
{
    (void)state;
    const double steps[] = {0.2, 1.0, 5.0};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        spill_estimate_t estimate = {0};
        double part = 0, before = 0;
        uint32_t random = 1;
        for (double now = steps[i]; now < 400; now += steps[i]) {
            random = random * 1664525U + 1013904223U;
            part += steps[i] * (0.67 + 0.66 * (double)(random >> 8) / (1 << 24));
            double left = spill_estimate_left(&estimate, now, part, 500);
            assert_steady(before, left);
            before = left;
        }
    }
}

static void nothing_is_known_at_first(void **state)
{
    (void)state;
    spill_estimate_t estimate = {0};
    assert_true(spill_estimate_left(&estimate, 0.2, 5, 100) == 0);
    assert_true(spill_estimate_left(&estimate, 1.0, 0, 100) == 0);
    assert_true(spill_estimate_left(&estimate, 2.0, 50, 100) > 0);
}

static void durations_are_texts_for_people(void **state)
{
    (void)state;
    assert_string_equal(spill_duration_text(0.2).text, "0.2 s");
    assert_string_equal(spill_duration_text(9.97).text, "10 s");
    assert_string_equal(spill_duration_text(85).text, "85 s");
    assert_string_equal(spill_duration_text(120).text, "2 min");
    assert_string_equal(spill_duration_text(5 * 3600 + 20 * 60).text, "5 h 20 min");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_left_changes_by_at_most_half),
        cmocka_unit_test(the_time_left_of_even_work_is_right),
        cmocka_unit_test(a_slow_start_is_soon_forgotten),
        cmocka_unit_test(noise_changes_the_time_left_by_at_most_half),
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(durations_are_texts_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
