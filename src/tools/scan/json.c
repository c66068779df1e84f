/* A scan's result as one JSON document, by tables of fields. docs/reference/scan-json.md has the
 * schema. */
#include "bson/value.h"
#include "store/raw_reader.h"
#include "tools/scan/json_fields.h"
#include "tools/scan/scan.h"
#include "util/error.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

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
    if (!spill_inner_document(iter, &list) || !bson_iter_init(&items, &list))
        return SPILL_OK;
    while (bson_iter_next(&items)) {
        spill_scan_index_t index = {.bytes = -1};
        spill_inner_document(&items, &at);
        SPILL_TRY(spill_record_read(&index_size, &at, &index, error));
        if (!spill_scan_indexes_add(indexes, &at, index.bytes))
            return spill_fail(error, SPILL_PARSE, "index: there is no key");
    }
    return SPILL_OK;
}

/* ---- collections ----------------------------------------------------------------------------- */

static void print_largest(const void *record, const void *root, FILE *to)
{
    (void)root;
    spill_json_print_largest(&((const spill_scan_collection_t *)record)->largest, to);
}

static spill_code_t read_largest(void *record, const void *root, const bson_iter_t *iter,
                                 spill_error_t *error)
{
    (void)root;
    return spill_json_read_largest(iter, &((spill_scan_collection_t *)record)->largest, error);
}

#define COLLECTION(type, member, ...)                                                              \
    SPILL_FIELD(type, spill_scan_collection_t, member, __VA_ARGS__)
#define COUNT(member, ...) NUMBER(spill_scan_collection_t, member, __VA_ARGS__)
static const spill_field_t collection_fields[] = {
    TEXT(spill_scan_collection_t, name, "collection", 0),
    TEXT(spill_scan_collection_t, input, "input", SPILL_FIELD_LENIENT | SPILL_FIELD_REDACTED),
    COUNT(documents, "documents"),
    COUNT(bytes, "bytes"),
    COUNT(damaged, "damaged"),
    COLLECTION(RECORD, sizes, "sizes", .of = &spill_json_distribution_record),
    COUNT(over_half, "overHalf"),
    CUSTOM("largest", .print = print_largest, .read = read_largest),
    COLLECTION(LIST, indexes.items, "indexes", .of = &index_record, .read = read_indexes,
               .count_offset = offsetof(spill_scan_collection_t, indexes.count),
               .flags = SPILL_FIELD_NULL_UNLESS | SPILL_FIELD_OPTIONAL, .when = knows_indexes),
    COLLECTION(LIST, paths, "paths", .of = &spill_json_path_record,
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
    spill_inner_document(iter, &list);
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

const char *spill_scan_shown_source(const spill_scan_result_t *result, const char *given)
{
    if (given && !spill_raw_reader_serves(given))
        return given;
    return result->collection_count > 0 ? result->collections[0].input : "a server";
}

void spill_scan_write_json(const spill_scan_result_t *result, const char *source, FILE *to)
{
    char *name = bson_strdup(source);
    spill_scan_result_t named = *result;
    named.source = name;
    spill_record_print(&result_record, &named, false, to);
    fputc('\n', to);
    bson_free(name);
}

/* The same from the document. */
static spill_code_t result_from_bson(const bson_t *document, spill_scan_result_t *result,
                                     spill_error_t *error)
{
    SPILL_TRY(spill_record_read(&result_record, document, result, error));
    if (result->scanned_ms == SPILL_WHEN_UNKNOWN)
        result->scanned_ms = 0;
    spill_scan_derive(result);
    return SPILL_OK;
}

/* ---- read a file ----------------------------------------------------------------------------- */

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

/* libbson did not read the text: say why in our own words. */
static spill_code_t refuse_text(const char *file, const char *text, size_t size,
                                spill_error_t *error)
{
    spill_json_kind_t kind;
    spill_code_t code = spill_json_check(text, size, &kind, error);
    if (code == SPILL_OK && kind != SPILL_JSON_DOCUMENT)
        code = spill_fail(error, SPILL_PARSE, "it is no document, {...}");
    else if (code == SPILL_OK)
        code = spill_json_refuse(text, size, error);
    return spill_fail_prefix(error, code, "%s", file);
}

spill_code_t spill_scan_read_json(const char *file, spill_scan_result_t *result,
                                  spill_error_t *error)
{
    char *data;
    size_t size;
    bson_error_t ignored;
    bool is_stdin = strcmp(file, "-") == 0;
    *result = (spill_scan_result_t){0};
    spill_code_t code = read_whole(file, is_stdin, &data, &size, error);
    file = is_stdin ? "stdin" : file;
    if (code == SPILL_OK) {
        bson_t *document = bson_new_from_json((const uint8_t *)data, (ssize_t)size, &ignored);
        if (document) {
            code = result_from_bson(document, result, error);
            bson_destroy(document);
            if (code == SPILL_FORMAT)
                code = spill_fail_prefix(error, SPILL_FORMAT, "%s", file);
            else if (code != SPILL_OK) /* not SPILL_CORRUPT: that is about stored records */
                code = spill_fail_prefix(error, SPILL_PARSE,
                                         "%s: `scan --json` does not write this", file);
        } else {
            code = refuse_text(file, data, size, error);
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
