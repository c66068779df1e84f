/* The paths of a collection in a scan's JSON document, with distributions, growth and owners. */
#include "bson/value.h"
#include "tools/scan/json_fields.h"
#include "util/error.h"

#include <string.h>

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
const spill_record_t spill_json_distribution_record =
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

static bool has_later(const void *growth)
{
    return ((const spill_growth_forecast_t *)growth)->later > 0;
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

static const spill_field_t path_growth_fields[] = {
    GROWTH_FIELDS,
    SPILL_FIELD(NUMBER, spill_growth_forecast_t, later, "later", RANGE,
                .flags = SPILL_FIELD_OMIT_UNLESS | SPILL_FIELD_LENIENT, .when = has_later)};
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
    spill_inner_document(iter, &from);
    SPILL_TRY(spill_record_read(type, &from, growth, error));
    growth->timed = bson_has_field(&from, "rising") && growth->oldest_ms != SPILL_WHEN_UNKNOWN &&
                    growth->newest_ms != SPILL_WHEN_UNKNOWN;
    growth->forecast = growth->timed && bson_has_field(&from, "coming");
    if (growth->timed)
        return SPILL_OK;
    growth->rising = growth->falling = 0;
    growth->later = 0;
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
    return read_growth(&owner_growth, &((spill_large_owner_t *)record)->growth_forecast, iter,
                       error);
}

/* ---- owners ---------------------------------------------------------------------------------- */

static spill_code_t read_owner_value(void *record, const void *root, const bson_iter_t *iter,
                                     spill_error_t *error)
{
    (void)root;
    (void)error;
    if (!BSON_ITER_HOLDS_NULL(iter))
        ((spill_large_owner_t *)record)->value = spill_value_from_iter(iter);
    return SPILL_OK;
}

#define OWNER_VALUE                                                                                \
    SPILL_FIELD(VALUE, spill_large_owner_t, value, "owner", OPTIONAL, .read = read_owner_value)
#define OWNER_LENGTH                                                                               \
    NUMBER(spill_large_owner_t, length, "length"), NUMBER(spill_large_owner_t, bytes, "bytes")
#define OWNER_DOCUMENT                                                                             \
    NUMBER(spill_large_owner_t, document_bytes, "documentBytes"),                                  \
        NUMBER(spill_large_owner_t, place, "place")

static const spill_field_t owner_fields[] = {
    OWNER_VALUE, OWNER_LENGTH, OWNER_DOCUMENT,
    SPILL_FIELD(RECORD, spill_large_owner_t, growth_forecast, "growth", .of = &owner_growth,
                OPTIONAL, .read = read_owner_growth)};
static const spill_field_t heaviest_fields[] = {OWNER_VALUE, OWNER_LENGTH, OWNER_DOCUMENT};
static const spill_field_t largest_fields[] = {OWNER_VALUE, OWNER_DOCUMENT};
static const spill_record_t owner_record = SPILL_RECORD("owner", spill_large_owner_t, owner_fields);
static const spill_record_t heaviest_record =
    SPILL_RECORD("owner", spill_large_owner_t, heaviest_fields);
static const spill_record_t largest_record =
    SPILL_RECORD("owner", spill_large_owner_t, largest_fields);

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
    spill_inner_document(iter, &list);
    bson_iter_init(&items, &list);
    while (bson_iter_next(&items)) {
        spill_large_owner_t owner = {.bytes = -1};
        if (!spill_inner_document(&items, &at))
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

void spill_json_print_largest(const spill_owners_t *largest, FILE *to)
{
    print_owners(&largest_record, largest, to);
}

spill_code_t spill_json_read_largest(const bson_iter_t *iter, spill_owners_t *largest,
                                     spill_error_t *error)
{
    return read_owners(&largest_record, iter, largest, error);
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

static const spill_field_t time_fields[] = {
    SPILL_FIELD(CHARS, spill_scan_path_t, time_field, "field", .flags = SPILL_FIELD_REPAIRED),
    SPILL_FIELD(TEXT, spill_scan_path_t, time_type, "type")};
static const spill_record_t time_record = SPILL_RECORD("time", spill_scan_path_t, time_fields);

static void print_time(const void *record, const void *root, FILE *to)
{
    (void)root;
    const spill_scan_path_t *path = record;
    if (path->time_type)
        spill_record_print(&time_record, path, false, to);
    else
        fputs("null", to);
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
    spill_inner_document(iter, &time);
    if (bson_iter_init_find(&at, &time, "field") && BSON_ITER_HOLDS_UTF8(&at))
        bson_strncpy(path->time_field, bson_iter_utf8(&at, NULL), sizeof path->time_field);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (bson_iter_init_find(&at, &time, "type") && BSON_ITER_HOLDS_UTF8(&at) &&
            strcmp(bson_iter_utf8(&at, NULL), types[i]) == 0)
            path->time_type = types[i];
    return SPILL_OK;
}

/* Earlier versions wrote no set. */
static const spill_field_t set_fields[] = {
    SPILL_FIELD(NUMBER, spill_scan_path_t, set_arrays, "arrays", RANGE),
    SPILL_FIELD(BOOL, spill_scan_path_t, set_sampled, "sampled")};
static const spill_record_t set_record = SPILL_RECORD("set", spill_scan_path_t, set_fields);

static bool is_set(const void *path)
{
    return ((const spill_scan_path_t *)path)->set;
}

static spill_code_t read_set(void *record, const void *root, const bson_iter_t *iter,
                             spill_error_t *error)
{
    (void)root;
    spill_scan_path_t *path = record;
    bson_t set;
    path->set = spill_inner_document(iter, &set);
    return path->set ? spill_record_read(&set_record, &set, path, error) : SPILL_OK;
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
    PATH(RECORD, lengths, "lengths", .of = &spill_json_distribution_record),
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
    PART(set_record, "set", .flags = SPILL_FIELD_OMIT_UNLESS | SPILL_FIELD_OPTIONAL, .when = is_set,
         .read = read_set),
    PATH(RECORD, growth_forecast, "growth", .of = &path_growth, .read = read_path_growth,
         .flags = SPILL_FIELD_NULL_UNLESS, .when = has_growth),
    CUSTOM("owners", .print = print_path_owners, .read = read_path_owners),
    CUSTOM("heaviest", .print = print_heaviest, .read = read_heaviest, OPTIONAL)};
const spill_record_t spill_json_path_record = SPILL_RECORD("path", spill_scan_path_t, path_fields);
