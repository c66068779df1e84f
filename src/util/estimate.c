/* The time that is left, from the recent speed. */
#include "util/estimate.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Moments that are kept are at least this far apart. */
#define MOMENT_S 2.0

/* The speed is that of this time, and of at least so many steps. */
#define RECENT_S 14.0
#define RECENT_STEPS 3

/* Before this, the speed is not shown: the first steps may be unlike the rest. */
#define FIRST_S 0.5

/* The least that is shown. From 0.2, both half and one and a half are other numbers. */
#define LEFT_LEAST_S 0.2

static const spill_estimate_moment_t *newest_moment(const spill_estimate_t *estimate)
{
    return estimate->moments > 0 ? &estimate->moved[estimate->moments - 1] : &estimate->begin;
}

/* The newest moment is replaced while it is close to the one before it. */
static void add_moment(spill_estimate_t *estimate, spill_estimate_moment_t moment)
{
    spill_estimate_moment_t *moved = estimate->moved;
    double before =
        estimate->moments > 1 ? moved[estimate->moments - 2].seconds : estimate->begin.seconds;
    if (estimate->moments > 0 && moved[estimate->moments - 1].seconds - before < MOMENT_S) {
        estimate->moments--;
    } else if (estimate->moments == SPILL_ESTIMATE_MOMENTS) {
        estimate->begin = moved[0];
        estimate->moments--;
        memmove(moved, moved + 1, (size_t)estimate->moments * sizeof *moved);
    }
    moved[estimate->moments++] = moment;
}

/*
 * Work that moves in steps stands still between them. Such a time counts only if it is longer than
 * the mean step.
 */
static double measure_speed(const spill_estimate_t *estimate, double seconds)
{
    const spill_estimate_moment_t *to = newest_moment(estimate), *from = to;
    int steps = 0;
    while (steps < estimate->moments &&
           (steps < RECENT_STEPS || to->seconds - from->seconds < RECENT_S)) {
        steps++;
        from = steps < estimate->moments ? to - steps : &estimate->begin;
    }
    double took = to->seconds - from->seconds;
    if (took <= 0)
        return 0;
    double still = seconds - to->seconds - took / steps;
    return (to->part - from->part) / (took + (still > 0 ? still : 0));
}

/* Round as spill_duration_text does, up or down. */
static double round_left(double seconds, bool up)
{
    double unit = seconds < 10 ? 0.1 : seconds < 120 ? 1 : 60;
    double count = seconds / unit;
    return unit * (up ? ceil(count - 1e-6) : floor(count + 1e-6));
}

double spill_estimate_left(spill_estimate_t *estimate, double seconds, double part, double whole)
{
    double speed_before = estimate->per_second, before = estimate->left_s;
    const spill_estimate_moment_t *newest = newest_moment(estimate);
    if (part < newest->part) /* other work: the moments are of the work before */
        *estimate = (spill_estimate_t){.begin = {seconds, part}};
    else if (part > newest->part && seconds > newest->seconds)
        add_moment(estimate, (spill_estimate_moment_t){seconds, part});
    if (before == 0 && seconds < estimate->begin.seconds + FIRST_S)
        return 0;
    estimate->per_second = measure_speed(estimate, seconds);
    if (estimate->per_second <= 0)
        return estimate->left_s;
    double left = (whole - part) / estimate->per_second;
    bool faster = speed_before > 0 && estimate->per_second > 2 * speed_before;
    left = round_left(left > LEFT_LEAST_S ? left : LEFT_LEAST_S, true);
    if (before > 0 && left > before * 1.5)
        left = round_left(before * 1.5, false);
    if (before > 0 && left < before / 2 && !faster)
        left = round_left(before / 2, true);
    estimate->left_s = left;
    return left;
}

spill_duration_text_t spill_duration_text(double seconds)
{
    spill_duration_text_t shown;
    int64_t minutes = (int64_t)(seconds / 60 + 1e-6);
    if (seconds < 9.95)
        snprintf(shown.text, sizeof shown.text, "%.1f s", seconds);
    else if (seconds < 119.5)
        snprintf(shown.text, sizeof shown.text, "%.0f s", seconds);
    else if (minutes < 120)
        snprintf(shown.text, sizeof shown.text, "%" PRId64 " min", minutes);
    else
        snprintf(shown.text, sizeof shown.text, "%" PRId64 " h %" PRId64 " min", minutes / 60,
                 minutes % 60);
    return shown;
}
