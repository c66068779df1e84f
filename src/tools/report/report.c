/* Write the page of a report. */
#include "tools/report/report.h"

#include "tools/report/svg.h"
#include "util/text.h"

#include <spillway/version.h>

#include <inttypes.h>
#include <string.h>

/* ---- paths with plots ------------------------------------------------------------------------ */

static void add_path(spill_report_t *report, size_t collection, const spill_scan_path_t *path)
{
    for (size_t i = 0; i < report->path_count; i++)
        if (report->paths[i] == path)
            return;
    if (report->path_count == SPILL_REPORT_PATHS)
        return;
    report->paths[report->path_count] = path;
    report->path_collections[report->path_count++] = collection;
}

/* The paths with findings; if these are few, also the largest of each collection. */
static void choose_paths(spill_report_t *report)
{
    const spill_scan_result_t *result = report->result;
    for (size_t i = 0; i < result->finding_count; i++)
        if (result->findings[i].path)
            add_path(report, result->findings[i].collection, result->findings[i].path);
    for (size_t i = 0; i < result->collection_count; i++)
        if (result->collections[i].path_count > 0 && report->path_count < SPILL_REPORT_PATHS_MIN)
            add_path(report, i, &result->collections[i].paths[0]);
}

/* ---- the head -------------------------------------------------------------------------------- */

static void put_tile(FILE *to, const char *figure, const char *of)
{
    fprintf(to, "<li><b>%s</b>%s</li>\n", figure, of);
}

static void put_tiles(const spill_report_t *report)
{
    const spill_scan_result_t *result = report->result;
    FILE *to = report->to;
    size_t critical = 0;
    int64_t largest = 0;
    char text[64];
    for (size_t i = 0; i < result->finding_count; i++)
        critical += result->findings[i].critical;
    for (size_t i = 0; i < result->collection_count; i++)
        if (result->collections[i].sizes.max > largest)
            largest = result->collections[i].sizes.max;
    fputs("<ul class=\"tiles\">\n", to);
    snprintf(text, sizeof text, "%zu", critical);
    put_tile(to, text, critical == 1 ? "critical finding" : "critical findings");
    snprintf(text, sizeof text, "%zu", result->finding_count - critical);
    put_tile(to, text, result->finding_count - critical == 1 ? "warning" : "warnings");
    put_tile(to, spill_count_text((double)result->documents).text, "documents");
    put_tile(to, spill_size_text(result->bytes).text, "of documents");
    snprintf(text, sizeof text, "%.1f&nbsp;%%",
             100.0 * (double)largest / (double)result->limits.document_bytes);
    put_tile(to, text, "of the limit: the largest");
    fputs("</ul>\n", to);
}

/*
 * The policy forbids a browser to load or run anything. The page needs nothing, and a name that is
 * not escaped would stay text.
 */
static void put_head(const spill_report_t *report, const char *source)
{
    FILE *to = report->to;
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>Arrays "
          "that grow: ",
          to);
    spill_html_text(to, source);
    fputs("</title>\n", to);
    spill_html_style(to);
    fputs("</head>\n<body>\n<header><h1>Arrays that grow: ", to);
    spill_html_name(to, source);
    fputs("</h1>\n<p class=\"meta\">", to);
    if (report->result->scanned_ms > 0)
        fprintf(to, "Scanned on %s. ", spill_day_text(report->result->scanned_ms).text);
    fprintf(to, "Thresholds: %s elements, ",
            spill_count_text((double)report->result->limits.elements).text);
    fprintf(to, "%s of a document. ", spill_size_text(report->result->limits.bytes).text);
    fprintf(to, "The limit of a document is %s.</p>\n",
            spill_size_text(report->result->limits.document_bytes).text);
    put_tiles(report);
}

static void put_problems(const spill_report_t *report)
{
    const spill_scan_result_t *result = report->result;
    FILE *to = report->to;
    if (result->interrupted)
        fputs("<p><strong>The scan was interrupted: these are its results up to then.</strong>"
              "</p>\n",
              to);
    if (result->problems_all > 0)
        fprintf(to,
                "<p><strong>%" PRId64 " %s in the input could not be read, and %s not in these "
                "figures.</strong></p>\n",
                result->problems_all, result->problems_all == 1 ? "place" : "places",
                result->problems_all == 1 ? "is" : "are");
    if (result->problem_count > 0)
        fputs("<ul>\n", to);
    for (size_t i = 0; i < result->problem_count && i < SPILL_REPORT_PROBLEMS; i++) {
        const spill_scan_problem_t *problem = &result->problems[i];
        fputs("<li>", to);
        spill_html_name(to, problem->input);
        if (problem->place >= 0)
            fprintf(to, ", %s %" PRId64, problem->by_line ? "line" : "byte", problem->place);
        fputs(": ", to);
        spill_html_text(to, problem->text);
        fputs("</li>\n", to);
    }
    fputs(result->problem_count > 0 ? "</ul>\n" : "", to);
    fputs("</header>\n<main>\n", to);
}

/* ---- collections ----------------------------------------------------------------------------- */

static void put_collection(const spill_report_t *report, size_t index)
{
    FILE *to = report->to;
    const spill_scan_collection_t *collection = &report->result->collections[index];
    fputs("<tr><td>", to);
    spill_html_name(to, collection->name);
    fputs("</td>", to);
    spill_html_cell(to, "Documents", spill_count_text((double)collection->documents).text);
    spill_html_cell(to, "Bytes", spill_size_text(collection->bytes).text);
    spill_html_cell(to, "Median document", spill_size_text(collection->sizes.p50).text);
    spill_html_cell(to, "Largest", spill_size_text(collection->sizes.max).text);
    spill_html_cell(
        to, "Arrays and maps",
        spill_count_text((double)collection->path_count + (double)collection->paths_left_out).text);
    fputs("</tr>\n", to);
}

static void put_collections(const spill_report_t *report)
{
    size_t count = report->result->collection_count;
    FILE *to = report->to;
    fputs("<section><h2>Collections</h2>\n<table><thead><tr><th>Collection</th>"
          "<th>Documents</th><th>Bytes</th><th>Median document</th><th>Largest</th>"
          "<th>Arrays and maps</th></tr></thead><tbody>\n",
          to);
    for (size_t i = 0; i < count && i < SPILL_REPORT_COLLECTIONS; i++)
        put_collection(report, i);
    fputs("</tbody></table>\n", to);
    if (count > SPILL_REPORT_COLLECTIONS)
        fprintf(to, "<p>%zu more are in the scan's JSON.</p>\n", count - SPILL_REPORT_COLLECTIONS);
    fputs("</section></main>\n", to);
}

static void put_foot(const spill_report_t *report)
{
    fprintf(report->to,
            "<footer><p>Counts, sums, minima and maxima are exact; percentiles are within "
            "%.1f %%. Intervals are of 80 %%: two outcomes in ten are outside. They are learned "
            "from the collection's own past, and cannot know what has not happened before. "
            "Sizes are in units of 1000.</p><p>Made by Spillway %s; plots by gnuplot.</p></footer>"
            "\n</body></html>\n",
            100 * SPILL_SKETCH_ERROR, SPILL_VERSION);
}

spill_code_t spill_report_write(const spill_scan_result_t *result, const spill_plan_t *plan,
                                const char *source, FILE *to, spill_error_t *error)
{
    spill_report_t report = {.result = result, .plan = plan, .to = to};
    choose_paths(&report);
    char *shown = spill_redact(source);
    put_head(&report, shown);
    bson_free(shown);
    put_problems(&report);
    spill_report_findings(&report);
    spill_code_t code = spill_report_plots(&report, error);
    put_collections(&report);
    put_foot(&report);
    return code;
}
