/* From a script for gnuplot to a picture in the page. */
#ifndef SPILL_TOOLS_REPORT_SVG_H
#define SPILL_TOOLS_REPORT_SVG_H

#include <spillway/error.h>

#include <stdio.h>

/* Width of every picture in its own units, in which texts have 15. */
enum { SPILL_SVG_WIDTH = 480 };

/* A script that is being put together. */
typedef struct spill_svg {
    FILE *script;
    char *text;
    size_t size;
} spill_svg_t;

/* Begin one of that height: terminal, fonts, colours and borders are set. */
void spill_svg_begin(spill_svg_t *svg, int height);

/*
 * Run the script and write the picture, stripped of what only a file of its own needs. Ends the
 * svg in every case. `label` is escaped. Errors: spill_gnuplot's.
 */
spill_code_t spill_svg_end(spill_svg_t *svg, const char *label, FILE *to, spill_error_t *error);

#endif
