/* Plots as SVG pictures. */
#include "tools/report/svg.h"

#include "tools/report/report.h"

#include <math.h>

enum {
    TEXT_HEIGHT = 14,
    ROW_HEIGHT = 20,
    MARK_LENGTH = 5,
    GAP = 6,
    SAMPLE = 26,
    LEGEND_COLUMNS = 3,
    RIGHT_MARGIN = 14,
    TITLE_BASE = 8 /* between the lower title and the picture's end */
};

/* The mean width of a character is less than this, in the fonts of the page. */
static const double character_width = 7.6;

const char spill_svg_style[] =
    "svg text{font:14px system-ui,-apple-system,'Segoe "
    "UI',Roboto,Arial,sans-serif;fill:var(--ink)}\n"
    "svg .bar{fill:var(--bar);stroke:var(--paper);stroke-width:.5}\n"
    "svg .interval{fill:var(--pale);stroke:none}\n"
    "svg .past{fill:none;stroke:var(--ink);stroke-width:2.5}\n"
    "svg .forecast{fill:none;stroke:var(--bar);stroke-width:2;stroke-dasharray:8 4}\n"
    "svg line.limit{stroke:var(--limit);stroke-width:1.5;stroke-dasharray:6 4}\n"
    "svg text.limit{fill:var(--limit);paint-order:stroke;stroke:var(--paper);stroke-width:4}\n"
    "svg .frame{stroke:var(--soft);stroke-width:1}\n"
    "svg .grid{stroke:var(--faint);stroke-width:.7}\n"
    "svg .kind0,svg .kind1,svg .kind2,svg .kind3,svg .kind4,svg .kind5,svg .kind6{fill:none;"
    "stroke-width:2.5}\n"
    "svg .kind0{stroke:var(--ink);stroke-dasharray:8 4}svg .kind1{stroke:#0072B2}"
    "svg .kind2{stroke:#56B4E9;stroke-dasharray:6 3}svg .kind3{stroke:#009E73}"
    "svg .kind4{stroke:#E69F00}svg .kind5{stroke:#D55E00}svg .kind6{stroke:#CC79A7}\n";

/* Colour-blind people can distinguish blue and orange (Okabe and Ito). */
const char spill_svg_light[] = "--paper:#fff;--ink:#1a1a1a;--soft:#444;--faint:#ddd;--bar:#0072B2;"
                               "--pale:#B3D4E8;--limit:#A84300;";
const char spill_svg_dark[] = "--paper:#17191c;--ink:#e9e9e9;--soft:#b6bac0;--faint:#363b41;"
                              "--bar:#56B4E9;--pale:#25516d;--limit:#f2a766;";

/* ---- shapes ---------------------------------------------------------------------------------- */

void spill_svg_open(FILE *to, int height, const char *label, bool alone)
{
    fprintf(to, "<svg%s viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
            alone ? " xmlns=\"http://www.w3.org/2000/svg\"" : "", SPILL_SVG_WIDTH, height);
    spill_html_text(to, label);
    fputs("\">\n", to);
    if (alone)
        fprintf(to,
                "<style>:root{%sbackground:var(--paper)}\n"
                "@media (prefers-color-scheme:dark){:root{%s}}\n%s</style>\n",
                spill_svg_light, spill_svg_dark, spill_svg_style);
}

void spill_svg_close(FILE *to)
{
    fputs("</svg>\n", to);
}

double spill_svg_text_width(const char *text)
{
    size_t characters = 0;
    for (; *text; text++)
        characters += ((unsigned char)*text & 0xC0) != 0x80;
    return character_width * (double)characters;
}

void spill_svg_text(FILE *to, spill_point_t at, spill_anchor_t anchor, const char *style,
                    const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    fprintf(to, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", style, at.x, at.y,
            anchors[anchor]);
    spill_html_text(to, text);
    fputs("</text>\n", to);
}

void spill_svg_box(FILE *to, const char *style, spill_point_t corner, spill_point_t opposite)
{
    fprintf(to, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
            style, fmin(corner.x, opposite.x), fmin(corner.y, opposite.y),
            fabs(corner.x - opposite.x), fabs(corner.y - opposite.y));
}

void spill_svg_line(FILE *to, const char *style, spill_point_t from, spill_point_t end)
{
    fprintf(to, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", style,
            from.x, from.y, end.x, end.y);
}

/* ---- the frame ------------------------------------------------------------------------------- */

static double place_x(const spill_plot_t *plot, double x)
{
    return plot->left + spill_axis_place(&plot->x, x) * (plot->right - plot->left);
}

static double place_y(const spill_plot_t *plot, double y)
{
    return plot->bottom - spill_axis_place(&plot->y, y) * (plot->bottom - plot->top);
}

static void set_frame(spill_plot_t *plot)
{
    double widest = 0;
    for (size_t i = 0; i < plot->y.mark_count; i++)
        widest = fmax(widest, spill_svg_text_width(plot->y.marks[i].text));
    plot->left = widest + 2 * GAP + MARK_LENGTH + (plot->y.title ? ROW_HEIGHT : 0);
    plot->right = SPILL_SVG_WIDTH - RIGHT_MARGIN;
    plot->top = GAP + TEXT_HEIGHT / 2.0 + ROW_HEIGHT * plot->rows;
    plot->bottom = plot->height - MARK_LENGTH - ROW_HEIGHT - GAP - (plot->x.title ? ROW_HEIGHT : 0);
}

/* Marks with texts that would overlap have none. */
static void put_x_marks(const spill_plot_t *plot)
{
    double end = 0, base = plot->bottom + MARK_LENGTH + TEXT_HEIGHT + 1;
    for (size_t i = 0; i < plot->x.mark_count; i++) {
        const spill_mark_t *mark = &plot->x.marks[i];
        double x = place_x(plot, mark->value), half = spill_svg_text_width(mark->text) / 2;
        spill_svg_line(plot->to, "frame", (spill_point_t){x, plot->bottom},
                       (spill_point_t){x, plot->bottom + MARK_LENGTH});
        if (x - half < end || x + half > SPILL_SVG_WIDTH)
            continue;
        spill_svg_text(plot->to, (spill_point_t){x, base}, SPILL_ANCHOR_MIDDLE, "text", mark->text);
        end = x + half + GAP;
    }
}

static void put_y_marks(const spill_plot_t *plot)
{
    double end = plot->height;
    for (size_t i = 0; i < plot->y.mark_count; i++) {
        const spill_mark_t *mark = &plot->y.marks[i];
        double y = place_y(plot, mark->value);
        spill_svg_line(plot->to, "grid", (spill_point_t){plot->left, y},
                       (spill_point_t){plot->right, y});
        spill_svg_line(plot->to, "frame", (spill_point_t){plot->left - MARK_LENGTH, y},
                       (spill_point_t){plot->left, y});
        if (y > end)
            continue;
        spill_svg_text(plot->to, (spill_point_t){plot->left - MARK_LENGTH - GAP, y + GAP - 1},
                       SPILL_ANCHOR_END, "text", mark->text);
        end = y - TEXT_HEIGHT - 2;
    }
}

void spill_plot_open(spill_plot_t *plot)
{
    FILE *to = plot->to;
    set_frame(plot);
    double middle_x = (plot->left + plot->right) / 2, middle_y = (plot->top + plot->bottom) / 2;
    spill_svg_open(to, plot->height, plot->label, plot->alone);
    put_x_marks(plot);
    put_y_marks(plot);
    spill_svg_line(to, "frame", (spill_point_t){plot->left, plot->top},
                   (spill_point_t){plot->left, plot->bottom});
    spill_svg_line(to, "frame", (spill_point_t){plot->left, plot->bottom},
                   (spill_point_t){plot->right, plot->bottom});
    if (plot->x.title)
        spill_svg_text(to, (spill_point_t){middle_x, plot->height - TITLE_BASE},
                       SPILL_ANCHOR_MIDDLE, "title", plot->x.title);
    if (plot->y.title) {
        fprintf(to, "<g transform=\"translate(%d,%.1f) rotate(-90)\">", TEXT_HEIGHT + 2, middle_y);
        spill_svg_text(to, (spill_point_t){0, 0}, SPILL_ANCHOR_MIDDLE, "title", plot->y.title);
        fputs("</g>\n", to);
    }
}

/* ---- in the frame ---------------------------------------------------------------------------- */

static spill_point_t placed(const spill_plot_t *plot, spill_point_t value)
{
    return (spill_point_t){place_x(plot, value.x), place_y(plot, value.y)};
}

void spill_plot_box(const spill_plot_t *plot, const char *style, spill_point_t low,
                    spill_point_t high)
{
    spill_svg_box(plot->to, style, placed(plot, low), placed(plot, high));
}

static void put_points(const spill_plot_t *plot, const char *element, const char *style,
                       const spill_point_t *points, size_t count)
{
    fprintf(plot->to, "<%s class=\"%s\" points=\"", element, style);
    for (size_t i = 0; i < count; i++) {
        spill_point_t at = placed(plot, points[i]);
        fprintf(plot->to, "%s%.1f,%.1f", i ? " " : "", at.x, at.y);
    }
    fputs("\"/>\n", plot->to);
}

void spill_plot_line(const spill_plot_t *plot, const char *style, const spill_point_t *points,
                     size_t count)
{
    put_points(plot, "polyline", style, points, count);
}

void spill_plot_area(const spill_plot_t *plot, const char *style, const spill_point_t *points,
                     size_t count)
{
    put_points(plot, "polygon", style, points, count);
}

void spill_plot_vertical(const spill_plot_t *plot, double x)
{
    double at = place_x(plot, x);
    spill_svg_line(plot->to, "limit", (spill_point_t){at, plot->top},
                   (spill_point_t){at, plot->bottom});
}

void spill_plot_vertical_text(const spill_plot_t *plot, double x, int row, const char *text)
{
    double at = place_x(plot, x), base = plot->top + TEXT_HEIGHT + row * ROW_HEIGHT;
    bool far = at > (plot->left + plot->right) / 2;
    spill_svg_text(plot->to, (spill_point_t){at + (far ? -GAP : GAP), base},
                   far ? SPILL_ANCHOR_END : SPILL_ANCHOR_START, "limit", text);
}

void spill_plot_level(const spill_plot_t *plot, double y, int column, const char *text)
{
    static const spill_anchor_t anchors[] = {SPILL_ANCHOR_START, SPILL_ANCHOR_MIDDLE,
                                             SPILL_ANCHOR_END};
    double at = place_y(plot, y), width = plot->right - plot->left;
    spill_svg_line(plot->to, "limit", (spill_point_t){plot->left, at},
                   (spill_point_t){plot->right, at});
    spill_svg_text(plot->to,
                   (spill_point_t){plot->left + width * column / 2 + GAP * (1 - column), at - GAP},
                   anchors[column], "limit", text);
}

void spill_plot_text(const spill_plot_t *plot, spill_point_t at, const char *text)
{
    spill_point_t place = placed(plot, at);
    place.x += 1;
    spill_svg_text(plot->to, place, SPILL_ANCHOR_START, "text", text);
}

void spill_plot_legend(const spill_plot_t *plot, int at, const char *style, bool filled,
                       const char *text)
{
    double x = GAP + at % LEGEND_COLUMNS * (SPILL_SVG_WIDTH - GAP) / (double)LEGEND_COLUMNS;
    int row = at / LEGEND_COLUMNS;
    double y = GAP + ROW_HEIGHT * row + TEXT_HEIGHT / 2.0;
    if (filled)
        spill_svg_box(plot->to, style, (spill_point_t){x, y - GAP},
                      (spill_point_t){x + SAMPLE, y + GAP});
    else
        spill_svg_line(plot->to, style, (spill_point_t){x, y}, (spill_point_t){x + SAMPLE, y});
    spill_svg_text(plot->to, (spill_point_t){x + SAMPLE + GAP, y + GAP - 1}, SPILL_ANCHOR_START,
                   "text", text);
}
