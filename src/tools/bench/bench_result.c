/* The results of a run: rows, JSON, and plots as SVG files. */
#include "bson/record.h"
#include "store/raw_reader.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_side.h"
#include "tools/report/svg.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/file.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static double machine_load(void)
{
    double average;
    return getloadavg(&average, 1) == 1 ? average : -1;
}

void spill_bench_start(const spill_bench_options_t *options, spill_bench_result_t *result)
{
    *result = (spill_bench_result_t){.started_ms = spill_clock_now_us(NULL) / 1000,
                                     .load_before = machine_load(),
                                     .processors = (int)sysconf(_SC_NPROCESSORS_ONLN),
                                     .counts_read = spill_raw_reader_serves(options->uri)};
}

void spill_bench_finish(spill_bench_result_t *result)
{
    result->seconds = (double)spill_clock_now_us(NULL) / 1e6 - (double)result->started_ms / 1e3;
    result->load_after = machine_load();
    for (size_t i = 0; i < result->row_count && !result->counts_read; i++)
        result->rows[i].append.bytes_read = result->rows[i].newest.bytes_read =
            result->rows[i].newest.bytes_written = -1;
    for (size_t i = 0; i < result->tuned_count && !result->counts_read; i++)
        result->tuned[i].append.bytes_read = result->tuned[i].newest.bytes_read =
            result->tuned[i].newest.bytes_written = -1;
}

void spill_bench_release(spill_bench_result_t *result)
{
    bson_free(result->rows);
    *result = (spill_bench_result_t){0};
}

const spill_bench_row_t *spill_bench_find(const spill_bench_result_t *result,
                                          spill_bench_kind_t kind, int64_t length, int threads)
{
    for (size_t i = 0; i < result->row_count; i++) {
        const spill_bench_row_t *row = &result->rows[i];
        if (row->kind == kind && row->length == length && row->threads == threads)
            return row;
    }
    return NULL;
}

int64_t spill_bench_proof_length(const spill_bench_result_t *result)
{
    int64_t unbounded = 0, any = 0;
    for (size_t i = 0; i < result->row_count; i++) {
        const spill_bench_row_t *row = &result->rows[i];
        if (row->kind == SPILL_BENCH_UNBOUNDED && !row->over && row->length > unbounded)
            unbounded = row->length;
        any = row->length > any ? row->length : any;
    }
    return unbounded > 0 ? unbounded : any;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *kind_name(int kind)
{
    return spill_bench_kind_name((spill_bench_kind_t)kind);
}

static bool is_measured(const void *row)
{
    return !((const spill_bench_row_t *)row)->over;
}

#define COST(type, member, name) SPILL_FIELD(type, spill_bench_cost_t, member, name, .flags = 0)
/* -1: unknown. */
#define BYTES(member, name)                                                                        \
    SPILL_FIELD(DOUBLE, spill_bench_cost_t, member, name, .flags = SPILL_FIELD_NULL_NEGATIVE)
static const spill_field_t cost_fields[] = {COST(INT64, operations, "operations"),
                                            COST(DOUBLE, us.median, "medianUs"),
                                            COST(DOUBLE, us.low, "lowUs"),
                                            COST(DOUBLE, us.high, "highUs"),
                                            COST(DOUBLE, us.confidence, "confidence"),
                                            COST(DOUBLE, p50_us, "p50Us"),
                                            COST(DOUBLE, p90_us, "p90Us"),
                                            COST(DOUBLE, p99_us, "p99Us"),
                                            COST(DOUBLE, max_us, "maxUs"),
                                            COST(DOUBLE, per_second, "perSecond"),
                                            BYTES(bytes_written, "bytesWritten"),
                                            BYTES(bytes_read, "bytesRead")};
static const spill_record_t cost_record = SPILL_RECORD("cost", spill_bench_cost_t, cost_fields);

#define ROW(type, member, ...) SPILL_FIELD(type, spill_bench_row_t, member, __VA_ARGS__)
#define MEASURED(type, member, ...) ROW(type, member, __VA_ARGS__, .when = is_measured)
static const spill_field_t row_fields[] = {
    ROW(ENUM, kind, "layout", .name_of = kind_name, .values = SPILL_BENCH_KINDS),
    ROW(INT64, length, "length"),
    ROW(INT32, threads, "threads"),
    ROW(BOOL, over, "tooLong"),
    MEASURED(RECORD, append, "append", .of = &cost_record),
    MEASURED(RECORD, newest, "newestPage", .of = &cost_record),
    MEASURED(INT64, head_bytes, "headBytes"),
    MEASURED(INT64, document_bytes, "documentBytes"),
    MEASURED(INT64, bytes_max, "documentBytesMax"),
    MEASURED(INT64, given, "given"),
    MEASURED(INT64, found, "found")};
static const spill_record_t row_record = SPILL_RECORD("row", spill_bench_row_t, row_fields);

#define TUNED(type, member, ...) SPILL_FIELD(type, spill_bench_tuned_t, member, __VA_ARGS__)
static const spill_field_t tuned_fields[] = {
    TUNED(INT64, threshold, "threshold"),
    TUNED(INT64, page, "page"),
    TUNED(DOUBLE, cost_us, "costUs"),
    TUNED(BOOL, final, "final"),
    TUNED(RECORD, append, "append", .of = &cost_record),
    TUNED(RECORD, newest, "newestPage", .of = &cost_record)};
static const spill_record_t tuned_record = SPILL_RECORD("tuned", spill_bench_tuned_t, tuned_fields);

/* The document: a result, the options it was measured with, and constants. */
typedef struct bench_document {
    spill_bench_options_t options;
    spill_bench_result_t result;
    int32_t schema, page_elements;
    const char *version, *durability;
    int64_t proof_length;
    const spill_bench_tuned_t *tuned; /* result.tuned */
} bench_document_t;

static bool has_rows(const void *document)
{
    return ((const bench_document_t *)document)->result.row_count > 0;
}

#define DOCUMENT(type, member, ...) SPILL_FIELD(type, bench_document_t, member, __VA_ARGS__)
static const spill_field_t document_fields[] = {
    DOCUMENT(INT32, schema, "spillwayBench"),
    DOCUMENT(TEXT, version, "version"),
    DOCUMENT(DATE, result.started_ms, "started"),
    DOCUMENT(DOUBLE, result.seconds, "seconds"),
    DOCUMENT(INT32, result.processors, "processors"),
    DOCUMENT(DOUBLE, result.load_before, "loadBefore"),
    DOCUMENT(DOUBLE, result.load_after, "loadAfter"),
    DOCUMENT(TEXT, options.made, "store"),
    DOCUMENT(TEXT, durability, "durability"),
    DOCUMENT(INT32, options.threads, "threads"),
    DOCUMENT(INT32, options.rounds, "rounds"),
    DOCUMENT(INT64, options.element_bytes, "elementBytes"),
    DOCUMENT(INT64, options.threshold, "threshold"),
    DOCUMENT(INT64, options.page, "page"),
    DOCUMENT(INT32, page_elements, "newestPageElements"),
    DOCUMENT(INT64, proof_length, "proofLength", .when = has_rows),
    DOCUMENT(LIST, result.rows, "rows", .of = &row_record,
             .count_offset = offsetof(bench_document_t, result.row_count)),
    DOCUMENT(LIST, tuned, "tuned", .of = &tuned_record,
             .count_offset = offsetof(bench_document_t, result.tuned_count))};
static const spill_record_t document_record =
    SPILL_RECORD("bench", bench_document_t, document_fields);

void spill_bench_to_bson(const spill_bench_options_t *options, const spill_bench_result_t *result,
                         bson_t *document)
{
    const bench_document_t record = {
        .options = *options,
        .result = *result,
        .schema = 1,
        .page_elements = SPILL_BENCH_PAGE,
        .version = SPILL_VERSION,
        .durability = options->durability == SPILL_DURABILITY_FSYNC ? "fsync" : "log",
        .proof_length = spill_bench_proof_length(result),
        .tuned = result->tuned};
    bson_init(document);
    spill_record_write(&document_record, &record, document);
}

/* ---- plots ----------------------------------------------------------------------------------- */

/* Plots of a run as SVG files. */

enum { HEIGHT = 380, LEGEND_ROWS = (SPILL_BENCH_KINDS + 2) / 3 };

/* The value of a row to draw, and its interval. */
typedef struct measured {
    double value, low, high;
} measured_t;

typedef struct plot {
    const char *file, *label, *axis;
    int threads;
    bool bytes;
    measured_t (*point)(const spill_bench_row_t *row);
} plot_t;

static measured_t append_us(const spill_bench_row_t *row)
{
    return (measured_t){row->append.us.median, row->append.us.low, row->append.us.high};
}

static measured_t document_bytes(const spill_bench_row_t *row)
{
    double bytes = (double)row->document_bytes;
    return (measured_t){bytes, bytes, bytes};
}

static bool is_drawn(const plot_t *plot, const spill_bench_row_t *row)
{
    return row->threads == plot->threads && !row->over;
}

/* The axes that show all points of the plot; false if there is nothing to draw. */
static bool set_axes(spill_plot_t *drawn, const plot_t *plot, const spill_bench_result_t *result)
{
    double left = INFINITY, right = 0, bottom = INFINITY, top = 0;
    for (size_t i = 0; i < result->row_count; i++) {
        if (!is_drawn(plot, &result->rows[i]))
            continue;
        measured_t point = plot->point(&result->rows[i]);
        left = fmin(left, (double)result->rows[i].length);
        right = fmax(right, (double)result->rows[i].length);
        bottom = fmin(bottom, point.low);
        top = fmax(top, point.high);
    }
    if (right <= 0 || left <= 0 || bottom <= 0)
        return false;
    bottom = fmin(bottom * 0.7, top / 20);
    top *= 1.4;
    drawn->x = spill_axis_log("elements in the array", left * 0.8, right * 1.25);
    drawn->y = (plot->bytes ? spill_axis_log_bytes : spill_axis_log)(plot->axis, bottom, top);
    return true;
}

/* Draw the line of a kind, and the interval of each point; return the number of points. */
static size_t draw_kind(const spill_plot_t *drawn, const plot_t *plot,
                        const spill_bench_result_t *result, spill_bench_kind_t kind)
{
    char style[16];
    size_t count = 0;
    spill_point_t *points = bson_malloc((result->row_count + 1) * sizeof *points);
    snprintf(style, sizeof style, "kind%d", (int)kind);
    for (size_t i = 0; i < result->row_count; i++) {
        const spill_bench_row_t *row = &result->rows[i];
        if (!is_drawn(plot, row) || row->kind != kind)
            continue;
        measured_t point = plot->point(row);
        double length = (double)row->length;
        points[count++] = (spill_point_t){length, point.value};
        if (point.high > point.low)
            spill_plot_line(drawn, "frame",
                            (spill_point_t[]){{length, point.low}, {length, point.high}}, 2);
    }
    if (count > 0)
        spill_plot_line(drawn, style, points, count);
    bson_free(points);
    return count;
}

static void draw_plot(const plot_t *plot, const spill_bench_result_t *result, FILE *to)
{
    spill_plot_t drawn = {
        .to = to, .label = plot->label, .height = HEIGHT, .alone = true, .rows = LEGEND_ROWS};
    if (!set_axes(&drawn, plot, result)) {
        spill_svg_open(to, HEIGHT, plot->label, true);
        spill_svg_close(to);
        return;
    }
    int entries = 0;
    spill_plot_open(&drawn);
    for (int kind = 0; kind < SPILL_BENCH_KINDS; kind++) {
        char style[16];
        snprintf(style, sizeof style, "kind%d", kind);
        if (draw_kind(&drawn, plot, result, (spill_bench_kind_t)kind) > 0)
            spill_plot_legend(&drawn, entries++, style, false,
                              spill_bench_kind_name((spill_bench_kind_t)kind));
    }
    spill_svg_close(to);
}

static spill_code_t write_plot(const plot_t *plot, const spill_bench_result_t *result,
                               const char *folder, spill_error_t *error)
{
    SPILL_SCOPED(spill_text_release) spill_text_t picture = {0};
    SPILL_TRY(spill_text_open(&picture, error));
    draw_plot(plot, result, picture.to);
    SPILL_TRY(spill_text_close(&picture, error));
    char *path = bson_strdup_printf("%s/%s", folder, plot->file);
    spill_code_t code = spill_file_replace_itself(path, picture.text, picture.size_bytes, error);
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
        SPILL_TRY(write_plot(&plots[i], result, folder, error));
    return SPILL_OK;
}
