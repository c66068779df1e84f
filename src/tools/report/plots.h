/* The plots of a report, as pictures in SVG that stand in the page itself. */
#ifndef SPILL_TOOLS_REPORT_PLOTS_H
#define SPILL_TOOLS_REPORT_PLOTS_H

#include "tools/scan/scan.h"

#include <stdio.h>

/*
 * Each writes one <svg> to the page, with `label` for those who do not see it; nothing where there
 * is nothing to draw. Errors are spill_gnuplot's.
 */

/* How many arrays there are of which length; `threshold` is marked. Both axes are logarithmic. */
spill_code_t spill_plot_lengths(const spill_scan_path_t *path, int64_t threshold, const char *label,
                                FILE *to, spill_error_t *error);

/* How many documents there are of which size, up to the limit. Likewise. */
spill_code_t spill_plot_sizes(const spill_scan_histogram_t *sizes, int64_t limit, const char *label,
                              FILE *to, spill_error_t *error);

/* How an array grew, and how it may go on; nothing where its course is not known. */
spill_code_t spill_plot_growth(const spill_owner_t *owner, const char *label, FILE *to,
                               spill_error_t *error);

/* Bars with names. */
typedef struct spill_plot_share {
    const char *name;
    double per_cent;
} spill_plot_share_t;

enum { SPILL_PLOT_SHARES = 10 };

/* At most SPILL_PLOT_SHARES of them, from above to below. */
spill_code_t spill_plot_shares(const spill_plot_share_t *shares, size_t count, const char *label,
                               FILE *to, spill_error_t *error);

#endif
