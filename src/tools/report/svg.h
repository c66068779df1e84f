/* From a gnuplot script to a picture in the page. */
#ifndef SPILL_TOOLS_REPORT_SVG_H
#define SPILL_TOOLS_REPORT_SVG_H

#include <spillway/error.h>

#include <stdio.h>

/* The width of every picture in its own units, in which texts are 15 high. */
enum { SPILL_SVG_WIDTH = 480 };

/* A script that is being written. */
typedef struct spill_svg {
    FILE *script;
    char *text;
    size_t size;
} spill_svg_t;

/* Begin a picture of that height: set terminal, fonts, colours and borders. */
void spill_svg_begin(spill_svg_t *svg, int height);

/*
 * Run the script and write the picture, without what only a separate file needs. Ends the svg in
 * every case. `label` is escaped. Errors: as spill_gnuplot.
 */
spill_code_t spill_svg_end(spill_svg_t *svg, const char *label, FILE *to, spill_error_t *error);

#endif
