/* The plots of a report, as SVG pictures in the page. */
#include "tools/report/report.h"

#include "tools/report/svg.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { HEIGHT = 320, SHARE_HEIGHT = 44, SHARES_BELOW = 52, NAME_BYTES = 50, MARKS_MAX = 2 };

/* ---- distributions --------------------------------------------------------------------------- */

/* Bars begin here on a logarithmic axis, so that a bar of 1 is visible. */
static const double ground = 0.7;

/* The place of length 0, which a logarithmic axis does not have. */
static const double zero_left = 0.3, zero_middle = 0.387, zero_right = 0.5;

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

/* A value at which a distribution has a vertical line with a text. */
typedef struct marked {
    double value;
    char text[64];
} marked_t;

/* A histogram with marked values, and the range that shows both. */
typedef struct distribution {
    const spill_scan_histogram_t *histogram;
    marked_t marked[MARKS_MAX];
    int marked_count;
    double left, right;
} distribution_t;

static distribution_t distribution_of(const spill_scan_histogram_t *histogram)
{
    return (distribution_t){.histogram = histogram,
                            .left = left_of(histogram->bins[0].least),
                            .right = right_of(histogram->bins[histogram->count - 1].least)};
}

/* Mark a value, and widen the range up to it; not if it is far from all values. */
static void add_marked(distribution_t *distribution, double value, const char *text)
{
    static const double far = 20;
    if (value <= 0 || value > distribution->right * far || value < distribution->left / far)
        return;
    marked_t *marked = &distribution->marked[distribution->marked_count++];
    marked->value = value;
    snprintf(marked->text, sizeof marked->text, "%s", text);
    distribution->left = fmin(distribution->left, value);
    distribution->right = fmax(distribution->right, value);
}

/* A logarithmic axis with a smaller factor has too few marks. */
static const double factor_min = 12;

/* Add some room on both sides, enough for marks. */
static void widen(double *left, double *right)
{
    double missing = sqrt(fmax(factor_min * *left / *right, 1));
    *left = *left <= 1 ? *left * 0.85 : fmax(*left / fmax(missing, 1.3), ground);
    *right *= fmax(missing, 1.3);
}

/* The vertical axis leaves room above the bars for the texts of lines. */
static spill_axis_t counts_of(const distribution_t *distribution, const char *title)
{
    double most = fmax((double)most_of(distribution->histogram), factor_min);
    double room = 1.15 + 0.1 * distribution->marked_count;
    return spill_axis_log(title, ground, pow(most / ground, room) * ground * 1.3);
}

static void put_distribution(distribution_t *distribution, spill_plot_t *plot)
{
    const spill_scan_histogram_t *histogram = distribution->histogram;
    spill_plot_open(plot);
    for (size_t i = 0; i < histogram->count; i++)
        spill_plot_box(
            plot, "bar", (spill_point_t){left_of(histogram->bins[i].least), ground},
            (spill_point_t){right_of(histogram->bins[i].least), (double)histogram->bins[i].count});
    for (int i = 0; i < distribution->marked_count; i++)
        spill_plot_vertical(plot, distribution->marked[i].value);
    for (int i = 0; i < distribution->marked_count; i++)
        spill_plot_vertical_text(plot, distribution->marked[i].value, i,
                                 distribution->marked[i].text);
    spill_svg_close(plot->to);
}

void spill_plot_lengths(const spill_scan_path_t *path, const spill_scan_limits_t *limits,
                        const char *label, FILE *to)
{
    if (path->lengths.histogram.count == 0)
        return;
    distribution_t lengths = distribution_of(&path->lengths.histogram);
    char text[64];
    snprintf(text, sizeof text, "threshold: %s", spill_count_text((double)limits->elements).text);
    add_marked(&lengths, (double)limits->elements, text);
    if (path->lengths.sum > 0 && path->bytes > 0) {
        snprintf(text, sizeof text, "about %s", spill_size_text(limits->bytes).text);
        add_marked(&lengths,
                   (double)limits->bytes * (double)path->lengths.sum / (double)path->bytes, text);
    }
    widen(&lengths.left, &lengths.right);
    spill_plot_t plot = {.to = to,
                         .label = label,
                         .height = HEIGHT,
                         .x = spill_axis_log(path->map ? "keys in a map" : "elements in an array",
                                             lengths.left, lengths.right),
                         .y = counts_of(&lengths, path->map ? "maps" : "arrays")};
    if (path->lengths.histogram.bins[0].least == 0)
        spill_axis_mark_first(&plot.x, zero_middle, "0");
    put_distribution(&lengths, &plot);
}

void spill_plot_sizes(const spill_scan_histogram_t *histogram, const spill_scan_limits_t *limits,
                      const char *label, FILE *to)
{
    if (histogram->count == 0)
        return;
    distribution_t sizes = distribution_of(histogram);
    char text[64];
    snprintf(text, sizeof text, "threshold of an array: %s", spill_size_text(limits->bytes).text);
    add_marked(&sizes, (double)limits->bytes, text);
    sizes.right = fmax(sizes.right, (double)limits->document_bytes);
    snprintf(text, sizeof text, "limit: %s", spill_size_text(limits->document_bytes).text);
    add_marked(&sizes, (double)limits->document_bytes, text);
    widen(&sizes.left, &sizes.right);
    spill_plot_t plot = {.to = to,
                         .label = label,
                         .height = HEIGHT,
                         .x = spill_axis_log_bytes("size of a document", sizes.left, sizes.right),
                         .y = counts_of(&sizes, "documents")};
    put_distribution(&sizes, &plot);
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

/* Draw the lengths at which thresholds and limit are reached, each text in a column of its own. */
static void put_levels(const spill_plot_t *plot, const spill_large_owner_t *owner,
                       const spill_scan_limits_t *limits)
{
    const spill_when_t *limit = &owner->growth_forecast.limit;
    double element = owner->length > 0 ? (double)owner->bytes / (double)owner->length : 0;
    char count[64], bytes[64];
    snprintf(count, sizeof count, "threshold: %s", spill_count_text((double)limits->elements).text);
    snprintf(bytes, sizeof bytes, "about %s", spill_size_text(limits->bytes).text);
    const struct {
        double elements;
        const char *text;
    } levels[] = {
        {(double)limits->elements, count},
        {element > 0 ? (double)limits->bytes / element : 0, bytes},
        {limit->elements > 0 ? (double)owner->length + (double)limit->elements : 0,
         "document full"},
    };
    for (int i = 0; i < 3; i++)
        if (levels[i].elements >= plot->y.to * 0.04 && levels[i].elements <= plot->y.to)
            spill_plot_level(plot, levels[i].elements, i, levels[i].text);
}

static void put_past(const spill_plot_t *plot, const spill_course_t *course)
{
    spill_point_t *points = bson_malloc(course->past_count * sizeof *points);
    for (size_t i = 0; i < course->past_count; i++)
        points[i] = (spill_point_t){(double)course->past[i].at_ms / 1000, course->past[i].elements};
    spill_plot_line(plot, "past", points, course->past_count);
    bson_free(points);
}

/* The interval's upper edge goes from now on, its lower one back. */
static void put_coming(const spill_plot_t *plot, const spill_course_t *course, size_t count)
{
    size_t now = course->past_count - 1;
    spill_point_t start = {(double)course->past[now].at_ms / 1000, course->past[now].elements};
    spill_point_t *edge = bson_malloc((2 * count + 1) * sizeof *edge);
    spill_point_t *likely = bson_malloc((count + 1) * sizeof *likely);
    edge[0] = likely[0] = start;
    for (size_t i = 0; i < count; i++) {
        double at = (double)course->coming[i].at_ms / 1000;
        edge[1 + i] = (spill_point_t){at, course->coming[i].elements.high};
        edge[2 * count - i] = (spill_point_t){at, course->coming[i].elements.low};
        likely[1 + i] = (spill_point_t){at, course->coming[i].elements.likely};
    }
    spill_plot_area(plot, "interval", edge, 2 * count + 1);
    spill_plot_line(plot, "forecast", likely, count + 1);
    bson_free(edge);
    bson_free(likely);
    spill_plot_legend(plot, 1, "forecast", false, "forecast");
    spill_plot_legend(plot, 2, "interval", true, "80 % interval");
}

void spill_plot_growth(const spill_large_owner_t *owner, const spill_scan_limits_t *limits,
                       const char *label, FILE *to)
{
    const spill_course_t *course = owner->growth_forecast.course;
    if (!course || course->past_count < 2)
        return;
    view_t view = view_of(owner);
    if (view.to_ms <= view.from_ms || !isfinite(view.top))
        return;
    spill_plot_t plot = {.to = to,
                         .label = label,
                         .height = HEIGHT,
                         .rows = 1,
                         .x = spill_axis_time(view.from_ms, view.to_ms),
                         .y = spill_axis_linear("elements", view.top)};
    spill_plot_open(&plot);
    if (view.coming > 0)
        put_coming(&plot, course, view.coming);
    put_levels(&plot, owner, limits);
    put_past(&plot, course);
    spill_plot_legend(&plot, 0, "past", false, "so far");
    spill_svg_close(to);
}

/* ---- shares ---------------------------------------------------------------------------------- */

/* Return a text for a bar: "12.3 %  users: posts", cut between characters. */
static char *share_text(const spill_plot_share_t *share)
{
    char *visible = spill_visible_text(share->name);
    size_t length = strlen(visible), keep = length;
    if (keep > NAME_BYTES)
        for (keep = NAME_BYTES; keep > 0 && ((unsigned char)visible[keep] & 0xC0) == 0x80;)
            keep--;
    char *text = bson_strdup_printf("%.1f %%  %.*s%s", share->per_cent, (int)keep, visible,
                                    keep < length ? "\u2026" : "");
    bson_free(visible);
    return text;
}

void spill_plot_shares(const spill_plot_share_t *shares, size_t count, const char *label, FILE *to)
{
    if (count == 0)
        return;
    count = count < SPILL_PLOT_SHARES ? count : SPILL_PLOT_SHARES;
    double bars = (double)count;
    spill_plot_t plot = {.to = to,
                         .label = label,
                         .height = SHARE_HEIGHT * (int)count + SHARES_BELOW,
                         .x = {.title = "share of all bytes", .to = 100},
                         .y = {.to = bars}};
    for (int mark = 0; mark <= 100; mark += 25) {
        char text[16];
        snprintf(text, sizeof text, "%d %%", mark);
        spill_axis_mark(&plot.x, mark, text);
    }
    spill_plot_open(&plot);
    for (size_t i = 0; i < count; i++) {
        double top = bars - (double)i;
        char *text = share_text(&shares[i]);
        spill_plot_box(&plot, "bar", (spill_point_t){0, top - 0.95},
                       (spill_point_t){shares[i].per_cent, top - 0.55});
        spill_plot_text(&plot, (spill_point_t){0, top - 0.42}, text);
        bson_free(text);
    }
    spill_svg_close(to);
}
