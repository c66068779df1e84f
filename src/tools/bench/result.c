#include "tools/bench/result.h"

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

static void put_bytes(bson_t *to, const char *name, double bytes)
{
    if (bytes < 0)
        bson_append_null(to, name, -1);
    else
        BSON_APPEND_DOUBLE(to, name, bytes);
}

static void put_cost(bson_t *to, const char *name, const spill_bench_cost_t *cost)
{
    bson_t part;
    BSON_APPEND_DOCUMENT_BEGIN(to, name, &part);
    BSON_APPEND_INT64(&part, "operations", cost->operations);
    BSON_APPEND_DOUBLE(&part, "medianUs", cost->us.median);
    BSON_APPEND_DOUBLE(&part, "lowUs", cost->us.low);
    BSON_APPEND_DOUBLE(&part, "highUs", cost->us.high);
    BSON_APPEND_DOUBLE(&part, "confidence", cost->us.confidence);
    BSON_APPEND_DOUBLE(&part, "p50Us", cost->p50_us);
    BSON_APPEND_DOUBLE(&part, "p90Us", cost->p90_us);
    BSON_APPEND_DOUBLE(&part, "p99Us", cost->p99_us);
    BSON_APPEND_DOUBLE(&part, "maxUs", cost->max_us);
    BSON_APPEND_DOUBLE(&part, "perSecond", cost->per_second);
    put_bytes(&part, "bytesWritten", cost->bytes_written);
    put_bytes(&part, "bytesRead", cost->bytes_read);
    bson_append_document_end(to, &part);
}

static void put_row(bson_t *rows, size_t index, const spill_bench_row_t *row)
{
    char buffer[16];
    const char *key;
    bson_t part;
    bson_uint32_to_string((uint32_t)index, &key, buffer, sizeof buffer);
    BSON_APPEND_DOCUMENT_BEGIN(rows, key, &part);
    BSON_APPEND_UTF8(&part, "layout", spill_bench_kind_name(row->kind));
    BSON_APPEND_INT64(&part, "length", row->length);
    BSON_APPEND_INT32(&part, "threads", row->threads);
    BSON_APPEND_BOOL(&part, "tooLong", row->over);
    if (!row->over) {
        put_cost(&part, "append", &row->append);
        put_cost(&part, "newestPage", &row->newest);
        BSON_APPEND_INT64(&part, "headBytes", row->head_bytes);
        BSON_APPEND_INT64(&part, "documentBytes", row->document_bytes);
        BSON_APPEND_INT64(&part, "documentBytesMax", row->bytes_max);
        BSON_APPEND_INT64(&part, "given", row->given);
        BSON_APPEND_INT64(&part, "found", row->found);
    }
    bson_append_document_end(rows, &part);
}

static void put_tuned(bson_t *list, size_t index, const spill_bench_tuned_t *tuned)
{
    char buffer[16];
    const char *key;
    bson_t part;
    bson_uint32_to_string((uint32_t)index, &key, buffer, sizeof buffer);
    BSON_APPEND_DOCUMENT_BEGIN(list, key, &part);
    BSON_APPEND_INT64(&part, "threshold", tuned->threshold);
    BSON_APPEND_INT64(&part, "page", tuned->page);
    BSON_APPEND_DOUBLE(&part, "costUs", tuned->cost_us);
    BSON_APPEND_BOOL(&part, "final", tuned->final);
    put_cost(&part, "append", &tuned->append);
    put_cost(&part, "newestPage", &tuned->newest);
    bson_append_document_end(list, &part);
}

static void put_settings(const spill_bench_options_t *options, bson_t *document)
{
    BSON_APPEND_UTF8(document, "store", options->made);
    BSON_APPEND_UTF8(document, "durability",
                     options->durability == SPILL_DURABILITY_FSYNC ? "fsync" : "log");
    BSON_APPEND_INT32(document, "threads", options->threads);
    BSON_APPEND_INT32(document, "rounds", options->rounds);
    BSON_APPEND_INT64(document, "elementBytes", options->element_bytes);
    BSON_APPEND_INT64(document, "threshold", options->threshold);
    BSON_APPEND_INT64(document, "page", options->page);
    BSON_APPEND_INT32(document, "newestPageElements", SPILL_BENCH_PAGE);
}

void spill_bench_to_bson(const spill_bench_options_t *options, const spill_bench_result_t *result,
                         bson_t *document)
{
    bson_t list;
    bson_init(document);
    BSON_APPEND_INT32(document, "spillwayBench", 1);
    BSON_APPEND_UTF8(document, "version", SPILL_VERSION);
    BSON_APPEND_DATE_TIME(document, "started", result->started_ms);
    BSON_APPEND_DOUBLE(document, "seconds", result->seconds);
    BSON_APPEND_INT32(document, "processors", result->processors);
    BSON_APPEND_DOUBLE(document, "loadBefore", result->load_before);
    BSON_APPEND_DOUBLE(document, "loadAfter", result->load_after);
    put_settings(options, document);
    if (result->row_count > 0)
        BSON_APPEND_INT64(document, "proofLength", spill_bench_proof_length(result));
    BSON_APPEND_ARRAY_BEGIN(document, "rows", &list);
    for (size_t i = 0; i < result->row_count; i++)
        put_row(&list, i, &result->rows[i]);
    bson_append_array_end(document, &list);
    BSON_APPEND_ARRAY_BEGIN(document, "tuned", &list);
    for (size_t i = 0; i < result->tuned_count; i++)
        put_tuned(&list, i, &result->tuned[i]);
    bson_append_array_end(document, &list);
}
