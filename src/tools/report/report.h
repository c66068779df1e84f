/*
 * report: the result of a scan as one self-contained page: no network, no script, no other file.
 * Findings come first, each with what to do, then plots, then all collections. The page is made for
 * screens, phones and paper.
 */
#ifndef SPILL_TOOLS_REPORT_REPORT_H
#define SPILL_TOOLS_REPORT_REPORT_H

#include "tools/scan/plan.h"

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

#endif
