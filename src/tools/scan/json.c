/* A scan's result as one JSON document, by tables of fields. docs/reference/scan-json.md has the
 * schema. */
#include "bson/record.h"
#include "tools/scan/json_points.h"
#include "tools/scan/json_put.h"
#include "tools/scan/scan.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

#define OPTIONAL .flags = SPILL_FIELD_OPTIONAL
#define LENIENT .flags = SPILL_FIELD_LENIENT
#define UNREAD .flags = SPILL_FIELD_UNREAD
#define UNLESS(condition) .flags = SPILL_FIELD_OMIT_UNLESS, .when = (condition)
#define RANGE .least = -SPILL_SCAN_NUMBER_MAX, .most = SPILL_SCAN_NUMBER_MAX

/* A member: its type, its struct, and its name in JSON. */
#define NUMBER(struct_, member, ...) SPILL_FIELD(NUMBER, struct_, member, __VA_ARGS__, RANGE)
#define DATE(struct_, member, name) SPILL_FIELD(DATE, struct_, member, name, RANGE, LENIENT)
#define REAL(struct_, member, name, digits_)                                                       \
    SPILL_FIELD(DOUBLE, struct_, member, name, .digits = (digits_), LENIENT)
#define TEXT(struct_, member, name, ...)                                                           \
    SPILL_FIELD(COPY, struct_, member, name, .flags = SPILL_FIELD_REPAIRED | (__VA_ARGS__))
/* An object of members of the struct itself. */
#define PART(record_, name_, ...)                                                                  \
    {                                                                                              \
        .type = SPILL_FIELD_RECORD, .of = &(record_), .name = (name_), __VA_ARGS__                 \
    }
#define CUSTOM(name_, ...)                                                                         \
    {                                                                                              \
        .type = SPILL_FIELD_CUSTOM, .name = (name_), __VA_ARGS__                                   \
    }

/* The document or array at the iterator, else an empty one; *inner borrows. */
static bool inner_of(const bson_iter_t *iter, bson_t *inner)
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

/* ---- distributions --------------------------------------------------------------------------- */

static void print_histogram(const void *record, const void *root, FILE *to)
{
    (void)root;
    spill_json_put_histogram(to, &((const spill_scan_numbers_t *)record)->histogram);
}

static spill_code_t read_histogram(void *record, const void *root, const bson_iter_t *iter,
                                   spill_error_t *error)
{
    (void)root;
    (void)error;
    spill_scan_numbers_t *numbers = record;
    bson_free(numbers->histogram.bins);
    numbers->histogram = spill_json_read_histogram(iter);
    return SPILL_OK;
}

#define SUM_FIELDS                                                                                 \
    NUMBER(spill_scan_numbers_t, count, "count"), NUMBER(spill_scan_numbers_t, sum, "sum"),        \
        SPILL_FIELD(DOUBLE, spill_scan_numbers_t, mean, "mean", .digits = 6, UNREAD)
#define NUMBER_FIELDS                                                                              \
    SUM_FIELDS, NUMBER(spill_scan_numbers_t, min, "min"),                                          \
        NUMBER(spill_scan_numbers_t, p10, "p10"), NUMBER(spill_scan_numbers_t, p50, "p50"),        \
        NUMBER(spill_scan_numbers_t, p90, "p90"), NUMBER(spill_scan_numbers_t, p99, "p99"),        \
        NUMBER(spill_scan_numbers_t, p999, "p999"), NUMBER(spill_scan_numbers_t, max, "max")

static const spill_field_t sum_fields[] = {SUM_FIELDS};
static const spill_field_t number_fields[] = {NUMBER_FIELDS};
static const spill_field_t distribution_fields[] = {
    NUMBER_FIELDS, CUSTOM("histogram", .print = print_histogram, .read = read_histogram, OPTIONAL)};
static const spill_record_t sums = SPILL_RECORD("sums", spill_scan_numbers_t, sum_fields);
static const spill_record_t numbers = SPILL_RECORD("numbers", spill_scan_numbers_t, number_fields);
static const spill_record_t distribution =
    SPILL_RECORD("distribution", spill_scan_numbers_t, distribution_fields);

/* ---- growth ---------------------------------------------------------------------------------- */

static bool is_timed(const void *growth)
{
    return ((const spill_growth_forecast_t *)growth)->timed;
}

static bool is_forecast(const void *growth)
{
    return is_timed(growth) && ((const spill_growth_forecast_t *)growth)->forecast;
}

static bool is_compared(const void *growth)
{
    return ((const spill_growth_forecast_t *)growth)->elapsed_ms != 0;
}

static bool has_course(const void *growth)
{
    return ((const spill_growth_forecast_t *)growth)->course != NULL;
}

static void print_course(const void *record, const void *root, FILE *to)
{
    (void)root;
    spill_json_put_course(to, ((const spill_growth_forecast_t *)record)->course);
}

static spill_code_t read_course(void *record, const void *root, const bson_iter_t *iter,
                                spill_error_t *error)
{
    (void)root;
    (void)error;
    spill_growth_forecast_t *growth = record;
    bson_free(growth->course);
    growth->course = spill_json_read_course(iter);
    return SPILL_OK;
}

static const spill_field_t when_fields[] = {NUMBER(spill_when_t, elements, "elements"),
                                            DATE(spill_when_t, earliest_ms, "earliest"),
                                            DATE(spill_when_t, likely_ms, "likely"),
                                            DATE(spill_when_t, latest_ms, "latest"),
                                            DATE(spill_when_t, as_of_ms, "asOf"),
                                            SPILL_FIELD(BOOL, spill_when_t, past, "past", UNREAD)};
static const spill_record_t when_record = SPILL_RECORD("when", spill_when_t, when_fields);

#define GROWTH(type, member, name, digits_)                                                        \
    SPILL_FIELD(type, spill_growth_forecast_t, member, name, .digits = (digits_), RANGE,           \
                .flags = SPILL_FIELD_OMIT_UNLESS | SPILL_FIELD_LENIENT, .when = is_timed)

static const spill_field_t coming_fields[] = {
    NUMBER(spill_growth_forecast_t, horizon_ms, "horizonMs"),
    REAL(spill_growth_forecast_t, coming.low, "low", 6),
    REAL(spill_growth_forecast_t, coming.likely, "likely", 6),
    REAL(spill_growth_forecast_t, coming.high, "high", 6)};
static const spill_field_t since_fields[] = {
    NUMBER(spill_growth_forecast_t, elapsed_ms, "elapsedMs"),
    NUMBER(spill_growth_forecast_t, added, "added"),
    REAL(spill_growth_forecast_t, added_per_day, "perDay", 6)};
static const spill_record_t coming_record =
    SPILL_RECORD("coming", spill_growth_forecast_t, coming_fields);
static const spill_record_t since_record =
    SPILL_RECORD("since", spill_growth_forecast_t, since_fields);

#define GROWTH_FIELDS                                                                              \
    GROWTH(DOUBLE, rising, "rising", 4), GROWTH(DOUBLE, falling, "falling", 4),                    \
        GROWTH(DATE, oldest_ms, "oldest", 0), GROWTH(DATE, newest_ms, "newest", 0),                \
        GROWTH(DOUBLE, pace.per_day, "perDay", 6),                                                 \
        GROWTH(DOUBLE, pace.acceleration, "acceleration", 4),                                      \
        GROWTH(DOUBLE, pace.burst, "burst", 4),                                                    \
        PART(coming_record, "coming", UNLESS(is_forecast)),                                        \
        PART(since_record, "since", UNLESS(is_compared))

static const spill_field_t path_growth_fields[] = {GROWTH_FIELDS};
static const spill_field_t owner_growth_fields[] = {
    SPILL_FIELD(RECORD, spill_growth_forecast_t, threshold, "threshold", .of = &when_record),
    SPILL_FIELD(RECORD, spill_growth_forecast_t, limit, "limit", .of = &when_record), GROWTH_FIELDS,
    CUSTOM("course", .print = print_course, .read = read_course, UNLESS(has_course))};
static const spill_record_t path_growth =
    SPILL_RECORD("growth", spill_growth_forecast_t, path_growth_fields);
static const spill_record_t owner_growth =
    SPILL_RECORD("growth", spill_growth_forecast_t, owner_growth_fields);

/* Times count only if they are complete: then the order and both ends are known. */
static spill_code_t read_growth(const spill_record_t *type, spill_growth_forecast_t *growth,
                                const bson_iter_t *iter, spill_error_t *error)
{
    bson_t from;
    inner_of(iter, &from);
    SPILL_TRY(spill_record_read(type, &from, growth, error));
    growth->timed = bson_has_field(&from, "rising") && growth->oldest_ms != SPILL_WHEN_UNKNOWN &&
                    growth->newest_ms != SPILL_WHEN_UNKNOWN;
    growth->forecast = growth->timed && bson_has_field(&from, "coming");
    if (growth->timed)
        return SPILL_OK;
    growth->rising = growth->falling = 0;
    growth->horizon_ms = 0;
    growth->coming = (spill_forecast_t){0};
    growth->pace = (spill_pace_t){.per_day = growth->added_per_day};
    return SPILL_OK;
}

static spill_code_t read_path_growth(void *record, const void *root, const bson_iter_t *iter,
                                     spill_error_t *error)
{
    (void)root;
    return read_growth(&path_growth, &((spill_scan_path_t *)record)->growth_forecast, iter, error);
}

static spill_code_t read_owner_growth(void *record, const void *root, const bson_iter_t *iter,
                                      spill_error_t *error)
{
    (void)root;
    return read_growth(&owner_growth, &((spill_owner_t *)record)->growth_forecast, iter, error);
}

/* ---- owners ---------------------------------------------------------------------------------- */

static spill_code_t read_owner_value(void *record, const void *root, const bson_iter_t *iter,
                                     spill_error_t *error)
{
    (void)root;
    (void)error;
    if (!BSON_ITER_HOLDS_NULL(iter))
        ((spill_owner_t *)record)->value = spill_value_from_iter(iter);
    return SPILL_OK;
}

#define OWNER_VALUE                                                                                \
    SPILL_FIELD(VALUE, spill_owner_t, value, "owner", OPTIONAL, .read = read_owner_value)
#define OWNER_LENGTH NUMBER(spill_owner_t, length, "length"), NUMBER(spill_owner_t, bytes, "bytes")
#define OWNER_DOCUMENT                                                                             \
    NUMBER(spill_owner_t, document_bytes, "documentBytes"), NUMBER(spill_owner_t, place, "place")

static const spill_field_t owner_fields[] = {OWNER_VALUE, OWNER_LENGTH, OWNER_DOCUMENT,
                                             SPILL_FIELD(RECORD, spill_owner_t, growth_forecast,
                                                         "growth", .of = &owner_growth, OPTIONAL,
                                                         .read = read_owner_growth)};
static const spill_field_t heaviest_fields[] = {OWNER_VALUE, OWNER_LENGTH, OWNER_DOCUMENT};
static const spill_field_t largest_fields[] = {OWNER_VALUE, OWNER_DOCUMENT};
static const spill_record_t owner_record = SPILL_RECORD("owner", spill_owner_t, owner_fields);
static const spill_record_t heaviest_record = SPILL_RECORD("owner", spill_owner_t, heaviest_fields);
static const spill_record_t largest_record = SPILL_RECORD("owner", spill_owner_t, largest_fields);

static void print_owners(const spill_record_t *type, const spill_owners_t *owners, FILE *to)
{
    fputc('[', to);
    for (size_t i = 0; i < owners->count; i++) {
        fputs(i > 0 ? "," : "", to);
        spill_record_print(type, &owners->items[i], false, to);
    }
    fputc(']', to);
}

/* The list sorts and copies what it is given. */
static spill_code_t read_owners(const spill_record_t *type, const bson_iter_t *iter,
                                spill_owners_t *owners, spill_error_t *error)
{
    bson_iter_t items;
    bson_t list, at;
    inner_of(iter, &list);
    bson_iter_init(&items, &list);
    while (bson_iter_next(&items)) {
        spill_owner_t owner = {.bytes = -1};
        if (!inner_of(&items, &at))
            continue;
        spill_code_t code = spill_record_read(type, &at, &owner, error);
        if (type == &largest_record)
            owner.bytes = owner.document_bytes;
        if (code == SPILL_OK)
            spill_owners_add(owners, &owner);
        bson_free(owner.growth_forecast.course);
        SPILL_TRY(code);
    }
    return SPILL_OK;
}

static void print_path_owners(const void *record, const void *root, FILE *to)
{
    (void)root;
    print_owners(&owner_record, &((const spill_scan_path_t *)record)->owners, to);
}

static spill_code_t read_path_owners(void *record, const void *root, const bson_iter_t *iter,
                                     spill_error_t *error)
{
    (void)root;
    return read_owners(&owner_record, iter, &((spill_scan_path_t *)record)->owners, error);
}

static void print_heaviest(const void *record, const void *root, FILE *to)
{
    (void)root;
    print_owners(&heaviest_record, &((const spill_scan_path_t *)record)->heaviest, to);
}

static spill_code_t read_heaviest(void *record, const void *root, const bson_iter_t *iter,
                                  spill_error_t *error)
{
    (void)root;
    spill_owners_t *heaviest = &((spill_scan_path_t *)record)->heaviest;
    heaviest->by_bytes = true;
    return read_owners(&owner_record, iter, heaviest, error);
}

static void print_largest(const void *record, const void *root, FILE *to)
{
    (void)root;
    print_owners(&largest_record, &((const spill_scan_collection_t *)record)->largest, to);
}

static spill_code_t read_largest(void *record, const void *root, const bson_iter_t *iter,
                                 spill_error_t *error)
{
    (void)root;
    return read_owners(&largest_record, iter, &((spill_scan_collection_t *)record)->largest, error);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static bool is_map(const void *path)
{
    return ((const spill_scan_path_t *)path)->map;
}

static bool is_array(const void *path)
{
    return !is_map(path);
}

static const char *kind_name(int map)
{
    return map == 0 ? "array" : map == 1 ? "map" : NULL;
}

static bool has_growth(const void *path)
{
    const spill_growth_forecast_t *growth = &((const spill_scan_path_t *)path)->growth_forecast;
    return growth->timed || growth->elapsed_ms > 0;
}

static void print_time(const void *record, const void *root, FILE *to)
{
    (void)root;
    const spill_scan_path_t *path = record;
    if (!path->time_type) {
        fputs("null", to);
        return;
    }
    fputs("{\"field\":", to);
    spill_json_put_text(to, path->time_field);
    fprintf(to, ",\"type\":\"%s\"}", path->time_type);
}

static spill_code_t read_time(void *record, const void *root, const bson_iter_t *iter,
                              spill_error_t *error)
{
    static const char *const types[] = {"date", "text", "timestamp", "objectId"};
    (void)root;
    (void)error;
    spill_scan_path_t *path = record;
    bson_iter_t at;
    bson_t time;
    inner_of(iter, &time);
    if (bson_iter_init_find(&at, &time, "field") && BSON_ITER_HOLDS_UTF8(&at))
        bson_strncpy(path->time_field, bson_iter_utf8(&at, NULL), sizeof path->time_field);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (bson_iter_init_find(&at, &time, "type") && BSON_ITER_HOLDS_UTF8(&at) &&
            strcmp(bson_iter_utf8(&at, NULL), types[i]) == 0)
            path->time_type = types[i];
    return SPILL_OK;
}

#define PATH(type, member, ...) SPILL_FIELD(type, spill_scan_path_t, member, __VA_ARGS__)
#define COUNT(member, ...) NUMBER(spill_scan_path_t, member, __VA_ARGS__)

/* Earlier versions wrote no overEntries: all documents. */
static const spill_field_t document_fields[] = {COUNT(documents, "documents")};
static const spill_record_t document_record =
    SPILL_RECORD("path", spill_scan_path_t, document_fields);

static spill_code_t read_documents(void *record, const void *root, const bson_iter_t *iter,
                                   spill_error_t *error)
{
    (void)root;
    spill_scan_path_t *path = record;
    bson_t only = BSON_INITIALIZER;
    bson_append_iter(&only, "documents", -1, iter);
    spill_code_t code = spill_record_read(&document_record, &only, path, error);
    path->over_entries = path->documents;
    bson_destroy(&only);
    return code;
}

static const spill_field_t path_fields[] = {
    TEXT(spill_scan_path_t, path, "path", 0),
    PATH(ENUM, map, "kind", .name_of = kind_name, .values = 2, LENIENT),
    COUNT(documents, "documents", .read = read_documents),
    PATH(RECORD, lengths, "lengths", .of = &distribution),
    PATH(RECORD, elements, "elementBytes", .of = &sums, .when = is_map),
    PATH(RECORD, elements, "elementBytes", .of = &numbers, .when = is_array),
    COUNT(bytes, "bytes"),
    PATH(DOUBLE, share, "share", .digits = 6, UNREAD),
    COUNT(bytes_max, "bytesMax"),
    COUNT(document_max, "documentMax"),
    COUNT(over_elements, "overElements"),
    COUNT(over_entries, "overEntries", OPTIONAL),
    COUNT(over_bytes, "overBytes"),
    COUNT(paid, "paid"),
    COUNT(threshold, "threshold"),
    CUSTOM("time", .print = print_time, .read = read_time),
    PATH(RECORD, growth_forecast, "growth", .of = &path_growth, .read = read_path_growth,
         .flags = SPILL_FIELD_NULL_UNLESS, .when = has_growth),
    CUSTOM("owners", .print = print_path_owners, .read = read_path_owners),
    CUSTOM("heaviest", .print = print_heaviest, .read = read_heaviest, OPTIONAL)};
static const spill_record_t path_record = SPILL_RECORD("path", spill_scan_path_t, path_fields);

/* ---- indexes --------------------------------------------------------------------------------- */

static bool knows_indexes(const void *collection)
{
    return ((const spill_scan_collection_t *)collection)->indexes.known;
}

static bool knows_bytes(const void *index)
{
    return ((const spill_scan_index_t *)index)->bytes >= 0;
}

static void print_key(const void *record, const void *root, FILE *to)
{
    (void)root;
    spill_value_t key = spill_value_from_document(((const spill_scan_index_t *)record)->key);
    spill_json_put_value(to, &key);
}

static const spill_field_t index_fields[] = {
    TEXT(spill_scan_index_t, name, "name", 0), CUSTOM("key", .print = print_key),
    NUMBER(spill_scan_index_t, bytes, "bytes", UNLESS(knows_bytes))};
static const spill_field_t index_size_fields[] = {
    NUMBER(spill_scan_index_t, bytes, "bytes", OPTIONAL)};
static const spill_record_t index_record = SPILL_RECORD("index", spill_scan_index_t, index_fields);
static const spill_record_t index_size =
    SPILL_RECORD("index", spill_scan_index_t, index_size_fields);

/* The first versions wrote no indexes. */
static spill_code_t read_indexes(void *record, const void *root, const bson_iter_t *iter,
                                 spill_error_t *error)
{
    (void)root;
    spill_scan_indexes_t *indexes = &((spill_scan_collection_t *)record)->indexes;
    bson_iter_t items;
    bson_t list, at;
    if (!BSON_ITER_HOLDS_ARRAY(iter))
        return SPILL_OK;
    indexes->known = true;
    if (!inner_of(iter, &list) || !bson_iter_init(&items, &list))
        return SPILL_OK;
    while (bson_iter_next(&items)) {
        spill_scan_index_t index = {.bytes = -1};
        inner_of(&items, &at);
        SPILL_TRY(spill_record_read(&index_size, &at, &index, error));
        if (!spill_scan_indexes_add(indexes, &at, index.bytes))
            return spill_fail(error, SPILL_PARSE, "index: there is no key");
    }
    return SPILL_OK;
}

/* ---- collections ----------------------------------------------------------------------------- */

#define COLLECTION(type, member, ...)                                                              \
    SPILL_FIELD(type, spill_scan_collection_t, member, __VA_ARGS__)
#undef COUNT
#define COUNT(member, ...) NUMBER(spill_scan_collection_t, member, __VA_ARGS__)
static const spill_field_t collection_fields[] = {
    TEXT(spill_scan_collection_t, name, "collection", 0),
    TEXT(spill_scan_collection_t, input, "input", SPILL_FIELD_LENIENT | SPILL_FIELD_REDACTED),
    COUNT(documents, "documents"),
    COUNT(bytes, "bytes"),
    COUNT(damaged, "damaged"),
    COLLECTION(RECORD, sizes, "sizes", .of = &distribution),
    COUNT(over_half, "overHalf"),
    CUSTOM("largest", .print = print_largest, .read = read_largest),
    COLLECTION(LIST, indexes.items, "indexes", .of = &index_record, .read = read_indexes,
               .count_offset = offsetof(spill_scan_collection_t, indexes.count),
               .flags = SPILL_FIELD_NULL_UNLESS | SPILL_FIELD_OPTIONAL, .when = knows_indexes),
    COLLECTION(LIST, paths, "paths", .of = &path_record,
               .count_offset = offsetof(spill_scan_collection_t, path_count)),
    COUNT(paths_left_out, "pathsLeftOut"),
    COUNT(overflow, "overflow")};
static const spill_record_t collection_record =
    SPILL_RECORD("collection", spill_scan_collection_t, collection_fields);

/* ---- sprawl ---------------------------------------------------------------------------------- */

static const char *sprawl_kind_name(int kind)
{
    return kind <= SPILL_SPRAWL_DATES ? spill_sprawl_kind_name((spill_sprawl_kind_t)kind) : NULL;
}

static void print_members(const void *record, const void *root, FILE *to)
{
    const spill_sprawl_group_t *group = record;
    const spill_scan_result_t *result = root;
    fputc('[', to);
    for (size_t i = 0; i < group->count; i++) {
        fputs(i > 0 ? "," : "", to);
        spill_json_put_text(to, result->collections[group->members[i]].name);
    }
    fputc(']', to);
}

/* The names of members are in the order of the collections. */
static spill_code_t read_members(void *record, const void *root, const bson_iter_t *iter,
                                 spill_error_t *error)
{
    spill_sprawl_group_t *group = record;
    const spill_scan_result_t *result = root;
    bson_iter_t names;
    bson_t list;
    size_t at = 0;
    inner_of(iter, &list);
    bson_free(group->members);
    group->members = bson_malloc0((bson_count_keys(&list) + 1) * sizeof *group->members);
    bson_iter_init(&names, &list);
    for (group->count = 0; bson_iter_next(&names);) {
        const char *name = BSON_ITER_HOLDS_UTF8(&names) ? bson_iter_utf8(&names, NULL) : "";
        while (at < result->collection_count && strcmp(result->collections[at].name, name) != 0)
            at++;
        if (at == result->collection_count)
            return spill_fail(error, SPILL_PARSE, "sprawl: there is no collection '%s'", name);
        group->members[group->count++] = at++;
    }
    return group->count > 0 ? SPILL_OK : spill_fail(error, SPILL_PARSE, "sprawl: no collections");
}

#define GROUP(type, member, ...) SPILL_FIELD(type, spill_sprawl_group_t, member, __VA_ARGS__)
#undef COUNT
#define COUNT(member, ...) NUMBER(spill_sprawl_group_t, member, __VA_ARGS__)
static const spill_field_t group_fields[] = {
    TEXT(spill_sprawl_group_t, pattern, "pattern", 0),
    GROUP(ENUM, kind, "identifiers", .name_of = sprawl_kind_name, .values = SPILL_SPRAWL_DATES + 1,
          LENIENT),
    COUNT(documents, "documents"),
    COUNT(bytes, "bytes"),
    COUNT(index_count, "indexes", OPTIONAL),
    COUNT(index_bytes, "indexBytes", OPTIONAL),
    CUSTOM("collections", .print = print_members, .read = read_members)};
static const spill_record_t group_record =
    SPILL_RECORD("sprawl", spill_sprawl_group_t, group_fields);

/* ---- findings and problems, which are only written ------------------------------------------- */

typedef struct finding_object {
    const char *finding, *atlas, *severity;
    char *collection, *path, *index, *pattern; /* borrowed */
    int64_t documents;
} finding_object_t;

#define FINDING(type, member, ...) SPILL_FIELD(type, finding_object_t, member, #member, __VA_ARGS__)
static const spill_field_t finding_fields[] = {
    FINDING(TEXT, finding, .flags = 0),
    FINDING(TEXT, atlas, .flags = 0),
    FINDING(TEXT, severity, .flags = 0),
    FINDING(COPY, collection, .flags = SPILL_FIELD_REPAIRED),
    FINDING(COPY, path, .flags = SPILL_FIELD_REPAIRED),
    FINDING(COPY, index, .flags = SPILL_FIELD_REPAIRED | SPILL_FIELD_SPARSE),
    FINDING(COPY, pattern, .flags = SPILL_FIELD_REPAIRED | SPILL_FIELD_SPARSE),
    FINDING(INT64, documents, .flags = 0)};
static const spill_record_t finding_record =
    SPILL_RECORD("finding", finding_object_t, finding_fields);

static void print_findings(const void *record, const void *root, FILE *to)
{
    const spill_scan_result_t *result = root;
    (void)record;
    fputc('[', to);
    for (size_t i = 0; i < result->finding_count; i++) {
        const spill_scan_finding_t *finding = &result->findings[i];
        const finding_object_t object = {.finding = spill_scan_finding_name(finding->kind),
                                         .atlas = spill_scan_finding_atlas(finding->kind),
                                         .severity = finding->critical ? "critical" : "warning",
                                         .collection =
                                             result->collections[finding->collection].name,
                                         .path = finding->path ? finding->path->path : NULL,
                                         .index = finding->index ? finding->index->name : NULL,
                                         .pattern = finding->group ? finding->group->pattern : NULL,
                                         .documents = finding->documents};
        fputs(i > 0 ? "," : "", to);
        spill_record_print(&finding_record, &object, false, to);
    }
    fputc(']', to);
}

static bool has_line(const void *record)
{
    const spill_scan_problem_t *problem = record;
    return problem->place >= 0 && problem->by_line;
}

static bool has_byte(const void *record)
{
    const spill_scan_problem_t *problem = record;
    return problem->place >= 0 && !problem->by_line;
}

static const spill_field_t problem_fields[] = {
    TEXT(spill_scan_problem_t, input, "input", SPILL_FIELD_REDACTED),
    SPILL_FIELD(INT64, spill_scan_problem_t, place, "line", .when = has_line),
    SPILL_FIELD(INT64, spill_scan_problem_t, place, "byte", .when = has_byte),
    TEXT(spill_scan_problem_t, text, "text", 0)};
static const spill_record_t problem_record =
    SPILL_RECORD("problem", spill_scan_problem_t, problem_fields);

/* ---- the whole ------------------------------------------------------------------------------- */

static void print_version(const void *record, const void *root, FILE *to)
{
    (void)record;
    (void)root;
    fprintf(to, "%d", SPILL_SCAN_SCHEMA);
}

static spill_code_t read_version(void *record, const void *root, const bson_iter_t *iter,
                                 spill_error_t *error)
{
    (void)record;
    (void)root;
    int64_t version = BSON_ITER_HOLDS_NUMBER(iter) ? bson_iter_as_int64(iter) : 0;
    return version == SPILL_SCAN_SCHEMA
               ? SPILL_OK
               : spill_fail(error, SPILL_FORMAT,
                            "a scan of version %" PRId64 "; this program knows %d", version,
                            SPILL_SCAN_SCHEMA);
}

static void print_quantile_error(const void *record, const void *root, FILE *to)
{
    (void)record;
    (void)root;
    fprintf(to, "%.7f", SPILL_SKETCH_ERROR);
}

#define RESULT(type, member, ...) SPILL_FIELD(type, spill_scan_result_t, member, __VA_ARGS__)
#undef COUNT
#define COUNT(member, ...) NUMBER(spill_scan_result_t, member, __VA_ARGS__)
static const spill_field_t limit_fields[] = {
    COUNT(limits.elements, "elements"), COUNT(limits.bytes, "bytes"),
    COUNT(limits.document_bytes, "documentBytes"), COUNT(limits.paid_per_cent, "paidPerCent"),
    COUNT(collections_max, "collections")};
static const spill_record_t limit_record =
    SPILL_RECORD("limits", spill_scan_result_t, limit_fields);

static const spill_field_t result_fields[] = {
    CUSTOM("spillwayScan", .print = print_version, .read = read_version),
    TEXT(spill_scan_result_t, source, "source", SPILL_FIELD_LENIENT | SPILL_FIELD_REDACTED),
    PART(limit_record, "limits", .flags = 0),
    CUSTOM("quantileError", .print = print_quantile_error),
    COUNT(documents, "documents"),
    COUNT(bytes, "bytes"),
    DATE(spill_scan_result_t, scanned_ms, "at"),
    RESULT(BOOL, qualified, "qualified"),
    RESULT(BOOL, interrupted, "interrupted"),
    CUSTOM("findings", .print = print_findings),
    RESULT(LIST, collections, "collections", .of = &collection_record,
           .count_offset = offsetof(spill_scan_result_t, collection_count)),
    RESULT(LIST, sprawl.groups, "sprawl", .of = &group_record,
           .count_offset = offsetof(spill_scan_result_t, sprawl.count)),
    RESULT(LIST, problems, "problems", .of = &problem_record, UNREAD,
           .count_offset = offsetof(spill_scan_result_t, problem_count)),
    COUNT(problems_all, "problemCount")};
static const spill_record_t result_record =
    SPILL_RECORD("scan", spill_scan_result_t, result_fields);

void spill_scan_write_json(const spill_scan_result_t *result, const char *source, FILE *to)
{
    char *name = bson_strdup(source);
    spill_scan_result_t named = *result;
    named.source = name;
    spill_record_print(&result_record, &named, false, to);
    fputc('\n', to);
    bson_free(name);
}

spill_code_t spill_scan_from_bson(const bson_t *document, spill_scan_result_t *result,
                                  spill_error_t *error)
{
    SPILL_TRY(spill_record_read(&result_record, document, result, error));
    if (result->scanned_ms == SPILL_WHEN_UNKNOWN)
        result->scanned_ms = 0;
    spill_scan_derive(result);
    return SPILL_OK;
}
