/* Pictures in a page: a gnuplot script with axes becomes an SVG. */
#ifndef SPILL_TOOLS_REPORT_SVG_H
#define SPILL_TOOLS_REPORT_SVG_H

#include "util/buffer.h"
#include "util/file.h"

#include <spillway/error.h>

#include <stdint.h>
#include <stdio.h>

/* ---- gnuplot as a program -------------------------------------------------------------------- */

/* Without output for this long, gnuplot is ended. */
#define SPILL_GNUPLOT_MS 60000

/*
 * Append gnuplot's output for the script to `out`. gnuplot reads no files of the user's: the script
 * contains its data. About 30 ms. SPILL_NOT_FOUND: gnuplot is not installed; the message says what
 * to install. SPILL_IO: it failed; the message quotes gnuplot's own.
 */
spill_code_t spill_gnuplot(const char *script, size_t size_bytes, spill_buffer_t *out,
                           spill_error_t *error);

/* ---- the picture ----------------------------------------------------------------------------- */

/* The width of every picture in its own units, in which texts are 15 high. */
enum { SPILL_SVG_WIDTH = 480 };

/*
 * Begin a picture of that height: open a script that sets terminal, fonts, colours and borders.
 * SPILL_NO_MEMORY. Release the script in every case.
 */
spill_code_t spill_svg_begin(spill_text_t *script, int height, spill_error_t *error);

/*
 * Close and run the script, and write the picture, without what only a separate file needs. `label`
 * is escaped. SPILL_NO_MEMORY; others as spill_gnuplot.
 */
spill_code_t spill_svg_end(spill_text_t *script, const char *label, FILE *to, spill_error_t *error);

/* ---- axes ------------------------------------------------------------------------------------ */

/* Ticks on axes, with places and texts as people expect, few enough not to overlap. */

/* "12 000" with spaces that do not break, "1.2 M" from a million on. */
typedef struct spill_count_text {
    char text[32];
} spill_count_text_t;
spill_count_text_t spill_count_text(double count);

/* A logarithmic axis, 'x' or 'y': powers of ten from `least` to `most`. */
void spill_axis_log(FILE *script, char axis, double least, double most);
void spill_axis_log_bytes(FILE *script, char axis, double least, double most);

/* From 0 to `top`, in steps of 1, 2 or 5 times a power of ten. */
void spill_axis_linear(FILE *script, char axis, double top);

/* Days, months or years on x, in UTC; the unit of the axis is seconds since 1970. */
void spill_axis_time(FILE *script, int64_t from_ms, int64_t to_ms);

#endif
