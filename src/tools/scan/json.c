/* Write a scan's result as one JSON document. docs/reference/scan-json.md has its schema. */
#include "tools/scan/json_points.h"
#include "tools/scan/json_put.h"
#include "tools/scan/scan.h"

#include <inttypes.h>
#include <string.h>

static void put_number(FILE *to, const char *name, int64_t number)
{
    fprintf(to, ",\"%s\":%" PRId64, name, number);
}

static double mean_of(int64_t sum, int64_t count)
{
    return count > 0 ? (double)sum / (double)count : 0;
}

/* `histogram` may be NULL. */
static void put_numbers(FILE *to, const char *name, const spill_scan_numbers_t *numbers,
                        const spill_scan_histogram_t *histogram)
{
    fprintf(to, ",\"%s\":{\"count\":%" PRId64 ",\"sum\":%" PRId64 ",\"mean\":%.6g", name,
            numbers->count, numbers->sum, mean_of(numbers->sum, numbers->count));
    put_number(to, "min", numbers->min);
    put_number(to, "p10", numbers->p10);
    put_number(to, "p50", numbers->p50);
    put_number(to, "p90", numbers->p90);
    put_number(to, "p99", numbers->p99);
    put_number(to, "p999", numbers->p999);
    put_number(to, "max", numbers->max);
    if (histogram)
        spill_json_put_histogram(to, histogram);
    fputs("}", to);
}

/* ---- growth ---------------------------------------------------------------------------------- */

static void put_date(FILE *to, const char *name, int64_t time_ms)
{
    int64_t little = (int64_t)BSON_UINT64_TO_LE((uint64_t)time_ms);
    spill_value_t value = {(const uint8_t *)&little, sizeof little, BSON_TYPE_DATE_TIME};
    fprintf(to, ",\"%s\":", name);
    if (time_ms == SPILL_WHEN_UNKNOWN)
        fputs("null", to);
    else
        spill_json_put_value(to, &value);
}

static void put_when(FILE *to, const char *name, const spill_when_t *when, int64_t scanned_ms)
{
    fprintf(to, "\"%s\":{\"elements\":%" PRId64, name, when->elements);
    put_date(to, "earliest", when->earliest_ms);
    put_date(to, "likely", when->likely_ms);
    put_date(to, "latest", when->latest_ms);
    put_date(to, "asOf", when->as_of_ms);
    fprintf(to, ",\"past\":%s}", spill_when_is_past(when, scanned_ms) ? "true" : "false");
}

/* What is known about times, after a comma if one is needed. */
static void put_times(FILE *to, const spill_growth_forecast_t *growth_forecast, const char *before)
{
    if (!growth_forecast->timed)
        return;
    fprintf(to, "%s\"rising\":%.4g,\"falling\":%.4g", before, growth_forecast->rising,
            growth_forecast->falling);
    put_date(to, "oldest", growth_forecast->oldest_ms);
    put_date(to, "newest", growth_forecast->newest_ms);
    fprintf(to, ",\"perDay\":%.6g,\"acceleration\":%.4g,\"burst\":%.4g",
            growth_forecast->pace.per_day, growth_forecast->pace.acceleration,
            growth_forecast->pace.burst);
    if (!growth_forecast->forecast)
        return;
    fprintf(to,
            ",\"coming\":{\"horizonMs\":%" PRId64 ",\"low\":%.6g,\"likely\":%.6g,\"high\":%.6g}",
            growth_forecast->horizon_ms, growth_forecast->coming.low,
            growth_forecast->coming.likely, growth_forecast->coming.high);
}

/* What has come since an earlier scan, after a comma if one is needed. */
static void put_since(FILE *to, const spill_growth_forecast_t *growth_forecast, const char *before)
{
    if (growth_forecast->elapsed_ms == 0)
        return;
    fprintf(to, "%s\"since\":{\"elapsedMs\":%" PRId64 ",\"added\":%" PRId64 ",\"perDay\":%.6g}",
            before, growth_forecast->elapsed_ms, growth_forecast->added,
            (double)growth_forecast->added / ((double)growth_forecast->elapsed_ms / 86400e3));
}

static void put_owner_growth(FILE *to, const spill_growth_forecast_t *growth_forecast,
                             int64_t scanned_ms)
{
    fputs(",\"growth\":{", to);
    put_when(to, "threshold", &growth_forecast->threshold, scanned_ms);
    fputs(",", to);
    put_when(to, "limit", &growth_forecast->limit, scanned_ms);
    put_times(to, growth_forecast, ",");
    put_since(to, growth_forecast, ",");
    spill_json_put_course(to, growth_forecast->course);
    fputs("}", to);
}

static void put_path_growth(FILE *to, const spill_growth_forecast_t *growth_forecast)
{
    bool known = growth_forecast->timed || growth_forecast->elapsed_ms > 0;
    fputs(known ? ",\"growth\":{" : ",\"growth\":null", to);
    put_times(to, growth_forecast, "");
    put_since(to, growth_forecast, growth_forecast->timed ? "," : "");
    fputs(known ? "}" : "", to);
}

/* ---- paths and owners ------------------------------------------------------------------------ */

/* `growth`: the scan with the forecasts, or NULL to leave them out. */
static void put_owners(FILE *to, const char *name, const spill_owners_t *owners, bool lengths,
                       const spill_scan_result_t *growth)
{
    fprintf(to, ",\"%s\":[", name);
    for (size_t i = 0; i < owners->count; i++) {
        const spill_owner_t *owner = &owners->items[i];
        fputs(i ? ",{\"owner\":" : "{\"owner\":", to);
        spill_json_put_value(to, &owner->value);
        if (lengths) {
            put_number(to, "length", owner->length);
            put_number(to, "bytes", owner->bytes);
        }
        put_number(to, "documentBytes", owner->document_bytes);
        put_number(to, "place", owner->place);
        if (growth)
            put_owner_growth(to, &owner->growth_forecast, growth->scanned_ms);
        fputs("}", to);
    }
    fputs("]", to);
}

static void put_path(FILE *to, const spill_scan_result_t *result,
                     const spill_scan_collection_t *collection, const spill_scan_path_t *path)
{
    fputs("{\"path\":", to);
    spill_json_put_text(to, path->path);
    fprintf(to, ",\"kind\":\"%s\"", path->map ? "map" : "array");
    put_number(to, "documents", path->documents);
    put_numbers(to, "lengths", &path->lengths, &path->length_bins);
    if (path->map)
        fprintf(to, ",\"elementBytes\":{\"count\":%" PRId64 ",\"sum\":%" PRId64 ",\"mean\":%.6g}",
                path->elements.count, path->elements.sum,
                mean_of(path->elements.sum, path->elements.count));
    else
        put_numbers(to, "elementBytes", &path->elements, NULL);
    put_number(to, "bytes", path->bytes);
    fprintf(to, ",\"share\":%.6g", mean_of(path->bytes, collection->bytes));
    put_number(to, "bytesMax", path->bytes_max);
    put_number(to, "documentMax", path->document_max);
    put_number(to, "overElements", path->over_elements);
    put_number(to, "overEntries", path->over_entries);
    put_number(to, "overBytes", path->over_bytes);
    put_number(to, "paid", path->paid);
    put_number(to, "threshold", path->threshold);
    fputs(",\"time\":", to);
    if (path->time_type) {
        fputs("{\"field\":", to);
        spill_json_put_text(to, path->time_field);
        fprintf(to, ",\"type\":\"%s\"}", path->time_type);
    } else {
        fputs("null", to);
    }
    put_path_growth(to, &path->growth_forecast);
    put_owners(to, "owners", &path->owners, true, result);
    put_owners(to, "heaviest", &path->heaviest, true, NULL);
    fputs("}", to);
}

static void put_indexes(FILE *to, const spill_scan_indexes_t *indexes)
{
    fputs(indexes->known ? ",\"indexes\":[" : ",\"indexes\":null", to);
    for (size_t i = 0; i < indexes->count; i++) {
        const spill_scan_index_t *index = &indexes->items[i];
        spill_value_t key = spill_value_from_document(index->key);
        fputs(i ? ",{\"name\":" : "{\"name\":", to);
        spill_json_put_text(to, index->name);
        fputs(",\"key\":", to);
        spill_json_put_value(to, &key);
        if (index->bytes >= 0)
            put_number(to, "bytes", index->bytes);
        fputs("}", to);
    }
    fputs(indexes->known ? "]" : "", to);
}

static void put_collection(FILE *to, const spill_scan_result_t *result,
                           const spill_scan_collection_t *collection)
{
    fputs("{\"collection\":", to);
    spill_json_put_text(to, collection->name);
    fputs(",\"input\":", to);
    spill_json_put_source(to, collection->input);
    put_number(to, "documents", collection->documents);
    put_number(to, "bytes", collection->bytes);
    put_number(to, "damaged", collection->damaged);
    put_numbers(to, "sizes", &collection->sizes, &collection->size_bins);
    put_number(to, "overHalf", collection->over_half);
    put_owners(to, "largest", &collection->largest, false, NULL);
    put_indexes(to, &collection->indexes);
    fputs(",\"paths\":[", to);
    for (size_t i = 0; i < collection->path_count; i++) {
        fputs(i ? "," : "", to);
        put_path(to, result, collection, &collection->paths[i]);
    }
    fputs("]", to);
    put_number(to, "pathsLeftOut", collection->paths_left_out);
    put_number(to, "overflow", collection->overflow);
    fputs("}", to);
}

static void put_finding(FILE *to, const spill_scan_result_t *result,
                        const spill_scan_finding_t *finding)
{
    fprintf(to, "{\"finding\":\"%s\",\"atlas\":\"%s\",\"severity\":\"%s\",\"collection\":",
            spill_scan_finding_name(finding->kind), spill_scan_finding_atlas(finding->kind),
            finding->critical ? "critical" : "warning");
    spill_json_put_text(to, result->collections[finding->collection].name);
    fputs(",\"path\":", to);
    spill_json_put_text(to, finding->path ? finding->path->path : NULL);
    if (finding->index) {
        fputs(",\"index\":", to);
        spill_json_put_text(to, finding->index->name);
    }
    if (finding->group) {
        fputs(",\"pattern\":", to);
        spill_json_put_text(to, finding->group->pattern);
    }
    put_number(to, "documents", finding->documents);
    fputs("}", to);
}

static void put_group(FILE *to, const spill_scan_result_t *result,
                      const spill_sprawl_group_t *group)
{
    fputs("{\"pattern\":", to);
    spill_json_put_text(to, group->pattern);
    fprintf(to, ",\"identifiers\":\"%s\"", spill_sprawl_kind_name(group->kind));
    put_number(to, "documents", group->documents);
    put_number(to, "bytes", group->bytes);
    put_number(to, "indexes", group->index_count);
    put_number(to, "indexBytes", group->index_bytes);
    fputs(",\"collections\":[", to);
    for (size_t i = 0; i < group->count; i++) {
        fputs(i ? "," : "", to);
        spill_json_put_text(to, result->collections[group->members[i]].name);
    }
    fputs("]}", to);
}

static void put_problem(FILE *to, const spill_scan_problem_t *problem)
{
    fputs("{\"input\":", to);
    spill_json_put_source(to, problem->input);
    if (problem->place >= 0)
        put_number(to, problem->by_line ? "line" : "byte", problem->place);
    fputs(",\"text\":", to);
    spill_json_put_text(to, problem->text);
    fputs("}", to);
}

void spill_scan_write_json(const spill_scan_result_t *result, const char *source, FILE *to)
{
    fprintf(to, "{\"spillwayScan\":%d,\"source\":", SPILL_SCAN_SCHEMA);
    spill_json_put_source(to, source);
    fprintf(to, ",\"limits\":{\"elements\":%" PRId64, result->limits.elements);
    put_number(to, "bytes", result->limits.bytes);
    put_number(to, "documentBytes", result->limits.document_bytes);
    put_number(to, "paidPerCent", result->limits.paid_per_cent);
    put_number(to, "collections", result->collections_max);
    fprintf(to, "},\"quantileError\":%.7f", SPILL_SKETCH_ERROR);
    put_number(to, "documents", result->documents);
    put_number(to, "bytes", result->bytes);
    put_date(to, "at", result->scanned_ms);
    fprintf(to, ",\"qualified\":%s", result->qualified ? "true" : "false");
    fprintf(to, ",\"interrupted\":%s,\"findings\":[", result->interrupted ? "true" : "false");
    for (size_t i = 0; i < result->finding_count; i++) {
        fputs(i ? "," : "", to);
        put_finding(to, result, &result->findings[i]);
    }
    fputs("],\"collections\":[", to);
    for (size_t i = 0; i < result->collection_count; i++) {
        fputs(i ? "," : "", to);
        put_collection(to, result, &result->collections[i]);
    }
    fputs("],\"sprawl\":[", to);
    for (size_t i = 0; i < result->sprawl.count; i++) {
        fputs(i ? "," : "", to);
        put_group(to, result, &result->sprawl.groups[i]);
    }
    fputs("],\"problems\":[", to);
    for (size_t i = 0; i < result->problem_count; i++) {
        fputs(i ? "," : "", to);
        put_problem(to, &result->problems[i]);
    }
    fputs("]", to);
    put_number(to, "problemCount", result->problems_all);
    fputs("}\n", to);
}
