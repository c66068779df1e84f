/*
 * report: the result of a scan as one self-contained page: no network, no script, no other file.
 * Problems come first, each with what to do; then plots, then all collections. The page is made for
 * screens, phones and paper, light and dark.
 *
 * The folder's files, in the order to read:
 *   report.c            the page
 *   cards.c             which findings belong to one problem
 *   report_findings.c   the problems, each with what to do
 *   figures.c           the figures with their captions; plots.c draws each
 *   html.c              the style, and texts with any characters
 *   axis.c, svg.c       marks of axes; pictures
 */
#ifndef SPILL_TOOLS_REPORT_REPORT_H
#define SPILL_TOOLS_REPORT_REPORT_H

#include "tools/scan/plan.h"

#include <spillway/value.h>

#include <stdio.h>

/* The most of each; all are counted, and are in the scan's JSON. */
enum {
    SPILL_REPORT_CARDS = 100,
    SPILL_REPORT_CARD_FINDINGS = 20,
    SPILL_REPORT_PLOTTED = 12, /* problems with plots */
    SPILL_REPORT_PATHS = 4,    /* arrays with plots if there are no problems */
    SPILL_REPORT_SIZES = 6,    /* collections with a plot of documents' sizes */
    SPILL_REPORT_COLLECTIONS = 200,
    SPILL_REPORT_OWNERS = 5,
    SPILL_REPORT_PROBLEMS = 20
};

/*
 * Write the page. `source` is the name of what was scanned, without a password; `plan` was made
 * from the result. A problem with `to` is left to its caller.
 */
void spill_report_write(const spill_scan_result_t *result, const spill_plan_t *plan,
                        const char *source, FILE *to);

/* ---- for the files of the report ------------------------------------------------------------- */

/*
 * A problem: all findings of one array or map, of a group of collections, or of large documents. If
 * one array or map is most of the large documents, the finding of these is on its card.
 */
typedef struct spill_report_card {
    const spill_scan_path_t *path;     /* or NULL */
    const spill_sprawl_group_t *group; /* or NULL */
    size_t collection;
    bool critical;
    size_t first;   /* its place among the problems of the scan */
    int64_t weight; /* bytes; heavier problems come first */
    const spill_scan_finding_t *findings[SPILL_REPORT_CARD_FINDINGS];
    size_t count;
    size_t left_out; /* findings for which the card has no room */
} spill_report_card_t;

/* Shared by the parts of a page. */
typedef struct spill_report {
    const spill_scan_result_t *result;
    const spill_plan_t *plan;
    const char *source;
    FILE *to;
    spill_report_card_t *cards; /* critical ones first, then by weight */
    size_t card_count;
} spill_report_t;

/* Set the cards; the caller frees report->cards with bson_free. */
void spill_report_collect(spill_report_t *report);

/* Write the name of what has the problem. */
void spill_report_place(const spill_report_t *report, const spill_report_card_t *card);

void spill_report_problems(const spill_report_t *report);

/* The plots of one array or map. */
void spill_report_path_figures(const spill_report_t *report, const spill_scan_path_t *path);

/* The plots of collections and of the whole input. */
void spill_report_figures(const spill_report_t *report);

/* ---- html.c ---------------------------------------------------------------------------------- */

/* Write the page's style element. */
void spill_html_style(FILE *to);

/* Names come from databases, and may have any characters. */

/* Write a readable text (spill_visible_text) for an element's content or an attribute. */
void spill_html_text(FILE *to, const char *text);

/* Write a name as code, isolated from the text direction around it. */
void spill_html_name(FILE *to, const char *name);

/* Write where an array is: "users: posts"; only "users", if `path` is NULL. */
void spill_html_place(FILE *to, const char *collection, const char *path);

/* Write a value as relaxed Extended JSON in the same way. */
void spill_html_value(FILE *to, const spill_value_t *value);

/*
 * Write a table cell with a figure that is already HTML. On a screen too narrow for columns, it is
 * a line of its own with `label`, the column's head, in front.
 */
void spill_html_cell(FILE *to, const char *label, const char *text);

/* ---- plots.c, SVG pictures embedded in the page ---------------------------------------------- */

/*
 * Each writes one <svg> to the page, with `label` for screen readers. If there is nothing to draw,
 * it writes nothing. Each shows both thresholds of `limits`; bytes as the length that has them.
 */

/* The number of arrays by length. Both axes are logarithmic. */
void spill_plot_lengths(const spill_scan_path_t *path, const spill_scan_limits_t *limits,
                        const char *label, FILE *to);

/* The number of documents by size, up to the limit. Both axes are logarithmic. */
void spill_plot_sizes(const spill_scan_histogram_t *histogram, const spill_scan_limits_t *limits,
                      const char *label, FILE *to);

/* How an array grew, and how it may continue; nothing if its course is unknown. */
void spill_plot_growth(const spill_large_owner_t *owner, const spill_scan_limits_t *limits,
                       const char *label, FILE *to);

/* Bars with names. */
typedef struct spill_plot_share {
    const char *name;
    double per_cent;
} spill_plot_share_t;

enum { SPILL_PLOT_SHARES = 10 };

/* At most SPILL_PLOT_SHARES bars, from top to bottom. */
void spill_plot_shares(const spill_plot_share_t *shares, size_t count, const char *label, FILE *to);

#endif
