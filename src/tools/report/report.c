/* Write the page of a report. */
#include "tools/report/report.h"

#include "tools/report/axis.h"
#include "util/redact.h"
#include "util/text.h"

#include <spillway/version.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
    for (size_t i = 0; i < report->card_count; i++)
        critical += report->cards[i].critical;
    for (size_t i = 0; i < result->collection_count; i++)
        if (result->collections[i].sizes.max > largest)
            largest = result->collections[i].sizes.max;
    fputs("<ul class=\"tiles\">\n", to);
    snprintf(text, sizeof text, "%zu", critical);
    put_tile(to, text, critical == 1 ? "critical problem" : "critical problems");
    snprintf(text, sizeof text, "%zu", report->card_count - critical);
    put_tile(to, text, report->card_count - critical == 1 ? "warning" : "warnings");
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
static void put_head(const spill_report_t *report)
{
    FILE *to = report->to;
    const char *source = report->source;
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
    fprintf(to, "The database refuses documents larger than %s (the <dfn>limit</dfn>). ",
            spill_size_text(report->result->limits.document_bytes).text);
    fprintf(to, "An array or map is too long if it has more than %s %s or ",
            spill_count_text((double)report->result->limits.elements).text,
            spill_plural(report->result->limits.elements, "element", "elements"));
    fprintf(to,
            "%s in one document (the <dfn>thresholds</dfn>). A problem is <dfn>critical</dfn> if a "
            "document has more than four fifths of the limit.</p>\n",
            spill_size_text(report->result->limits.bytes).text);
    put_tiles(report);
}

static void put_damage(const spill_report_t *report)
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
}

/* ---- contents -------------------------------------------------------------------------------- */

static void put_contents(const spill_report_t *report)
{
    FILE *to = report->to;
    fputs("<nav aria-label=\"Contents\"><ol>\n", to);
    for (size_t i = 0; i < report->card_count && i < SPILL_REPORT_CARDS; i++) {
        const spill_report_card_t *card = &report->cards[i];
        fprintf(to, "<li class=\"%s\"><a href=\"#card-%zu\">",
                card->critical ? "critical" : "warning", i + 1);
        spill_report_place(report, card);
        fprintf(to, "</a> %s", spill_scan_finding_name(card->findings[0]->kind));
        for (size_t j = 1; j < card->count; j++)
            fprintf(to, ", %s", spill_scan_finding_name(card->findings[j]->kind));
        fprintf(to, ", %s</li>\n", spill_size_text(card->weight).text);
    }
    fputs(
        "<li><a href=\"#plots\">Plots</a></li>\n<li><a href=\"#collections\">Collections</a></li>\n"
        "</ol></nav>\n</header>\n<main>\n",
        to);
}

/* ---- collections ----------------------------------------------------------------------------- */

/* A row of the table: a collection, or a group of collections that are alike. */
typedef struct row {
    const spill_scan_collection_t *collection; /* NULL: a group */
    const spill_sprawl_group_t *group;
    int64_t bytes;
} row_t;

static int by_bytes(const void *left, const void *right)
{
    const row_t *one = left, *two = right;
    return (one->bytes < two->bytes) - (one->bytes > two->bytes);
}

/* The number of rows, sorted by bytes; members of groups have none of their own. */
static size_t make_rows(const spill_scan_result_t *result, row_t *rows)
{
    bool *grouped = bson_malloc0(result->collection_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < result->sprawl.count; i++) {
        const spill_sprawl_group_t *group = &result->sprawl.groups[i];
        rows[count++] = (row_t){.group = group, .bytes = group->bytes};
        for (size_t j = 0; j < group->count; j++)
            grouped[group->members[j]] = true;
    }
    for (size_t i = 0; i < result->collection_count; i++)
        if (!grouped[i])
            rows[count++] = (row_t){.collection = &result->collections[i],
                                    .bytes = result->collections[i].bytes};
    bson_free(grouped);
    qsort(rows, count, sizeof *rows, by_bytes);
    return count;
}

static void put_group(FILE *to, const spill_sprawl_group_t *group)
{
    fputs("<tr><td>", to);
    spill_html_name(to, group->pattern);
    fprintf(to, " (%zu collections)</td>", group->count);
    spill_html_cell(to, "Documents", spill_count_text((double)group->documents).text);
    spill_html_cell(to, "Bytes", spill_size_text(group->bytes).text);
    fputs("<td></td><td></td><td></td></tr>\n", to);
}

static void put_collection(FILE *to, const spill_scan_collection_t *collection)
{
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
    const spill_scan_result_t *result = report->result;
    FILE *to = report->to;
    row_t *rows = bson_malloc((result->collection_count + result->sprawl.count + 1) * sizeof *rows);
    size_t count = make_rows(result, rows);
    fputs("<section id=\"collections\"><h2>Collections</h2>\n<details class=\"fold\"><summary>Show "
          "them</summary>\n<table><thead><tr><th>Collection</th><th>Documents</th><th>Bytes</th>"
          "<th>Median document</th><th>Largest</th><th>Arrays and maps</th></tr></thead><tbody>\n",
          to);
    for (size_t i = 0; i < count && i < SPILL_REPORT_COLLECTIONS; i++) {
        if (rows[i].group)
            put_group(to, rows[i].group);
        else
            put_collection(to, rows[i].collection);
    }
    fputs("</tbody></table>\n", to);
    if (count > SPILL_REPORT_COLLECTIONS)
        fprintf(to, "<p>%zu more are in the scan's JSON.</p>\n", count - SPILL_REPORT_COLLECTIONS);
    fputs("</details></section></main>\n", to);
    bson_free(rows);
}

static void put_foot(const spill_report_t *report)
{
    fprintf(report->to,
            "<footer><p>Counts, sums, minima and maxima are exact; percentiles are within "
            "%.1f %%. Forecasts are learned from the collection's own past, and cannot know what "
            "has not happened before. 1 MiB is 1024 KiB or 1 048 576 bytes, as the database "
            "counts.</p><p>Made by Spillway %s.</p></footer>\n</body></html>\n",
            100 * SPILL_SKETCH_ERROR, SPILL_VERSION);
}

void spill_report_write(const spill_scan_result_t *result, const spill_plan_t *plan,
                        const char *source, FILE *to)
{
    char *shown = spill_redact(source);
    spill_report_t report = {.result = result, .plan = plan, .source = shown, .to = to};
    spill_report_collect(&report);
    put_head(&report);
    put_damage(&report);
    put_contents(&report);
    spill_report_problems(&report);
    spill_report_figures(&report);
    put_collections(&report);
    put_foot(&report);
    bson_free(report.cards);
    bson_free(shown);
}
