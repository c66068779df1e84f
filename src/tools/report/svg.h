/*
 * Plots as SVG pictures: a frame with two axes, and shapes at places that the axes give. A `style`
 * names a class of spill_svg_style. Colours are variables, so they follow a page into dark mode.
 */
#ifndef SPILL_TOOLS_REPORT_SVG_H
#define SPILL_TOOLS_REPORT_SVG_H

#include "tools/report/axis.h"

#include <stdio.h>

/* The width of every picture in its own units, in which texts are 14 high. */
enum { SPILL_SVG_WIDTH = 480 };

/* ---- the style ------------------------------------------------------------------------------- */

/*
 * Rules of CSS for the pictures of a page, and values of the variables for light and dark screens:
 *   bar, interval          filled: counts; the interval of a forecast
 *   past, forecast         lines: what happened; what is likely
 *   limit                  a line of dashes, and its text
 *   kind0 to kind6         lines of different colours and dashes
 *   frame, grid            the lines behind
 *   text, title            texts at marks; titles of axes
 */
extern const char spill_svg_style[], spill_svg_light[], spill_svg_dark[];

/* ---- shapes, in units of the picture --------------------------------------------------------- */

typedef struct spill_point {
    double x, y;
} spill_point_t;

typedef enum spill_anchor {
    SPILL_ANCHOR_START,
    SPILL_ANCHOR_MIDDLE,
    SPILL_ANCHOR_END
} spill_anchor_t;

/*
 * Open a picture. `label` is for screen readers and is escaped. `alone`: the picture becomes a
 * file, which needs a style of its own; otherwise it becomes a part of a page that has the style.
 */
void spill_svg_open(FILE *to, int height, const char *label, bool alone);
void spill_svg_close(FILE *to);

/* `text` may have any characters. */
void spill_svg_text(FILE *to, spill_point_t at, spill_anchor_t anchor, const char *style,
                    const char *text);
void spill_svg_box(FILE *to, const char *style, spill_point_t corner, spill_point_t opposite);
void spill_svg_line(FILE *to, const char *style, spill_point_t from, spill_point_t end);

/* An upper bound of the width of a text. */
double spill_svg_text_width(const char *text);

/* ---- plots: coordinates are values on the axes ----------------------------------------------- */

/* Set the first fields; the last ones are computed. */
typedef struct spill_plot {
    FILE *to;
    const char *label;
    int height;
    bool alone;
    int rows; /* rows of a legend above the frame */
    spill_axis_t x, y;
    double left, right, top, bottom; /* the frame */
} spill_plot_t;

/* Open a picture, and draw frame, grid, marks and titles. Close it with spill_svg_close. */
void spill_plot_open(spill_plot_t *plot);

/* Shapes. What is outside of the frame moves to its border. */
void spill_plot_box(const spill_plot_t *plot, const char *style, spill_point_t low,
                    spill_point_t high);
void spill_plot_line(const spill_plot_t *plot, const char *style, const spill_point_t *points,
                     size_t count);
void spill_plot_area(const spill_plot_t *plot, const char *style, const spill_point_t *points,
                     size_t count);

/* A vertical line of style limit; its text in row `row` at the top, beside the line. */
void spill_plot_vertical(const spill_plot_t *plot, double x);
void spill_plot_vertical_text(const spill_plot_t *plot, double x, int row, const char *text);

/* A horizontal line, with its text above it, in column `column` of three. */
void spill_plot_level(const spill_plot_t *plot, double y, int column, const char *text);

/* A text that begins at this place. */
void spill_plot_text(const spill_plot_t *plot, spill_point_t at, const char *text);

/* Entry `at` of the legend: a sample of the style and its text. A row has three entries. */
void spill_plot_legend(const spill_plot_t *plot, int at, const char *style, bool filled,
                       const char *text);

#endif
