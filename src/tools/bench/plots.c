/* Plots of a run as SVG files, drawn by gnuplot. */
#include "tools/bench/bench.h"
#include "tools/report/axes.h"
#include "tools/report/svg.h"
#include "util/error.h"
#include "util/file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { HEIGHT = 380 };

/* Colours that colour-blind people can tell apart (Okabe and Ito), and dashes as well. */
static const struct {
    const char *colour, *dashes;
} styles[SPILL_BENCH_KINDS] = {{"#222222", "(8,4)"}, {"#0072B2", "solid"}, {"#56B4E9", "(6,3)"},
                               {"#009E73", "solid"}, {"#E69F00", "solid"}, {"#D55E00", "solid"},
                               {"#CC79A7", "solid"}};

/* The value of a row to draw, and its interval. */
typedef struct point {
    double value, low, high;
} point_t;

typedef struct plot {
    const char *file, *label, *axis;
    int threads;
    bool bytes;
    point_t (*point)(const spill_bench_row_t *row);
} plot_t;

static point_t append_us(const spill_bench_row_t *row)
{
    return (point_t){row->append.us.median, row->append.us.low, row->append.us.high};
}

static point_t document_bytes(const spill_bench_row_t *row)
{
    double bytes = (double)row->document_bytes;
    return (point_t){bytes, bytes, bytes};
}

static bool is_drawn(const plot_t *plot, const spill_bench_row_t *row)
{
    return row->threads == plot->threads && !row->over;
}

/* Write the data of a kind; return the number of its points. */
static size_t put_data(FILE *script, const plot_t *plot, const spill_bench_result_t *result,
                       spill_bench_kind_t kind)
{
    size_t points = 0;
    fprintf(script, "$%s << END\n", spill_bench_kind_name(kind));
    for (size_t i = 0; i < result->row_count; i++) {
        const spill_bench_row_t *row = &result->rows[i];
        if (!is_drawn(plot, row) || row->kind != kind)
            continue;
        point_t point = plot->point(row);
        fprintf(script, "%.15g\t%.15g\t%.15g\t%.15g\n", (double)row->length, point.value, point.low,
                point.high);
        points++;
    }
    fputs("END\n", script);
    return points;
}

/* Set the ranges of both axes; false if there is nothing to draw. */
static bool put_ranges(FILE *script, const plot_t *plot, const spill_bench_result_t *result)
{
    double left = INFINITY, right = 0, bottom = INFINITY, top = 0;
    for (size_t i = 0; i < result->row_count; i++) {
        if (!is_drawn(plot, &result->rows[i]))
            continue;
        point_t point = plot->point(&result->rows[i]);
        left = fmin(left, (double)result->rows[i].length);
        right = fmax(right, (double)result->rows[i].length);
        bottom = fmin(bottom, point.low);
        top = fmax(top, point.high);
    }
    if (right <= 0 || bottom <= 0)
        return false;
    left *= 0.8;
    right *= 1.25;
    bottom = fmin(bottom * 0.7, top / 20);
    top *= 1.4;
    fprintf(script,
            "set xrange [%.15g:%.15g]\nset yrange [%.15g:%.15g]\n"
            "set xlabel 'elements in the array'\nset ylabel '%s' offset 0.4,0\n"
            "set key outside top center horizontal maxcols 4 samplen 2 textcolor rgb '#111111'\n",
            left, right, bottom, top, plot->axis);
    spill_axis_log(script, 'x', left, right);
    (plot->bytes ? spill_axis_log_bytes : spill_axis_log)(script, 'y', bottom, top);
    return true;
}

static void put_lines(FILE *script, const size_t points[SPILL_BENCH_KINDS])
{
    const char *before = "plot ";
    for (int kind = 0; kind < SPILL_BENCH_KINDS; kind++) {
        const char *name = spill_bench_kind_name((spill_bench_kind_t)kind);
        if (points[kind] == 0)
            continue;
        fprintf(script,
                "%s$%s using 1:3:(0):($4-$3) with vectors nohead linewidth 1 linecolor rgb '%s' "
                "notitle, $%s using 1:2 with lines linewidth 2.5 dashtype %s linecolor rgb '%s' "
                "title '%s'",
                before, name, styles[kind].colour, name, styles[kind].dashes, styles[kind].colour,
                name);
        before = ", ";
    }
    fputs("\n", script);
}

static spill_code_t draw(const plot_t *plot, const spill_bench_result_t *result, const char *folder,
                         spill_error_t *error)
{
    spill_svg_t svg;
    char *text = NULL, *path = bson_strdup_printf("%s/%s", folder, plot->file);
    size_t size = 0, points[SPILL_BENCH_KINDS];
    spill_svg_begin(&svg, HEIGHT);
    bool any = put_ranges(svg.script, plot, result);
    for (int kind = 0; kind < SPILL_BENCH_KINDS; kind++)
        points[kind] = put_data(svg.script, plot, result, (spill_bench_kind_t)kind);
    if (any)
        put_lines(svg.script, points);
    FILE *to = open_memstream(&text, &size);
    spill_code_t code = spill_svg_end(&svg, plot->label, to, error);
    fclose(to);
    if (code == SPILL_OK)
        code = spill_file_replace_itself(path, text, size, error);
    free(text);
    bson_free(path);
    return code;
}

spill_code_t spill_bench_plots(const spill_bench_options_t *options,
                               const spill_bench_result_t *result, const char *folder,
                               spill_error_t *error)
{
    const plot_t plots[] = {{"append.svg",
                             "What an append costs, by the length of the array, with one thread",
                             "microseconds for an append", 1, false, append_us},
                            {"threads.svg", "The same with several threads on one array",
                             "microseconds for an append", options->threads, false, append_us},
                            {"documents.svg", "The largest document, by the length of the array",
                             "largest document", 1, true, document_bytes}};
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) /* the umask, which --mode sets, applies */
        return spill_fail_errno(error, errno, "%s", folder);
    for (size_t i = 0; i < sizeof plots / sizeof plots[0]; i++)
        SPILL_TRY(draw(&plots[i], result, folder, error));
    return SPILL_OK;
}
