#include "tools/bench/result.h"

#include "bson/record.h"
#include "store/raw_reader.h"
#include "util/clock.h"

#include <stdlib.h>
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
