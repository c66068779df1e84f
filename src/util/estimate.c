/* The time that is left, from the speed so far. */
#include "util/estimate.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* The speed is the mean of about this time, or of a quarter of the run if that is longer. */
#define SMOOTH_S 4.0

/* Before this, the speed is not shown: the first steps may be unlike the rest. */
#define FIRST_S 0.5

/* The least that is shown. From 0.2, both half and one and a half are other numbers. */
#define LEFT_LEAST_S 0.2

static void measure_speed(spill_estimate_t *estimate, double seconds, double part)
{
    double elapsed = seconds - estimate->seconds, moved = part - estimate->part;
    if (elapsed <= 0 || (moved <= 0 && estimate->per_second <= 0)) /* it has not begun */
        return;
    double over = seconds / 4 > SMOOTH_S ? seconds / 4 : SMOOTH_S;
    double weight = estimate->per_second > 0 ? 1 - exp(-elapsed / over) : 1;
    estimate->per_second += weight * ((moved > 0 ? moved : 0) / elapsed - estimate->per_second);
    estimate->seconds = seconds;
    estimate->part = part;
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
    if (part < estimate->part)
        *estimate = (spill_estimate_t){.seconds = estimate->seconds};
    if (estimate->left_s == 0 && seconds < estimate->seconds + FIRST_S)
        return 0;
    measure_speed(estimate, seconds, part);
    if (estimate->per_second <= 0)
        return estimate->left_s;
    double left = (whole - part) / estimate->per_second, before = estimate->left_s;
    left = round_left(left > LEFT_LEAST_S ? left : LEFT_LEAST_S, true);
    if (before > 0 && left > before * 1.5)
        left = round_left(before * 1.5, false);
    if (before > 0 && left < before / 2)
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
