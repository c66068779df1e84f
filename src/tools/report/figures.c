/* The plots of a report, with captions. */
#include "tools/report/report.h"
#include "tools/report/svg.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- one path -------------------------------------------------------------------------------- */

static void end_figure(FILE *to)
{
    fputs("</figcaption></figure>\n", to);
}

static spill_code_t put_lengths(const spill_report_t *report, const spill_scan_path_t *path,
                                spill_error_t *error)
{
    FILE *to = report->to;
    const char *what = path->map ? "maps" : "arrays";
    if (path->lengths.histogram.count == 0)
        return SPILL_OK;
    fputs("<figure>", to);
    spill_code_t code = spill_plot_lengths(path, report->result->limits.elements,
                                           "How many there are of which length", to, error);
    fprintf(to, "<figcaption>Lengths of %s %s", spill_count_text((double)path->lengths.count).text,
            what);
    fprintf(to, ": half have %s or fewer, ", spill_count_text((double)path->lengths.p50).text);
    fprintf(to, "99 %% have %s or fewer. Both axes are logarithmic.",
            spill_count_text((double)path->lengths.p99).text);
    end_figure(to);
    return code;
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

static spill_code_t put_growth(const spill_report_t *report, const spill_scan_path_t *path,
                               spill_error_t *error)
{
    FILE *to = report->to;
    const spill_large_owner_t *owner = shown_owner(&path->owners);
    if (!owner)
        return SPILL_OK;
    fputs("<figure>", to);
    spill_code_t code =
        spill_plot_growth(owner, "How one of the largest grew, and may continue", to, error);
    fputs("<figcaption>", to);
    if (owner->value.data)
        spill_html_value(to, &owner->value);
    else
        fprintf(to, "The document at %" PRId64, owner->place);
    fprintf(to, ": %.3g elements a day", owner->growth_forecast.pace.per_day);
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
    end_figure(to);
    return code;
}

static spill_code_t put_path(const spill_report_t *report, size_t index, spill_error_t *error)
{
    FILE *to = report->to;
    const spill_scan_path_t *path = report->paths[index];
    fprintf(to, "<section id=\"plot-%zu\" class=\"plots\"><h3>", index + 1);
    spill_html_place(to, report->result->collections[report->path_collections[index]].name,
                     path->path);
    fputs("</h3>\n<div class=\"figures\">\n", to);
    SPILL_TRY(put_lengths(report, path, error));
    SPILL_TRY(put_growth(report, path, error));
    fputs("</div></section>\n", to);
    return SPILL_OK;
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

static spill_code_t draw_shares(const spill_report_t *report, const share_t *shares, size_t count,
                                spill_error_t *error)
{
    spill_plot_share_t bars[SPILL_PLOT_SHARES];
    char *names[SPILL_PLOT_SHARES];
    count = count < SPILL_PLOT_SHARES ? count : SPILL_PLOT_SHARES;
    for (size_t i = 0; i < count; i++) {
        names[i] = bson_strdup_printf("%s: %s", shares[i].collection->name, shares[i].path->path);
        bars[i].name = names[i];
        bars[i].per_cent = 100.0 * (double)shares[i].path->bytes / (double)report->result->bytes;
    }
    spill_code_t code =
        spill_plot_shares(bars, count, "Share of all bytes by array", report->to, error);
    for (size_t i = 0; i < count; i++)
        bson_free(names[i]);
    return code;
}

static spill_code_t put_shares(const spill_report_t *report, spill_error_t *error)
{
    const spill_scan_result_t *result = report->result;
    size_t count = 0, at = 0;
    for (size_t i = 0; i < result->collection_count; i++)
        count += result->collections[i].path_count;
    if (count == 0 || result->bytes <= 0)
        return SPILL_OK;
    share_t *shares = bson_malloc0(count * sizeof *shares);
    for (size_t i = 0; i < result->collection_count; i++)
        for (size_t j = 0; j < result->collections[i].path_count; j++)
            shares[at++] = (share_t){&result->collections[i], &result->collections[i].paths[j]};
    qsort(shares, count, sizeof *shares, by_bytes);
    fputs("<section class=\"plots\"><h3>Where the bytes are</h3><div class=\"figures\"><figure>",
          report->to);
    spill_code_t code = draw_shares(report, shares, count, error);
    fputs(
        "<figcaption>The largest arrays and maps, as shares of everything scanned. An array inside "
        "another one counts in both.</figcaption></figure></div></section>\n",
        report->to);
    bson_free(shares);
    return code;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Report whether an earlier path has the same collection. */
static bool is_shown(const spill_report_t *report, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (report->path_collections[i] == report->path_collections[index])
            return true;
    return false;
}

static spill_code_t put_size(const spill_report_t *report,
                             const spill_scan_collection_t *collection, spill_error_t *error)
{
    FILE *to = report->to;
    fputs("<figure>", to);
    spill_code_t code =
        spill_plot_sizes(&collection->sizes.histogram, report->result->limits.document_bytes,
                         "How many documents there are of which size", to, error);
    fputs("<figcaption>", to);
    spill_html_name(to, collection->name);
    fprintf(to, ": the largest document has %s, ", spill_size_text(collection->sizes.max).text);
    fprintf(to, "%.1f %% of the limit.",
            100.0 * (double)collection->sizes.max / (double)report->result->limits.document_bytes);
    end_figure(to);
    return code;
}

static spill_code_t put_sizes(const spill_report_t *report, spill_error_t *error)
{
    const spill_scan_result_t *result = report->result;
    size_t shown = 0;
    fputs("<section class=\"plots\"><h3>How large documents are</h3><div class=\"figures\">\n",
          report->to);
    for (size_t i = 0; i < report->path_count && shown < SPILL_REPORT_SIZES; i++) {
        const spill_scan_collection_t *collection =
            &result->collections[report->path_collections[i]];
        if (collection->sizes.histogram.count == 0 || is_shown(report, i))
            continue;
        SPILL_TRY(put_size(report, collection, error));
        shown++;
    }
    fputs("</div></section>\n", report->to);
    return SPILL_OK;
}

spill_code_t spill_report_plots(const spill_report_t *report, spill_error_t *error)
{
    if (report->path_count == 0)
        return SPILL_OK;
    fputs("<section><h2>Plots</h2>\n", report->to);
    for (size_t i = 0; i < report->path_count; i++)
        SPILL_TRY(put_path(report, i, error));
    SPILL_TRY(put_sizes(report, error));
    SPILL_TRY(put_shares(report, error));
    fputs("</section>\n", report->to);
    return SPILL_OK;
}
