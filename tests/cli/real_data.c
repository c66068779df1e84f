#include "cli/real_data.h"

#include "tools/import/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define LINE_BYTES_MAX (1 << 20)

enum { AT_ONCE = 500, BACKWARDS_MAX = 4 * AT_ONCE, SMALL_PAGE = 7 };

_Noreturn void real_data_stop(const char *what, const char *detail)
{
    fprintf(stderr, "FAILED: %s: %s\n", what, detail);
    exit(EXIT_FAILURE);
}

void real_data_check(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK) {
        real_data_stop(spill_code_name(code), error->message);
    }
}

/* ---- what is expected ------------------------------------------------------------------------ */

static feed_t *find_source(real_data_t *expected, const char *owner)
{
    uint32_t hash = 2166136261U;
    for (const char *at = owner; *at != '\0'; at++) {
        hash = (hash ^ (uint8_t)*at) * 16777619U;
    }
    size_t at = hash % REAL_DATA_TABLE_SIZE;
    while (expected->feeds[at].owner && strcmp(expected->feeds[at].owner, owner) != 0) {
        at = (at + 1) % REAL_DATA_TABLE_SIZE;
    }
    return &expected->feeds[at];
}

static void add_line(real_data_t *expected, bson_t *document, const char *field)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, document, field) || !BSON_ITER_HOLDS_UTF8(&iter)) {
        real_data_stop("a line has no owner", field);
    }
    feed_t *feed = find_source(expected, bson_iter_utf8(&iter, NULL));
    if (!feed->owner) {
        feed->owner = bson_iter_utf8(&iter, NULL);
        expected->feed_count++;
    }
    if (feed->count == feed->capacity) {
        feed->capacity = feed->capacity ? feed->capacity * 2 : 4;
        feed->lines = bson_realloc(feed->lines, feed->capacity * sizeof *feed->lines);
    }
    feed->lines[feed->count++] = expected->count;
    if (expected->count == expected->capacity) {
        expected->capacity = expected->capacity ? expected->capacity * 2 : 1024;
        expected->documents =
            bson_realloc(expected->documents, expected->capacity * sizeof *expected->documents);
    }
    expected->documents[expected->count++] = document;
}

real_data_t *real_data_read(const char *path, const char *field)
{
    real_data_t *expected = bson_malloc0(sizeof *expected);
    gzFile file = gzopen(path, "rb");
    char *line = bson_malloc(LINE_BYTES_MAX);
    while (file && gzgets(file, line, LINE_BYTES_MAX)) {
        bson_error_t error;
        bson_t *document = bson_new_from_json((const uint8_t *)line, -1, &error);
        if (!document) {
            real_data_stop("libbson", error.message);
        }
        add_line(expected, document, field);
    }
    bson_free(line);
    gzclose(file);
    if (expected->count == 0) {
        real_data_stop("there are no lines", path);
    }
    return expected;
}

void real_data_free(real_data_t *expected)
{
    for (size_t i = 0; i < expected->count; i++) {
        bson_destroy(expected->documents[i]);
    }
    for (size_t i = 0; i < REAL_DATA_TABLE_SIZE; i++) {
        bson_free(expected->feeds[i].lines);
    }
    bson_free(expected->documents);
    bson_free(expected);
}

const feed_t *real_data_largest(const real_data_t *data)
{
    const feed_t *largest = &data->feeds[0];
    for (size_t i = 1; i < REAL_DATA_TABLE_SIZE; i++)
        if (data->feeds[i].count > largest->count)
            largest = &data->feeds[i];
    return largest;
}

char *real_data_path(void)
{
    const char *data = getenv("SPILLWAY_DATA");
    char *path = bson_strdup_printf("%s/openstack_updates/events.ndjson.gz", data ? data : "");
    if (!data || access(path, R_OK) != 0) {
        fprintf(stderr, "SKIPPED: SPILLWAY_DATA names no folder with openstack_updates\n");
        bson_free(path);
        exit(REAL_DATA_SKIPPED);
    }
    return path;
}

/* Copy lines to a new file: those whose numbers are in `numbers`, or the first `count`. */
static char *cut(const char *path, const size_t *numbers, size_t count)
{
    char *into = bson_strdup("/tmp/spillway-cut-XXXXXX.ndjson");
    int file = mkstemps(into, (int)strlen(".ndjson"));
    gzFile from = gzopen(path, "rb");
    FILE *to = file >= 0 ? fdopen(file, "w") : NULL;
    char *line = bson_malloc(LINE_BYTES_MAX);
    size_t done = 0;
    for (size_t at = 0; from && to && done < count && gzgets(from, line, LINE_BYTES_MAX); at++) {
        if (numbers && numbers[done] != at)
            continue;
        fputs(line, to);
        done++;
    }
    if (done < count || fclose(to) != 0)
        real_data_stop("cannot cut", path);
    bson_free(line);
    gzclose(from);
    return into;
}

char *real_data_cut(const char *path, int lines)
{
    return cut(path, NULL, (size_t)lines);
}

char *real_data_cut_feed(const char *path, const feed_t *feed)
{
    return cut(path, feed->lines, feed->count);
}

/* ---- reading back ---------------------------------------------------------------------------- */

static void compare(const real_data_t *expected, const feed_t *feed, size_t index,
                    const spill_element_t *element)
{
    if (index >= feed->count || element->seq != (int64_t)index) {
        real_data_stop("an element is out of order", feed->owner);
    }
    spill_value_t line = spill_value_from_document(expected->documents[feed->lines[index]]);
    if (!spill_value_equal(&line, &element->value)) {
        real_data_stop("an element differs from its line", feed->owner);
    }
}

static bool compare_element(void *context, const spill_value_t *owner,
                            const spill_element_t *element)
{
    real_data_t *expected = context;
    feed_t *feed = find_source(expected, (const char *)owner->data + 4);
    if (!feed->owner || owner->type != BSON_TYPE_UTF8) {
        real_data_stop("an owner is not in the file", (const char *)owner->data + 4);
    }
    compare(expected, feed, feed->seen, element);
    feed->seen++;
    return true;
}

static void read_forwards(real_data_t *expected, spill_array_t *array)
{
    spill_error_t error;
    for (size_t i = 0; i < REAL_DATA_TABLE_SIZE; i++) {
        expected->feeds[i].seen = 0;
    }
    real_data_check(spill_array_export(array, NULL, compare_element, expected, &error), &error);
    for (size_t i = 0; i < REAL_DATA_TABLE_SIZE; i++) {
        if (expected->feeds[i].seen != expected->feeds[i].count) {
            real_data_stop("elements are missing", expected->feeds[i].owner);
        }
    }
}

/*
 * Read page by page, newest first, as an application would. Without SPILLWAY_LONG, stop after
 * BACKWARDS_MAX elements if pages are so small that each read needs many of them.
 */
static void read_backwards(const real_data_t *expected, const feed_t *feed, spill_array_t *array)
{
    bool whole = getenv("SPILLWAY_LONG") != NULL ||
                 spill_array_get_definition(array)->bounds.page_capacity >= SMALL_PAGE;
    spill_error_t error;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, feed->owner);
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.limit = AT_ONCE;
    size_t left = feed->count;
    bool more = true;
    while (more) {
        spill_slice_t *slice = NULL;
        real_data_check(spill_array_read(array, &owner, &options, &slice, &error), &error);
        for (size_t i = 0; i < slice->count; i++) {
            compare(expected, feed, --left, &slice->elements[i]);
        }
        more = slice->more && (whole || feed->count - left < BACKWARDS_MAX);
        options.before = slice->next;
        spill_slice_free(slice);
    }
    spill_count_t count;
    real_data_check(spill_array_count(array, &owner, &count, &error), &error);
    size_t due = whole || feed->count < BACKWARDS_MAX ? feed->count : BACKWARDS_MAX;
    if (feed->count - left != due || count.count != (int64_t)feed->count) {
        real_data_stop("a feed was not read to its end, or was miscounted", feed->owner);
    }
    bson_destroy(&storage);
}

static void report_finding(void *context, const spill_finding_t *finding)
{
    (void)context;
    fprintf(stderr, "I%d, page %" PRId64 ": %s\n", finding->invariant, finding->page,
            finding->text);
}

static void verify(const real_data_t *expected, spill_array_t *array)
{
    spill_error_t error;
    spill_verify_summary_t summary;
    real_data_check(spill_array_verify(array, NULL, report_finding, NULL, &summary, &error),
                    &error);
    if (summary.findings > 0 || summary.elements != (int64_t)expected->count ||
        summary.owners != (int64_t)expected->feed_count) {
        real_data_stop("verify", "not clean");
    }
}

/* ---- one combination ------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static spill_array_t *open_array(spill_store_t *store, shape_t shape)
{
    spill_error_t error;
    spill_array_t *array = NULL;
    spill_definition_t definition;
    spill_definition_init(&definition, "events");
    definition.keep = shape.keep;
    definition.bounds.threshold = shape.threshold;
    definition.bounds.page_capacity = shape.page;
    definition.largest = definition.bounds;
    real_data_check(spill_store_define(store, &definition, &error), &error);
    real_data_check(spill_array_open(store, "events", &array, &error), &error);
    return array;
}

void real_data_try(real_data_t *data, spill_store_t *store, const char *path, const char *field,
                   shape_t shape)
{
    spill_error_t error;
    spill_array_t *array = open_array(store, shape);
    spill_import_options_t what = {.path = path, .owner = field};
    spill_import_result_t result;
    double start = seconds();
    real_data_check(spill_import(store, array, &what, &result, &error), &error);
    double imported = seconds();
    if (result.records != (int64_t)data->count || result.repeated != 0) {
        real_data_stop("not every line was imported once", field);
    }
    read_forwards(data, array);
    for (size_t i = 0; i < REAL_DATA_TABLE_SIZE; i++) {
        if (data->feeds[i].owner) {
            read_backwards(data, &data->feeds[i], array);
        }
    }
    double read = seconds();
    verify(data, array);
    printf("%s, keep %s, %" PRId64 "/%" PRId64
           ": import %.1f s, read both ways %.1f s, verify %.1f s\n",
           field, shape.keep == SPILL_KEEP_NEWEST ? "newest" : "oldest", shape.threshold,
           shape.page, imported - start, read - imported, seconds() - read);
    fflush(stdout);
    spill_array_close(array);
}
