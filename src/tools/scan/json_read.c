/* Read a scan's result from the JSON document that json.c writes (docs/reference/scan-json.md). */
#include "tools/scan/json_points.h"
#include "tools/scan/scan.h"

#include "util/error.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The file being read, and its first error. */
typedef struct reader {
    const char *file;
    spill_error_t *error;
    spill_code_t code;
} reader_t;

static void report_error(reader_t *reader, const char *what, const char *name)
{
    if (reader->code == SPILL_OK)
        reader->code =
            spill_fail(reader->error, SPILL_PARSE, "%s: %s: '%s'; scan --json does not write this",
                       reader->file, what, name);
}

static bool find_field(reader_t *reader, const bson_t *from, const char *name, bson_iter_t *iter)
{
    if (reader->code == SPILL_OK && bson_iter_init_find(iter, from, name))
        return true;
    report_error(reader, "there is no", name);
    return false;
}

static int64_t read_number(reader_t *reader, const bson_t *from, const char *name)
{
    bson_iter_t iter;
    if (!find_field(reader, from, name, &iter))
        return 0;
    double size = BSON_ITER_HOLDS_NUMBER(&iter) ? fabs(bson_iter_as_double(&iter)) : 0;
    if (!BSON_ITER_HOLDS_NUMBER(&iter))
        report_error(reader, "expected a number in", name);
    else if (!(size <= (double)SPILL_SCAN_NUMBER_MAX)) /* also a NaN */
        report_error(reader, "too large a number in", name);
    return size <= (double)SPILL_SCAN_NUMBER_MAX ? bson_iter_as_int64(&iter) : 0;
}

/* 0 if the field is missing or not finite. */
static double read_real(const bson_t *from, const char *name)
{
    bson_iter_t iter;
    double value = bson_iter_init_find(&iter, from, name) ? bson_iter_as_double(&iter) : 0;
    return isfinite(value) ? value : 0;
}

/* A copy; NULL if the field is null or missing. */
static char *read_text(const bson_t *from, const char *name)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, from, name) && BSON_ITER_HOLDS_UTF8(&iter)
               ? bson_strdup(bson_iter_utf8(&iter, NULL))
               : NULL;
}

/* The document or array at the iterator, else an empty one; *inner borrows. */
static bool inner_of(bson_iter_t *iter, bson_t *inner)
{
    const uint8_t *data = NULL;
    uint32_t size = 0;
    if (BSON_ITER_HOLDS_DOCUMENT(iter))
        bson_iter_document(iter, &size, &data);
    else if (BSON_ITER_HOLDS_ARRAY(iter))
        bson_iter_array(iter, &size, &data);
    bson_init(inner);
    return data && bson_init_static(inner, data, size);
}

/* The document or array of that name, or an empty one; only a missing name is an error. */
static bool read_inner(reader_t *reader, const bson_t *from, const char *name, bson_t *found)
{
    bson_iter_t iter;
    bson_init(found);
    return find_field(reader, from, name, &iter) && inner_of(&iter, found);
}

/* ---- figures --------------------------------------------------------------------------------- */

static spill_scan_numbers_t read_numbers(reader_t *reader, const bson_t *from, const char *name)
{
    bson_t at;
    if (!read_inner(reader, from, name, &at))
        return (spill_scan_numbers_t){0};
    spill_scan_numbers_t numbers = {.count = read_number(reader, &at, "count"),
                                    .sum = read_number(reader, &at, "sum")};
    if (!bson_has_field(&at, "min")) /* a map's elements */
        return numbers;
    numbers.min = read_number(reader, &at, "min");
    numbers.p10 = read_number(reader, &at, "p10");
    numbers.p50 = read_number(reader, &at, "p50");
    numbers.p90 = read_number(reader, &at, "p90");
    numbers.p99 = read_number(reader, &at, "p99");
    numbers.p999 = read_number(reader, &at, "p999");
    numbers.max = read_number(reader, &at, "max");
    return numbers;
}

/* The histogram in the numbers of that name. */
static spill_scan_histogram_t read_histogram(const bson_t *from, const char *name)
{
    bson_iter_t iter;
    bson_t at;
    if (!bson_iter_init_find(&iter, from, name) || !inner_of(&iter, &at))
        return (spill_scan_histogram_t){0};
    return spill_json_read_histogram(&at);
}

static int64_t read_date(const bson_t *from, const char *name)
{
    bson_iter_t iter;
    int64_t time_ms = bson_iter_init_find(&iter, from, name) && BSON_ITER_HOLDS_DATE_TIME(&iter)
                          ? bson_iter_date_time(&iter)
                          : SPILL_WHEN_UNKNOWN;
    return time_ms > -SPILL_SCAN_NUMBER_MAX && time_ms < SPILL_SCAN_NUMBER_MAX ? time_ms
                                                                               : SPILL_WHEN_UNKNOWN;
}

static spill_when_t read_when(reader_t *reader, const bson_t *from, const char *name)
{
    bson_t at;
    read_inner(reader, from, name, &at);
    return (spill_when_t){.elements = read_number(reader, &at, "elements"),
                          .earliest_ms = read_date(&at, "earliest"),
                          .likely_ms = read_date(&at, "likely"),
                          .latest_ms = read_date(&at, "latest"),
                          .as_of_ms = read_date(&at, "asOf")};
}

static void read_times(reader_t *reader, const bson_t *from, spill_growth_forecast_t *growth)
{
    bson_t coming;
    growth->oldest_ms = read_date(from, "oldest");
    growth->newest_ms = read_date(from, "newest");
    growth->timed = bson_has_field(from, "rising") && growth->oldest_ms != SPILL_WHEN_UNKNOWN &&
                    growth->newest_ms != SPILL_WHEN_UNKNOWN;
    if (!growth->timed)
        return;
    growth->rising = read_real(from, "rising");
    growth->falling = read_real(from, "falling");
    growth->pace = (spill_pace_t){.per_day = read_real(from, "perDay"),
                                  .acceleration = read_real(from, "acceleration"),
                                  .burst = read_real(from, "burst")};
    growth->forecast = bson_has_field(from, "coming");
    if (!growth->forecast || !read_inner(reader, from, "coming", &coming))
        return;
    growth->horizon_ms = read_number(reader, &coming, "horizonMs");
    growth->coming = (spill_forecast_t){.low = read_real(&coming, "low"),
                                        .likely = read_real(&coming, "likely"),
                                        .high = read_real(&coming, "high")};
}

static void read_since(reader_t *reader, const bson_t *from, spill_growth_forecast_t *growth)
{
    bson_t since;
    if (!bson_has_field(from, "since") || !read_inner(reader, from, "since", &since))
        return;
    growth->elapsed_ms = read_number(reader, &since, "elapsedMs");
    growth->added = read_number(reader, &since, "added");
    if (!growth->timed)
        growth->pace.per_day = read_real(&since, "perDay");
}

/* ---- owners, paths, collections -------------------------------------------------------------- */

static void read_owner(reader_t *reader, const bson_t *from, bool of_path, spill_owners_t *owners)
{
    bson_iter_t iter;
    bson_t growth;
    spill_owner_t owner = {.document_bytes = read_number(reader, from, "documentBytes"),
                           .place = read_number(reader, from, "place")};
    if (bson_iter_init_find(&iter, from, "owner") && !BSON_ITER_HOLDS_NULL(&iter))
        owner.value = spill_value_from_iter(&iter);
    owner.bytes = owner.document_bytes;
    if (of_path) {
        owner.length = read_number(reader, from, "length");
        owner.bytes = read_number(reader, from, "bytes");
    }
    if (of_path && bson_has_field(from, "growth")) {
        read_inner(reader, from, "growth", &growth);
        owner.growth_forecast.threshold = read_when(reader, &growth, "threshold");
        owner.growth_forecast.limit = read_when(reader, &growth, "limit");
        read_times(reader, &growth, &owner.growth_forecast);
        read_since(reader, &growth, &owner.growth_forecast);
        owner.growth_forecast.course = spill_json_read_course(&growth);
    }
    if (reader->code == SPILL_OK)
        spill_owners_add(owners, &owner);
    bson_free(owner.growth_forecast.course);
}

static void read_owners(reader_t *reader, const bson_t *from, const char *name, bool of_path,
                        spill_owners_t *owners)
{
    bson_iter_t iter;
    bson_t list, at;
    if (!read_inner(reader, from, name, &list) || !bson_iter_init(&iter, &list))
        return;
    while (reader->code == SPILL_OK && bson_iter_next(&iter))
        if (inner_of(&iter, &at))
            read_owner(reader, &at, of_path, owners);
}

static const char *type_of(const bson_t *time)
{
    static const char *const types[] = {"date", "text", "timestamp", "objectId"};
    bson_iter_t iter;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (bson_iter_init_find(&iter, time, "type") && BSON_ITER_HOLDS_UTF8(&iter) &&
            strcmp(bson_iter_utf8(&iter, NULL), types[i]) == 0)
            return types[i];
    return NULL;
}

static void read_path(reader_t *reader, const bson_t *from, spill_scan_path_t *path)
{
    bson_t time, growth;
    bson_iter_t iter;
    char *kind = read_text(from, "kind");
    path->path = read_text(from, "path");
    path->map = kind && strcmp(kind, "map") == 0;
    bson_free(kind);
    if (!path->path)
        report_error(reader, "there is no", "path");
    path->documents = read_number(reader, from, "documents");
    path->lengths = read_numbers(reader, from, "lengths");
    path->length_bins = read_histogram(from, "lengths");
    path->elements = read_numbers(reader, from, "elementBytes");
    path->bytes = read_number(reader, from, "bytes");
    path->bytes_max = read_number(reader, from, "bytesMax");
    path->document_max = read_number(reader, from, "documentMax");
    path->over_elements = read_number(reader, from, "overElements");
    bool counted = bson_iter_init_find(&iter, from, "overEntries"); /* not in earlier versions */
    path->over_entries = counted ? read_number(reader, from, "overEntries") : path->documents;
    path->over_bytes = read_number(reader, from, "overBytes");
    path->paid = read_number(reader, from, "paid");
    path->threshold = read_number(reader, from, "threshold");
    if (read_inner(reader, from, "time", &time)) {
        char *field = read_text(&time, "field");
        path->time_type = type_of(&time);
        bson_strncpy(path->time_field, field ? field : "", sizeof path->time_field);
        bson_free(field);
    }
    read_inner(reader, from, "growth", &growth);
    read_times(reader, &growth, &path->growth_forecast);
    read_since(reader, &growth, &path->growth_forecast);
    read_owners(reader, from, "owners", true, &path->owners);
    path->heaviest.by_bytes = true;
    if (bson_has_field(from, "heaviest")) /* not in the first versions */
        read_owners(reader, from, "heaviest", true, &path->heaviest);
}

/* The number of items of the array of that name. */
static size_t count_items(reader_t *reader, const bson_t *from, const char *name, bson_t *list)
{
    bson_iter_t iter;
    if (!read_inner(reader, from, name, list))
        return 0;
    if (!bson_iter_init_find(&iter, from, name) || !BSON_ITER_HOLDS_ARRAY(&iter))
        report_error(reader, "expected an array in", name);
    return bson_count_keys(list);
}

/* The first versions wrote no indexes. */
static void read_indexes(reader_t *reader, const bson_t *from, spill_scan_indexes_t *indexes)
{
    bson_iter_t iter, items;
    bson_t list, at;
    if (!bson_iter_init_find(&iter, from, "indexes") || !BSON_ITER_HOLDS_ARRAY(&iter))
        return;
    indexes->known = true;
    if (!inner_of(&iter, &list) || !bson_iter_init(&items, &list))
        return;
    while (bson_iter_next(&items)) {
        bool sized = inner_of(&items, &at) && bson_has_field(&at, "bytes");
        if (!spill_scan_indexes_add(indexes, &at, sized ? read_number(reader, &at, "bytes") : -1))
            report_error(reader, "expected a key in", "indexes");
    }
}

static void read_collection(reader_t *reader, const bson_t *from,
                            spill_scan_collection_t *collection)
{
    bson_iter_t iter;
    bson_t list, at;
    collection->name = read_text(from, "collection");
    collection->input = read_text(from, "input");
    if (!collection->name)
        report_error(reader, "there is no", "collection");
    collection->documents = read_number(reader, from, "documents");
    collection->bytes = read_number(reader, from, "bytes");
    collection->damaged = read_number(reader, from, "damaged");
    collection->sizes = read_numbers(reader, from, "sizes");
    collection->size_bins = read_histogram(from, "sizes");
    collection->over_half = read_number(reader, from, "overHalf");
    collection->paths_left_out = read_number(reader, from, "pathsLeftOut");
    collection->overflow = read_number(reader, from, "overflow");
    read_owners(reader, from, "largest", false, &collection->largest);
    read_indexes(reader, from, &collection->indexes);
    size_t count = count_items(reader, from, "paths", &list);
    collection->paths = bson_malloc0((count + 1) * sizeof *collection->paths);
    bson_iter_init(&iter, &list);
    while (reader->code == SPILL_OK && bson_iter_next(&iter))
        if (inner_of(&iter, &at))
            read_path(reader, &at, &collection->paths[collection->path_count++]);
}

/* ---- sprawl ---------------------------------------------------------------------------------- */

/* The names of members are in the order of the collections. */
static void read_members(reader_t *reader, const bson_t *names, const spill_scan_result_t *result,
                         spill_sprawl_group_t *group)
{
    bson_iter_t iter;
    size_t at = 0;
    bson_iter_init(&iter, names);
    while (bson_iter_next(&iter)) {
        const char *name = BSON_ITER_HOLDS_UTF8(&iter) ? bson_iter_utf8(&iter, NULL) : "";
        while (at < result->collection_count && strcmp(result->collections[at].name, name) != 0)
            at++;
        if (at == result->collection_count) {
            report_error(reader, "unknown collection", name);
            return;
        }
        group->members[group->count++] = at++;
    }
}

static void read_group(reader_t *reader, const bson_t *from, spill_scan_result_t *result)
{
    bson_t names;
    spill_sprawl_group_t *group = &result->sprawl.groups[result->sprawl.count++];
    char *kind = read_text(from, "identifiers");
    group->pattern = read_text(from, "pattern");
    group->kind = spill_sprawl_kind_of(kind ? kind : "");
    bson_free(kind);
    group->documents = read_number(reader, from, "documents");
    group->bytes = read_number(reader, from, "bytes");
    if (bson_has_field(from, "indexes")) {
        group->index_count = read_number(reader, from, "indexes");
        group->index_bytes = read_number(reader, from, "indexBytes");
    }
    size_t count = count_items(reader, from, "collections", &names);
    group->members = bson_malloc0((count + 1) * sizeof *group->members);
    read_members(reader, &names, result, group);
    if (!group->pattern || group->count == 0)
        report_error(reader, "no members in", "sprawl");
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void read_result(reader_t *reader, const bson_t *from, spill_scan_result_t *result)
{
    bson_iter_t iter;
    bson_t limits, list, at;
    int64_t version = read_number(reader, from, "spillwayScan");
    if (reader->code == SPILL_OK && version != SPILL_SCAN_SCHEMA)
        reader->code = spill_fail(reader->error, SPILL_FORMAT,
                                  "%s: a scan of version %" PRId64 "; this program knows %d",
                                  reader->file, version, SPILL_SCAN_SCHEMA);
    result->source = read_text(from, "source");
    read_inner(reader, from, "limits", &limits);
    result->limits =
        (spill_scan_limits_t){.elements = read_number(reader, &limits, "elements"),
                              .bytes = read_number(reader, &limits, "bytes"),
                              .document_bytes = read_number(reader, &limits, "documentBytes"),
                              .paid_per_cent = read_number(reader, &limits, "paidPerCent")};
    result->collections_max = read_number(reader, &limits, "collections");
    result->documents = read_number(reader, from, "documents");
    result->bytes = read_number(reader, from, "bytes");
    result->problems_all = read_number(reader, from, "problemCount");
    result->scanned_ms = read_date(from, "at");
    if (result->scanned_ms == SPILL_WHEN_UNKNOWN)
        result->scanned_ms = 0;
    if (find_field(reader, from, "qualified", &iter))
        result->qualified = bson_iter_as_bool(&iter);
    if (find_field(reader, from, "interrupted", &iter))
        result->interrupted = bson_iter_as_bool(&iter);
    size_t count = count_items(reader, from, "collections", &list);
    result->collections = bson_malloc0((count + 1) * sizeof *result->collections);
    bson_iter_init(&iter, &list);
    while (reader->code == SPILL_OK && bson_iter_next(&iter))
        if (inner_of(&iter, &at))
            read_collection(reader, &at, &result->collections[result->collection_count++]);
    count = count_items(reader, from, "sprawl", &list);
    result->sprawl.groups = bson_malloc0((count + 1) * sizeof *result->sprawl.groups);
    bson_iter_init(&iter, &list);
    while (reader->code == SPILL_OK && bson_iter_next(&iter))
        if (inner_of(&iter, &at))
            read_group(reader, &at, result);
}

static spill_code_t read_whole(const char *file, bool is_stdin, char **data, size_t *size,
                               spill_error_t *error)
{
    FILE *from = is_stdin ? stdin : fopen(file, "rb");
    size_t capacity = 0, got = 1;
    *data = NULL;
    *size = 0;
    if (!from)
        return spill_fail_errno(error, errno, "%s", file);
    for (; got > 0; *size += got) {
        if (capacity - *size < 65536)
            *data = bson_realloc(*data, capacity = 2 * capacity + 131072);
        got = fread(*data + *size, 1, capacity - *size, from);
    }
    int problem = ferror(from) ? errno : 0;
    if (!is_stdin)
        fclose(from);
    return problem ? spill_fail_errno(error, problem, "%s", file) : SPILL_OK;
}

spill_code_t spill_scan_read_json(const char *file, spill_scan_result_t *result,
                                  spill_error_t *error)
{
    char *data;
    size_t size;
    bson_error_t problem;
    bool is_stdin = strcmp(file, "-") == 0;
    *result = (spill_scan_result_t){0};
    spill_code_t code = read_whole(file, is_stdin, &data, &size, error);
    file = is_stdin ? "stdin" : file;
    if (code == SPILL_OK) {
        bson_t *document = bson_new_from_json((const uint8_t *)data, (ssize_t)size, &problem);
        if (document) {
            reader_t reader = {.file = file, .error = error};
            read_result(&reader, document, result);
            code = reader.code;
            bson_destroy(document);
        } else {
            code = spill_fail(error, SPILL_PARSE, "%s: %s", file, problem.message);
        }
    }
    bson_free(data);
    if (code == SPILL_OK)
        spill_scan_find(result);
    return code;
}

bool spill_scan_is_json(const char *file)
{
    static const char name[] = "\"spillwayScan\"";
    char head[64] = "";
    struct stat status;
    bool plain = stat(file, &status) == 0 && S_ISREG(status.st_mode); /* a pipe can be read once */
    FILE *from = plain ? fopen(file, "rb") : NULL;
    if (!from)
        return false;
    size_t got = fread(head, 1, sizeof head - 1, from);
    fclose(from);
    head[got] = '\0';
    const char *at = head + strspn(head, " \t\r\n");
    at = *at == '{' ? at + 1 + strspn(at + 1, " \t\r\n") : "";
    return strncmp(at, name, sizeof name - 1) == 0;
}
