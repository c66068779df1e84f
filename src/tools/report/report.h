/*
 * report: the result of a scan as one self-contained page: no network, no script, no other file.
 * Findings come first, each with what to do, then plots, then all collections. The page is made for
 * screens, phones and paper.
 *
 * The folder's files, in the order to read:
 *   report.c            the page
 *   report_findings.c   the findings, each with what to do
 *   figures.c           the figures with their captions; plots.c draws each
 *   html.c              the style, and texts with any characters
 *   svg.c               axes and pictures; gnuplot.c runs gnuplot
 */
#ifndef SPILL_TOOLS_REPORT_REPORT_H
#define SPILL_TOOLS_REPORT_REPORT_H

#include "tools/scan/plan.h"

#include <spillway/value.h>

#include <stdio.h>

/* The most of each; all are counted, and are in the scan's JSON. */
enum {
    SPILL_REPORT_FINDINGS = 100,
    SPILL_REPORT_PATHS = 12,    /* with plots */
    SPILL_REPORT_PATHS_MIN = 4, /* with plots, even without findings */
    SPILL_REPORT_SIZES = 6,     /* collections with a plot of documents' sizes */
    SPILL_REPORT_COLLECTIONS = 200,
    SPILL_REPORT_OWNERS = 5,
    SPILL_REPORT_PROBLEMS = 20
};

/*
 * Write the page. `source` is the name of what was scanned, without a password; `plan` was made
 * from the result. SPILL_NOT_FOUND: gnuplot is not installed; SPILL_IO: it failed. After an error
 * the page is incomplete.
 */
spill_code_t spill_report_write(const spill_scan_result_t *result, const spill_plan_t *plan,
                                const char *source, FILE *to, spill_error_t *error);

/* ---- for the files of the report ------------------------------------------------------------- */

/* Shared by the parts of a page. */
typedef struct spill_report {
    const spill_scan_result_t *result;
    const spill_plan_t *plan;
    FILE *to;
    /* Paths with plots, in this order, and their collections. */
    const spill_scan_path_t *paths[SPILL_REPORT_PATHS];
    size_t path_collections[SPILL_REPORT_PATHS];
    size_t path_count;
} spill_report_t;

void spill_report_findings(const spill_report_t *report);
spill_code_t spill_report_plots(const spill_report_t *report, spill_error_t *error);

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
 * it writes nothing. Errors: as spill_gnuplot.
 */

/* The number of arrays by length, with `threshold` marked. Both axes are logarithmic. */
spill_code_t spill_plot_lengths(const spill_scan_path_t *path, int64_t threshold, const char *label,
                                FILE *to, spill_error_t *error);

/* The number of documents by size, up to the limit. Both axes are logarithmic. */
spill_code_t spill_plot_sizes(const spill_scan_histogram_t *sizes, int64_t limit, const char *label,
                              FILE *to, spill_error_t *error);

/* How an array grew, and how it may continue; nothing if its course is unknown. */
spill_code_t spill_plot_growth(const spill_large_owner_t *owner, const char *label, FILE *to,
                               spill_error_t *error);

/* Bars with names. */
typedef struct spill_plot_share {
    const char *name;
    double per_cent;
} spill_plot_share_t;

enum { SPILL_PLOT_SHARES = 10 };

/* At most SPILL_PLOT_SHARES bars, from top to bottom. */
spill_code_t spill_plot_shares(const spill_plot_share_t *shares, size_t count, const char *label,
                               FILE *to, spill_error_t *error);

#endif
