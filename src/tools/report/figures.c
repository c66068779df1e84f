/* The plots of a report, with captions. */
#include "tools/report/axis.h"
#include "tools/report/report.h"
#include "util/text.h"

#include <stdlib.h>

static void end_figure(FILE *to)
{
    fputs("</figcaption></figure>\n", to);
}

/* ---- one path -------------------------------------------------------------------------------- */

static void put_lengths(const spill_report_t *report, const spill_scan_path_t *path)
{
    FILE *to = report->to;
    if (path->lengths.histogram.count == 0)
        return;
    fputs("<figure>", to);
    spill_plot_lengths(path, &report->result->limits, "The number of arrays or maps by length", to);
    fprintf(to, "<figcaption>Lengths of %s %s", spill_count_text((double)path->lengths.count).text,
            path->map ? "maps" : "arrays");
    fprintf(to, ": half have %s or fewer, ", spill_count_text((double)path->lengths.p50).text);
    fprintf(to, "99 %% have %s or fewer. Both axes are logarithmic.",
            spill_count_text((double)path->lengths.p99).text);
    end_figure(to);
}

/* The owner that reaches the limit first, if its course is known; else the first known one. */
static const spill_large_owner_t *shown_owner(const spill_owners_t *owners)
{
    const spill_large_owner_t *owner =
        owners->count > 0 ? spill_owners_first_at_limit(owners) : NULL;
    for (size_t i = 0; i < owners->count && !owner->growth_forecast.course; i++)
        owner = &owners->items[i];
    return owner && owner->growth_forecast.course ? owner : NULL;
}

static void put_growth(const spill_report_t *report, const spill_scan_path_t *path)
{
    FILE *to = report->to;
    const spill_large_owner_t *owner = shown_owner(&path->owners);
    if (!owner)
        return;
    fputs("<figure>", to);
    spill_plot_growth(owner, &report->result->limits,
                      "How one of the largest grew, and may continue", to);
    fputs("<figcaption>", to);
    if (owner->value.data)
        spill_html_value(to, &owner->value);
    else
        fprintf(to, "The document at %" PRId64, owner->place);
    fprintf(to, ": %s elements a day", spill_count_text(owner->growth_forecast.pace.per_day).text);
    if (owner->growth_forecast.timed)
        fprintf(to, " by %s", spill_day_text(owner->growth_forecast.newest_ms).text);
    fputs(".", to);
    if (owner->growth_forecast.threshold.elements > 0)
        fprintf(
            to, " Threshold: %s.",
            spill_when_text(&owner->growth_forecast.threshold, report->result->scanned_ms).text);
    if (owner->growth_forecast.limit.elements > 0)
        fprintf(to, " Document full: %s.",
                spill_when_text(&owner->growth_forecast.limit, report->result->scanned_ms).text);
    fputs(" In eight of ten cases the length stays in the pale area.", to);
    if (spill_when_has_interval(&owner->growth_forecast, &owner->growth_forecast.threshold) ||
        spill_when_has_interval(&owner->growth_forecast, &owner->growth_forecast.limit))
        fputs(" " SPILL_INTERVAL_MEANING, to);
    end_figure(to);
}

void spill_report_path_figures(const spill_report_t *report, const spill_scan_path_t *path)
{
    fputs("<div class=\"figures\">\n", report->to);
    put_lengths(report, path);
    put_growth(report, path);
    fputs("</div>\n", report->to);
}

/* Without problems: the largest array of some collections. */
static void put_largest_paths(const spill_report_t *report)
{
    const spill_scan_result_t *result = report->result;
    size_t shown = 0;
    for (size_t i = 0; i < result->collection_count && shown < SPILL_REPORT_PATHS; i++) {
        const spill_scan_collection_t *collection = &result->collections[i];
        if (collection->path_count == 0)
            continue;
        fputs("<section class=\"plots\"><h3>", report->to);
        spill_html_place(report->to, collection->name, collection->paths[0].path);
        fputs("</h3>\n", report->to);
        spill_report_path_figures(report, &collection->paths[0]);
        fputs("</section>\n", report->to);
        shown++;
    }
}

/* ---- shares ---------------------------------------------------------------------------------- */

typedef struct share {
    const spill_scan_collection_t *collection;
    const spill_scan_path_t *path;
} share_t;

static int by_bytes(const void *left, const void *right)
{
    const share_t *one = left, *two = right;
    if (one->path->bytes != two->path->bytes)
        return one->path->bytes > two->path->bytes ? -1 : 1;
    return (one->path > two->path) - (one->path < two->path);
}

static void draw_shares(const spill_report_t *report, const share_t *shares, size_t count)
{
    spill_plot_share_t bars[SPILL_PLOT_SHARES];
    char *names[SPILL_PLOT_SHARES];
    count = count < SPILL_PLOT_SHARES ? count : SPILL_PLOT_SHARES;
    for (size_t i = 0; i < count; i++) {
        names[i] = bson_strdup_printf("%s: %s", shares[i].collection->name, shares[i].path->path);
        bars[i].name = names[i];
        bars[i].per_cent = 100.0 * (double)shares[i].path->bytes / (double)report->result->bytes;
    }
    spill_plot_shares(bars, count, "Share of all bytes by array", report->to);
    for (size_t i = 0; i < count; i++)
        bson_free(names[i]);
}

static void put_shares(const spill_report_t *report)
{
    const spill_scan_result_t *result = report->result;
    size_t count = 0, at = 0;
    for (size_t i = 0; i < result->collection_count; i++)
        count += result->collections[i].path_count;
    if (count == 0 || result->bytes <= 0)
        return;
    share_t *shares = bson_malloc0(count * sizeof *shares);
    for (size_t i = 0; i < result->collection_count; i++)
        for (size_t j = 0; j < result->collections[i].path_count; j++)
            shares[at++] = (share_t){&result->collections[i], &result->collections[i].paths[j]};
    qsort(shares, count, sizeof *shares, by_bytes);
    fputs("<section class=\"plots\"><h3>Where the bytes are</h3><div class=\"figures\"><figure>",
          report->to);
    draw_shares(report, shares, count);
    fputs(
        "<figcaption>The largest arrays and maps, as shares of everything scanned. An array inside "
        "another one counts in both.</figcaption></figure></div></section>\n",
        report->to);
    bson_free(shares);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* A collection with a plot of its documents' sizes. */
typedef struct sized {
    const spill_scan_collection_t *collection;
} sized_t;

static int by_largest(const void *left, const void *right)
{
    const spill_scan_collection_t *one = ((const sized_t *)left)->collection;
    const spill_scan_collection_t *two = ((const sized_t *)right)->collection;
    if (one->sizes.max != two->sizes.max)
        return one->sizes.max > two->sizes.max ? -1 : 1;
    return (one > two) - (one < two);
}

static void put_size(const spill_report_t *report, const spill_scan_collection_t *collection)
{
    FILE *to = report->to;
    const spill_scan_limits_t *limits = &report->result->limits;
    fputs("<figure>", to);
    spill_plot_sizes(&collection->sizes.histogram, limits, "The number of documents by size", to);
    fputs("<figcaption>", to);
    spill_html_name(to, collection->name);
    fprintf(to, ": the largest document has %s, ", spill_size_text(collection->sizes.max).text);
    fprintf(to, "%.1f %% of the limit.",
            100.0 * (double)collection->sizes.max / (double)limits->document_bytes);
    end_figure(to);
}

/* The collections with the largest documents. */
static void put_sizes(const spill_report_t *report)
{
    const spill_scan_result_t *result = report->result;
    sized_t *largest = bson_malloc((result->collection_count + 1) * sizeof *largest);
    size_t count = 0;
    for (size_t i = 0; i < result->collection_count; i++)
        if (result->collections[i].sizes.histogram.count > 0)
            largest[count++].collection = &result->collections[i];
    qsort(largest, count, sizeof *largest, by_largest);
    if (count > 0)
        fputs("<section class=\"plots\"><h3>How large documents are</h3><div class=\"figures\">\n",
              report->to);
    for (size_t i = 0; i < count && i < SPILL_REPORT_SIZES; i++)
        put_size(report, largest[i].collection);
    if (count > 0)
        fputs("</div></section>\n", report->to);
    bson_free(largest);
}

void spill_report_figures(const spill_report_t *report)
{
    fputs("<section id=\"plots\"><h2>Plots</h2><details class=\"fold\"><summary>Show "
          "them</summary>\n",
          report->to);
    if (report->card_count == 0)
        put_largest_paths(report);
    put_sizes(report);
    put_shares(report);
    fputs("</details></section>\n", report->to);
}
