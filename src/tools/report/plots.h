/* The plots of a report, as SVG pictures embedded in the page. */
#ifndef SPILL_TOOLS_REPORT_PLOTS_H
#define SPILL_TOOLS_REPORT_PLOTS_H

#include "tools/scan/scan.h"

#include <stdio.h>

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
spill_code_t spill_plot_growth(const spill_owner_t *owner, const char *label, FILE *to,
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
