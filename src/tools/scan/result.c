/* Make the results from the tables of paths, and compare them with an earlier scan. */
#include "bson/value.h"
#include "tools/scan/scan.h"

#include <spillway/definition.h>

#include <stdlib.h>
#include <string.h>

#define PATH_TEXT_SIZE 1024

static spill_scan_numbers_t numbers_of(const spill_sketch_t *sketch)
{
    if (sketch->count == 0)
        return (spill_scan_numbers_t){0};
    return (spill_scan_numbers_t){
        .count = (int64_t)sketch->count,
        .sum = (int64_t)sketch->sum,
        .min = (int64_t)sketch->min,
        .p10 = (int64_t)spill_sketch_quantile(sketch, 100),
        .p50 = (int64_t)spill_sketch_quantile(sketch, 500),
        .p90 = (int64_t)spill_sketch_quantile(sketch, 900),
        .p99 = (int64_t)spill_sketch_quantile(sketch, 990),
        .p999 = (int64_t)spill_sketch_quantile(sketch, 999),
        .max = (int64_t)sketch->max,
    };
}

static spill_scan_numbers_t numbers_with_histogram(const spill_sketch_t *sketch)
{
    spill_scan_numbers_t numbers = numbers_of(sketch);
    numbers.histogram.count = spill_sketch_histogram(sketch, &numbers.histogram.bins);
    return numbers;
}

/* Report whether it may grow: an array, or a document with as many keys as a map. */
static bool is_reported(const spill_path_t *path)
{
    if (path->lengths.count == 0 || !path->name)
        return false;
    return path->kind == SPILL_PATH_ARRAY || path->map || path->lengths.max >= SPILL_MAP_KEYS_MIN;
}

static const char *type_name(uint8_t type)
{
    switch (type) {
    case BSON_TYPE_DATE_TIME:
        return "date";
    case BSON_TYPE_UTF8:
        return "text";
    case BSON_TYPE_TIMESTAMP:
        return "timestamp";
    case BSON_TYPE_OID:
        return "objectId";
    default:
        return NULL;
    }
}

static char *text_of(const spill_path_t *path)
{
    char text[PATH_TEXT_SIZE];
    spill_path_text(path, text, sizeof text);
    if (path->kind == SPILL_PATH_ARRAY)
        return bson_strdup(text);
    return bson_strdup_printf("%s%s*", text, text[0] ? "." : "");
}

/* Texts that are dates: events, of which two may have one date. An ObjectId is an id, too. */
static bool has_times_as_elements(const spill_path_t *path)
{
    return path->times.type == BSON_TYPE_UTF8 && path->times.depth == 0;
}

static void set_path(spill_scan_path_t *told, spill_path_t *path)
{
    *told = (spill_scan_path_t){
        .path = text_of(path),
        .map = path->kind == SPILL_PATH_DOCUMENT,
        .documents = spill_path_documents(path, path->documents),
        .lengths = numbers_with_histogram(&path->lengths),
        .elements = numbers_of(&path->elements),
        .bytes = path->bytes,
        .bytes_max = path->bytes_max,
        .document_max = path->document_max,
        .over_elements = spill_path_documents(path, path->over_elements),
        .over_entries = spill_path_documents(path, path->over_entries),
        .over_bytes = spill_path_documents(path, path->over_bytes),
        .paid = spill_path_documents(path, path->paid),
        .time_type = type_name(path->times.type),
        .set = spill_repeats_is_set(&path->repeats) && !has_times_as_elements(path),
        .set_arrays = path->repeats.arrays,
        .set_sampled = path->repeats.sampled,
        .growth_forecast = path->growth_forecast,
        .owners = path->owners,
        .heaviest = path->heaviest,
    };
    path->owners.count = 0; /* the result owns them now */
    path->heaviest.count = 0;
    spill_times_field(&path->times, told->time_field, sizeof told->time_field);
    if (told->map) { /* 5 bytes belong to the document itself */
        told->elements.count = told->lengths.sum;
        told->elements.sum = told->bytes - 5 * told->lengths.count;
    }
    if (told->lengths.sum > 0) /* including an element's bytes besides its value */
        told->threshold = spill_threshold(SPILL_SCAN_BYTES, (told->bytes + told->lengths.sum - 1) /
                                                                told->lengths.sum);
}

static int by_bytes(const void *left, const void *right)
{
    const spill_path_t *one = *(spill_path_t *const *)left;
    const spill_path_t *two = *(spill_path_t *const *)right;
    if (one->bytes != two->bytes)
        return one->bytes > two->bytes ? -1 : 1;
    return (one->index > two->index) - (one->index < two->index);
}

/* How many of the largest paths to keep: fewer if the scan has many already. */
static size_t choose_paths(const spill_scan_result_t *result, spill_path_t **paths, size_t count)
{
    size_t kept = 0;
    size_t most = result->paths_told < SPILL_SCAN_PATHS_MOST ? SPILL_SCAN_PATHS_KEPT : 0;
    for (size_t i = 0; i < count && kept < most; i++) {
        bool over = paths[i]->over_elements + paths[i]->over_bytes + paths[i]->paid > 0;
        if (over || result->paths_told + kept < SPILL_SCAN_PATHS_ALL)
            paths[kept++] = paths[i];
    }
    return kept;
}

static void set_paths(spill_scan_result_t *result, spill_scan_collection_t *collection,
                      const spill_paths_t *paths)
{
    spill_path_t **told = bson_malloc(paths->live * sizeof(spill_path_t *));
    size_t count = 0;
    for (uint32_t i = 0; i < paths->node_count; i++) {
        spill_path_t *path = spill_paths_at(paths, i);
        if (path->index == i && path != paths->overflow && is_reported(path))
            told[count++] = path;
    }
    qsort(told, count, sizeof(spill_path_t *), by_bytes);
    size_t kept = choose_paths(result, told, count);
    collection->paths = bson_malloc0((kept + 1) * sizeof *collection->paths);
    collection->path_count = kept;
    collection->paths_left_out = (int64_t)(count - kept);
    result->paths_told += kept;
    for (size_t i = 0; i < kept; i++)
        set_path(&collection->paths[i], told[i]);
    bson_free(told);
}

void spill_scan_add_collection(spill_scan_result_t *result, const char *name, const char *input,
                               spill_paths_t *paths, int64_t damaged)
{
    result->collections = bson_realloc(result->collections, (result->collection_count + 1) *
                                                                sizeof *result->collections);
    spill_scan_collection_t *collection = &result->collections[result->collection_count++];
    *collection = (spill_scan_collection_t){
        .name = bson_strdup(name),
        .input = bson_strdup(input),
        .documents = (int64_t)paths->sizes.count,
        .bytes = (int64_t)paths->sizes.sum,
        .sizes = numbers_with_histogram(&paths->sizes),
        .over_half = paths->over_document,
        .damaged = damaged,
        .largest = paths->largest,
        .shape = paths->shape,
        .overflow = (int64_t)paths->overflow->lengths.count,
    };
    paths->largest.count = 0;
    set_paths(result, collection, paths);
    result->documents += collection->documents;
    result->bytes += collection->bytes;
}

void spill_scan_add_problem(spill_scan_result_t *result, const char *input, bool by_line,
                            int64_t place, const char *text)
{
    result->problems_all++;
    if (result->problem_count == SPILL_SCAN_PROBLEMS_KEPT)
        return;
    result->problems =
        bson_realloc(result->problems, (result->problem_count + 1) * sizeof *result->problems);
    result->problems[result->problem_count++] =
        (spill_scan_problem_t){bson_strdup(input), place, by_line, bson_strdup(text)};
}

/* ---- what is derived ------------------------------------------------------------------------- */

static double ratio_of(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void derive_growth(spill_growth_forecast_t *growth, int64_t scanned_ms)
{
    growth->threshold.past = spill_when_is_past(&growth->threshold, scanned_ms);
    growth->limit.past = spill_when_is_past(&growth->limit, scanned_ms);
    if (growth->elapsed_ms != 0)
        growth->added_per_day = (double)growth->added / ((double)growth->elapsed_ms / 86400e3);
}

static void derive_path(const spill_scan_result_t *result,
                        const spill_scan_collection_t *collection, spill_scan_path_t *path)
{
    path->lengths.mean = ratio_of(path->lengths.sum, path->lengths.count);
    path->elements.mean = ratio_of(path->elements.sum, path->elements.count);
    path->share = ratio_of(path->bytes, collection->bytes);
    derive_growth(&path->growth_forecast, result->scanned_ms);
    for (size_t i = 0; i < path->owners.count; i++)
        derive_growth(&path->owners.items[i].growth_forecast, result->scanned_ms);
}

void spill_scan_derive(spill_scan_result_t *result)
{
    for (size_t i = 0; i < result->collection_count; i++) {
        spill_scan_collection_t *collection = &result->collections[i];
        collection->sizes.mean = ratio_of(collection->sizes.sum, collection->sizes.count);
        for (size_t j = 0; j < collection->path_count; j++)
            derive_path(result, collection, &collection->paths[j]);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

static void release_collection(spill_scan_collection_t *collection)
{
    for (size_t i = 0; i < collection->path_count; i++) {
        bson_free(collection->paths[i].path);
        bson_free(collection->paths[i].lengths.histogram.bins);
        spill_owners_release(&collection->paths[i].owners);
        spill_owners_release(&collection->paths[i].heaviest);
    }
    spill_owners_release(&collection->largest);
    spill_scan_indexes_release(&collection->indexes);
    bson_free(collection->paths);
    bson_free(collection->sizes.histogram.bins);
    bson_free(collection->name);
    bson_free(collection->input);
}

void spill_scan_release(spill_scan_result_t *result)
{
    for (size_t i = 0; i < result->collection_count; i++)
        release_collection(&result->collections[i]);
    for (size_t i = 0; i < result->problem_count; i++) {
        bson_free(result->problems[i].input);
        bson_free(result->problems[i].text);
    }
    spill_sprawl_release(&result->sprawl);
    bson_free(result->source);
    bson_free(result->collections);
    bson_free(result->problems);
    bson_free(result->findings);
    *result = (spill_scan_result_t){0};
}

/* ---- since an earlier scan ------------------------------------------------------------------- */

/* What has come since an earlier scan: for arrays with elements that have no times. */

static const double day_ms = 86400e3;

/* Dates beyond this many days are not reported. */
static const double days_max = 100 * 365.25;

static const spill_scan_collection_t *find_collection(const spill_scan_result_t *earlier,
                                                      const char *name)
{
    for (size_t i = 0; i < earlier->collection_count; i++)
        if (strcmp(earlier->collections[i].name, name) == 0)
            return &earlier->collections[i];
    return NULL;
}

static const spill_scan_path_t *find_path(const spill_scan_collection_t *collection,
                                          const spill_scan_path_t *path)
{
    for (size_t i = 0; i < collection->path_count; i++)
        if (collection->paths[i].map == path->map &&
            strcmp(collection->paths[i].path, path->path) == 0)
            return &collection->paths[i];
    return NULL;
}

static const spill_large_owner_t *find_owner(const spill_owners_t *owners,
                                             const spill_value_t *value)
{
    for (size_t i = 0; value->data && i < owners->count; i++)
        if (owners->items[i].value.data && spill_value_equal(&owners->items[i].value, value))
            return &owners->items[i];
    return NULL;
}

/* Use the pace between the scans; two scans do not show how far it can be trusted. */
static void set_when(spill_when_t *when, double per_day, int64_t scanned_ms)
{
    double days = (double)when->elements / per_day;
    if (when->elements == 0)
        return;
    when->as_of_ms = scanned_ms;
    if (days <= days_max)
        when->likely_ms = scanned_ms + (int64_t)(days * day_ms);
}

static void set_comparison(spill_growth_forecast_t *growth_forecast, int64_t added,
                           int64_t elapsed_ms, int64_t scanned_ms)
{
    growth_forecast->elapsed_ms = elapsed_ms;
    growth_forecast->added = added;
    if (growth_forecast->timed)
        return;
    growth_forecast->pace.per_day = (double)added / ((double)elapsed_ms / day_ms);
    if (added <= 0)
        return;
    set_when(&growth_forecast->threshold, growth_forecast->pace.per_day, scanned_ms);
    set_when(&growth_forecast->limit, growth_forecast->pace.per_day, scanned_ms);
}

void spill_scan_since(spill_scan_result_t *result, const spill_scan_result_t *earlier)
{
    int64_t elapsed_ms = result->scanned_ms - earlier->scanned_ms;
    for (size_t i = 0; i < result->collection_count; i++) {
        spill_scan_collection_t *now = &result->collections[i];
        const spill_scan_collection_t *then = find_collection(earlier, now->name);
        for (size_t j = 0; then && j < now->path_count; j++) {
            spill_scan_path_t *path = &now->paths[j];
            const spill_scan_path_t *old = find_path(then, path);
            if (!old)
                continue;
            set_comparison(&path->growth_forecast, path->lengths.sum - old->lengths.sum, elapsed_ms,
                           result->scanned_ms);
            for (size_t k = 0; k < path->owners.count; k++) {
                spill_large_owner_t *owner = &path->owners.items[k];
                const spill_large_owner_t *same = find_owner(&old->owners, &owner->value);
                if (same)
                    set_comparison(&owner->growth_forecast, owner->length - same->length,
                                   elapsed_ms, result->scanned_ms);
            }
        }
    }
    spill_scan_derive(result);
}
