/* The plots of a report, as SVG pictures in the page. */
#include "tools/report/report.h"

#include "tools/report/svg.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Colours that colour-blind people can tell apart (Okabe and Ito). */
#define BLUE "#0072B2"
#define PALE "#B3D4E8"
#define RED "#B34700"
#define DARK "#222222"

enum { HEIGHT = 320, SHARE_HEIGHT = 46, SHARES_ABOVE = 6, SHARES_BELOW = 72, NAME_BYTES = 50 };

/* ---- distributions --------------------------------------------------------------------------- */

/* Bars begin here on a logarithmic axis, so that a bar of 1 is visible. */
static const double ground = 0.7;

/* The place of length 0, which a logarithmic axis does not have. */
static const double zero_left = 0.3, zero_right = 0.5;

static double left_of(uint64_t least)
{
    return least > 0 ? (double)least : zero_left;
}

static double right_of(uint64_t least)
{
    return least > 0 ? (double)spill_sketch_bin_end(least) : zero_right;
}

static uint64_t most_of(const spill_scan_histogram_t *histogram)
{
    uint64_t most = 1;
    for (size_t i = 0; i < histogram->count; i++)
        if (histogram->bins[i].count > most)
            most = histogram->bins[i].count;
    return most;
}

/* Draw a vertical line at `x` with its text. */
static void put_line(FILE *script, double x, double left, double right, const char *text)
{
    bool far = log(x / left) > 0.5 * log(right / left);
    fprintf(script,
            "set arrow from first %.15g, graph 0 to first %.15g, graph 1 nohead front dashtype "
            "(6,4) linewidth 1.5 linecolor rgb '" RED "'\n"
            "set label '%s' at first %.15g, graph 0.96 %s offset %s,0 front textcolor rgb '" RED
            "'\n",
            x, x, text, x, far ? "right" : "left", far ? "-0.6" : "0.6");
}

static void put_bins(FILE *script, const spill_scan_histogram_t *histogram)
{
    fputs("$bins << END\n", script);
    for (size_t i = 0; i < histogram->count; i++)
        fprintf(script, "%.15g\t%.15g\t%" PRIu64 "\n", left_of(histogram->bins[i].least),
                right_of(histogram->bins[i].least), histogram->bins[i].count);
    fprintf(script,
            "END\n"
            "plot $bins using (sqrt($1*$2)):3:1:2:(%g):3 with boxxyerror fillstyle solid 1 border "
            "rgb '#ffffff' linecolor rgb '" BLUE "'\n",
            ground);
}

/* A logarithmic axis with a smaller factor has too few ticks. */
static const double factor_min = 12;

/* The upper end of the vertical axis leaves room for the text of a line. */
static void put_counts(FILE *script, const spill_scan_histogram_t *histogram)
{
    double most = fmax((double)most_of(histogram), factor_min);
    double top = pow(most / ground, 1.22) * ground * 1.3;
    fprintf(script, "set yrange [%g:%g]\n", ground, top);
    spill_axis_log(script, 'y', 1, most);
}

/* Add some room on both sides, enough for ticks. */
static void widen(double *left, double *right)
{
    double missing = sqrt(fmax(factor_min * *left / *right, 1));
    *left = *left <= 1 ? *left * 0.85 : fmax(*left / fmax(missing, 1.3), ground);
    *right *= fmax(missing, 1.3);
}

spill_code_t spill_plot_lengths(const spill_scan_path_t *path, int64_t threshold, const char *label,
                                FILE *to, spill_error_t *error)
{
    const spill_scan_histogram_t *histogram = &path->lengths.histogram;
    SPILL_SCOPED(spill_text_release) spill_text_t script = {0};
    if (histogram->count == 0)
        return SPILL_OK;
    double left = left_of(histogram->bins[0].least);
    double right = right_of(histogram->bins[histogram->count - 1].least);
    bool marked = threshold > 0 && (double)threshold < right * 20;
    char text[64];
    snprintf(text, sizeof text, "threshold %s", spill_count_text((double)threshold).text);
    left = marked && (double)threshold < left ? (double)threshold : left;
    right = marked && (double)threshold > right ? (double)threshold : right;
    widen(&left, &right);
    SPILL_TRY(spill_svg_begin(&script, HEIGHT, error));
    fprintf(script.to, "set xrange [%.15g:%.15g]\nset xlabel '%s'\nset ylabel '%s' offset 0.4,0\n",
            left, right, path->map ? "keys in a map" : "elements in an array",
            path->map ? "maps" : "arrays");
    put_counts(script.to, histogram);
    spill_axis_log(script.to, 'x', left, right);
    if (histogram->bins[0].least == 0)
        fputs("set xtics add ('0' 0.387)\n", script.to);
    if (marked)
        put_line(script.to, (double)threshold, left, right, text);
    put_bins(script.to, histogram);
    return spill_svg_end(&script, label, to, error);
}

spill_code_t spill_plot_sizes(const spill_scan_histogram_t *sizes, int64_t limit, const char *label,
                              FILE *to, spill_error_t *error)
{
    SPILL_SCOPED(spill_text_release) spill_text_t script = {0};
    char text[64];
    if (sizes->count == 0)
        return SPILL_OK;
    double left = left_of(sizes->bins[0].least);
    double right = right_of(sizes->bins[sizes->count - 1].least);
    right = fmax(right, (double)limit);
    widen(&left, &right);
    snprintf(text, sizeof text, "limit %s", spill_size_text(limit).text);
    SPILL_TRY(spill_svg_begin(&script, HEIGHT, error));
    fprintf(script.to,
            "set xrange [%.15g:%.15g]\nset xlabel 'size of a document'\n"
            "set ylabel 'documents' offset 0.4,0\n",
            left, right);
    put_counts(script.to, sizes);
    spill_axis_log_bytes(script.to, 'x', left, right);
    put_line(script.to, (double)limit, left, right, text);
    put_bins(script.to, sizes);
    return spill_svg_end(&script, label, to, error);
}

/* ---- growth ---------------------------------------------------------------------------------- */

/* The ranges of a plot of growth. */
typedef struct view {
    size_t coming; /* points of the forecast */
    int64_t from_ms, now_ms, to_ms;
    double top;
} view_t;

/* Show half as much future as past, or as much if threshold or limit are reached later. */
static view_t view_of(const spill_large_owner_t *owner)
{
    const spill_course_t *course = owner->growth_forecast.course;
    const spill_when_t *threshold = &owner->growth_forecast.threshold,
                       *limit = &owner->growth_forecast.limit;
    view_t view = {.coming = course->coming_count, .from_ms = course->past[0].at_ms};
    size_t last = course->past_count - 1;
    view.now_ms = view.to_ms = course->past[last].at_ms;
    if (view.coming > 1) {
        int64_t half_ms = course->coming[view.coming - 2].at_ms;
        bool far = (threshold->elements > 0 && threshold->likely_ms != SPILL_WHEN_UNKNOWN &&
                    threshold->likely_ms > half_ms) ||
                   (limit->elements > 0 && limit->likely_ms != SPILL_WHEN_UNKNOWN &&
                    limit->likely_ms > half_ms);
        view.coming -= far ? 0 : 1;
    }
    double most = course->past[last].elements;
    if (view.coming > 0) {
        const spill_forecast_t *end = &course->coming[view.coming - 1].elements;
        view.to_ms = course->coming[view.coming - 1].at_ms;
        most = fmax(most, fmin(end->high, 2.5 * end->likely));
    }
    view.top = fmax(most, 1) * 1.12;
    return view;
}

/* Draw a horizontal line at a number of elements, with its text above or below. */
static void put_level(FILE *script, const view_t *view, double elements, bool above,
                      const char *text)
{
    if (elements > view->top || elements < view->top * 0.04)
        return;
    fprintf(script,
            "set arrow from graph 0, first %.15g to graph 1, first %.15g nohead back dashtype "
            "(6,4) linewidth 1.2 linecolor rgb '" RED "'\n"
            "set label '%s' at graph 0.02, first %.15g left offset 0,%s front textcolor rgb '" RED
            "'\n",
            elements, elements, text, elements, above ? "0.6" : "-0.7");
}

/* The text of the lower line is below it, so that the texts do not overlap. */
static void put_levels(FILE *script, const spill_large_owner_t *owner, const view_t *view)
{
    int64_t threshold = owner->growth_forecast.threshold.elements;
    int64_t limit = owner->growth_forecast.limit.elements;
    double length = (double)owner->length;
    if (threshold > 0)
        put_level(script, view, length + (double)threshold, limit == 0 || threshold > limit,
                  "threshold");
    if (limit > 0)
        put_level(script, view, length + (double)limit, threshold == 0 || limit >= threshold,
                  "the document is full");
}

static void put_course(FILE *script, const spill_course_t *course, const view_t *view)
{
    size_t last = course->past_count - 1;
    double now = (double)view->now_ms / 1000, length = course->past[last].elements;
    fputs("$past << END\n", script);
    for (size_t i = 0; i <= last; i++)
        fprintf(script, "%.15g\t%.15g\n", (double)course->past[i].at_ms / 1000,
                course->past[i].elements);
    fprintf(script, "END\n$coming << END\n%.15g\t%.15g\t%.15g\t%.15g\n", now, length, length,
            length);
    for (size_t i = 0; i < view->coming; i++)
        fprintf(script, "%.15g\t%.15g\t%.15g\t%.15g\n", (double)course->coming[i].at_ms / 1000,
                course->coming[i].elements.low, course->coming[i].elements.likely,
                fmin(course->coming[i].elements.high, view->top));
    fputs("END\n", script);
}

spill_code_t spill_plot_growth(const spill_large_owner_t *owner, const char *label, FILE *to,
                               spill_error_t *error)
{
    const spill_course_t *course = owner->growth_forecast.course;
    SPILL_SCOPED(spill_text_release) spill_text_t script = {0};
    if (!course || course->past_count < 2)
        return SPILL_OK;
    view_t view = view_of(owner);
    if (view.to_ms <= view.from_ms)
        return SPILL_OK;
    SPILL_TRY(spill_svg_begin(&script, HEIGHT, error));
    fprintf(script.to,
            "set xrange [%.15g:%.15g]\nset yrange [0:%.15g]\nset ylabel 'elements' offset 0.4,0\n"
            "set key outside top center horizontal maxcols 3 samplen 1.4 width -4 textcolor rgb "
            "'#111111'\n"
            "set rmargin 3\n",
            (double)view.from_ms / 1000, (double)view.to_ms / 1000, view.top);
    spill_axis_time(script.to, view.from_ms, view.to_ms);
    spill_axis_linear(script.to, 'y', view.top);
    put_levels(script.to, owner, &view);
    put_course(script.to, course, &view);
    fputs("plot ", script.to);
    if (view.coming > 0)
        fputs("$coming using 1:2:4 with filledcurves fillstyle solid 1 linecolor rgb '" PALE
              "' title '80 % interval', "
              "$coming using 1:3 with lines dashtype (8,4) linewidth 2 linecolor rgb '" BLUE
              "' title 'forecast', ",
              script.to);
    fputs("$past using 1:2 with lines linewidth 2.5 linecolor rgb '" DARK "' title 'so far'\n",
          script.to);
    return spill_svg_end(&script, label, to, error);
}

/* ---- shares ---------------------------------------------------------------------------------- */

/* Write one field of a data block: only spaces as blanks, no quotes; cut between characters. */
static void put_field(FILE *script, const char *name)
{
    char *visible = spill_visible_text(name);
    size_t length = strlen(visible), keep = length;
    if (keep > NAME_BYTES)
        for (keep = NAME_BYTES; keep > 0 && ((unsigned char)visible[keep] & 0xC0) == 0x80;)
            keep--;
    for (size_t i = 0; i < keep; i++)
        putc(strchr("\"\\`", visible[i]) ? '\'' : visible[i], script);
    fputs(keep < length ? "\u2026\n" : "\n", script);
    bson_free(visible);
}

spill_code_t spill_plot_shares(const spill_plot_share_t *shares, size_t count, const char *label,
                               FILE *to, spill_error_t *error)
{
    SPILL_SCOPED(spill_text_release) spill_text_t script = {0};
    if (count == 0)
        return SPILL_OK;
    count = count < SPILL_PLOT_SHARES ? count : SPILL_PLOT_SHARES;
    int height = SHARES_ABOVE + SHARE_HEIGHT * (int)count + SHARES_BELOW;
    SPILL_TRY(spill_svg_begin(&script, height, error));
    fprintf(script.to,
            "set border 1 linecolor rgb '#444444'\nunset ytics\nunset grid\n"
            "set grid xtics linetype 1 linewidth 0.7 linecolor rgb '#dddddd'\n"
            "set lmargin 2\nset rmargin 4\nset tmargin at screen %.4f\nset bmargin at screen %.4f\n"
            "set xrange [0:100]\nset yrange [%.1f:0.5]\n"
            "set xtics ('0 %%%%' 0, '25 %%%%' 25, '50 %%%%' 50, '75 %%%%' 75, '100 %%%%' 100)\n"
            "set xlabel 'share of all bytes'\n$shares << END\n",
            1 - (double)SHARES_ABOVE / height, (double)SHARES_BELOW / height, 0.5 - (double)count);
    for (size_t i = 0; i < count; i++) {
        fprintf(script.to, "%d\t%.6g\t%.1f %%  ", -(int)i, shares[i].per_cent, shares[i].per_cent);
        put_field(script.to, shares[i].name);
    }
    fputs("END\n"
          "plot $shares using (0):1:(0):2:($1-0.4):($1-0.02) with boxxyerror fillstyle solid 1 "
          "linecolor rgb '" BLUE "', "
          "$shares using (0):($1+0.22):3 with labels left noenhanced\n",
          script.to);
    return spill_svg_end(&script, label, to, error);
}
