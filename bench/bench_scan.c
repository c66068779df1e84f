/*
 * How fast a scan reads a .bson file, compared with one thread of libbson that visits every field:
 * the minimum work for a C program to see every array.
 *
 *      bench_scan FILE [MEGABYTES [ROUNDS]]
 *      bench_scan mongodb://HOST/DATABASE [MEGABYTES [ROUNDS]]
 *
 * If FILE does not exist, the benchmark writes it: feeds and profiles of different sizes, 1100
 * megabytes by default. On a server it fills the collection `feeds` in the same way (64 megabytes),
 * and the other side is a libmongoc cursor over all documents that does not read their fields.
 * bench/scan_pymongo.py computes the same lengths and sizes in Python.
 */
#include "measure.h"
#include "tools/scan/scan.h"

#include <bson/bson.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <mongoc/mongoc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- the file -------------------------------------------------------------------------------- */

static uint64_t state = 0x9E3779B97F4A7C15U;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void put_oid(bson_t *to, const char *name)
{
    uint64_t words[2] = {next_random(), next_random()};
    bson_oid_t oid;
    memcpy(oid.bytes, words, sizeof oid.bytes);
    BSON_APPEND_OID(to, name, &oid);
}

static void put_activity(bson_t *list, uint32_t index)
{
    static const char words[] = "likes what was said of the weather in the town by the sea, and "
                                "says so at some length to all who care to read it here today";
    bson_t activity;
    char buffer[16];
    const char *key;
    bson_uint32_to_string(index, &key, buffer, sizeof buffer);
    BSON_APPEND_DOCUMENT_BEGIN(list, key, &activity);
    const char *type = next_random() % 2 ? "comment" : "like"; /* the macro evaluates it twice */
    BSON_APPEND_UTF8(&activity, "type", type);
    put_oid(&activity, "actor");
    BSON_APPEND_DATE_TIME(&activity, "at", 1600000000000 + (int64_t)index * 60000);
    BSON_APPEND_INT32(&activity, "weight", (int32_t)(next_random() % 100));
    bson_append_utf8(&activity, "content", -1, words, (int)(next_random() % (sizeof words - 1)));
    BSON_APPEND_BOOL(&activity, "seen", index % 3 == 0);
    bson_append_document_end(list, &activity);
}

static uint32_t length_of(void)
{
    double part = (double)(next_random() >> 11) / 9007199254740992.0;
    double length = pow(1 - part, -1.1);
    return length > 40000 ? 40000 : (uint32_t)length;
}

static void make_document(bson_t *document, int64_t number)
{
    bson_t inner;
    char name[32];
    uint32_t length = length_of();
    bson_init(document);
    put_oid(document, "_id");
    snprintf(name, sizeof name, "user-%08" PRId64, number);
    BSON_APPEND_UTF8(document, "name", name);
    BSON_APPEND_DOCUMENT_BEGIN(document, "profile", &inner);
    BSON_APPEND_UTF8(&inner, "city", "Zürich");
    BSON_APPEND_DATE_TIME(&inner, "since", 1500000000000 + number);
    BSON_APPEND_DOUBLE(&inner, "score", (double)number / 7);
    bson_append_document_end(document, &inner);
    BSON_APPEND_ARRAY_BEGIN(document, "activities", &inner);
    for (uint32_t i = 0; i < length; i++)
        put_activity(&inner, i);
    bson_append_array_end(document, &inner);
    BSON_APPEND_ARRAY_BEGIN(document, "tags", &inner);
    for (uint32_t i = 0; i < number % 6; i++)
        BSON_APPEND_UTF8(&inner, i % 2 ? "1" : "0", "a tag");
    bson_append_array_end(document, &inner);
    BSON_APPEND_INT64(document, "activityCount", length);
}

static void make_file(const char *path, int64_t bytes)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        measure_stop("%s cannot be made", path);
    for (int64_t number = 0, size = 0; size < bytes; number++) {
        bson_t document;
        make_document(&document, number);
        if (fwrite(bson_get_data(&document), 1, document.len, file) != document.len)
            measure_stop("%s cannot be written", path);
        size += document.len;
        bson_destroy(&document);
    }
    if (fclose(file) != 0)
        measure_stop("%s cannot be written", path);
}

/* Processor time of both sides, which depends less on the machine's other load. */
static double ours_cpu, other_cpu;
static int ours_count, other_count;

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ---- Spillway's side ------------------------------------------------------------------------- */

static void scan(void *context, int thread, int count)
{
    (void)thread;
    double began = cpu_seconds();
    for (int i = 0; i < count; i++) {
        spill_scan_options_t options;
        spill_scan_result_t result;
        spill_error_t error;
        spill_scan_options_init(&options);
        options.source = context;
        measure_check(spill_scan(&options, &result, &error), &error);
        if (result.problems_all > 0 || result.documents == 0)
            measure_stop("the scan found problems");
        spill_scan_release(&result);
    }
    ours_cpu += cpu_seconds() - began;
    ours_count += count;
}

/* ---- libbson --------------------------------------------------------------------------------- */

static bool visit_inner(const bson_iter_t *iter, const char *key, const bson_t *inner, void *data);

static const bson_visitor_t VISITOR = {.visit_document = visit_inner, .visit_array = visit_inner};

static bool visit_inner(const bson_iter_t *iter, const char *key, const bson_t *inner, void *data)
{
    bson_iter_t child;
    (void)iter;
    (void)key;
    ++*(int64_t *)data;
    return bson_iter_init(&child, inner) && bson_iter_visit_all(&child, &VISITOR, data);
}

static void visit(void *context, int thread, int count)
{
    (void)thread;
    double began = cpu_seconds();
    for (int i = 0; i < count; i++) {
        bson_error_t error;
        bson_reader_t *reader = bson_reader_new_from_file(context, &error);
        int64_t inner = 0;
        bson_iter_t iter;
        for (const bson_t *document; (document = bson_reader_read(reader, NULL)) != NULL;)
            if (!bson_iter_init(&iter, document) || bson_iter_visit_all(&iter, &VISITOR, &inner))
                measure_stop("libbson found damage");
        if (inner == 0)
            measure_stop("libbson found nothing");
        bson_reader_destroy(reader);
    }
    other_cpu += cpu_seconds() - began;
    other_count += count;
}

/* ---- a server -------------------------------------------------------------------------------- */

static mongoc_collection_t *feeds_of(mongoc_client_t *client, const mongoc_uri_t *uri)
{
    return mongoc_client_get_collection(client, mongoc_uri_get_database(uri), "feeds");
}

static void fill_server(mongoc_collection_t *feeds, int64_t bytes)
{
    bson_error_t error;
    int64_t size = 0;
    for (int64_t number = 0; size < bytes; number++) {
        bson_t document;
        make_document(&document, number);
        size += document.len;
        if (!mongoc_collection_insert_one(feeds, &document, NULL, NULL, &error))
            measure_stop("the collection cannot be filled: %s", error.message);
        bson_destroy(&document);
    }
}

static void read_cursor(void *context, int thread, int count)
{
    (void)thread;
    bson_t filter = BSON_INITIALIZER;
    for (int i = 0; i < count; i++) {
        mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(context, &filter, NULL, NULL);
        const bson_t *document;
        bson_error_t error;
        int64_t size = 0;
        while (mongoc_cursor_next(cursor, &document))
            size += document->len;
        if (mongoc_cursor_error(cursor, &error) || size == 0)
            measure_stop("the cursor ended with an error");
        mongoc_cursor_destroy(cursor);
    }
}

static int measure_server(char *text, int64_t megabytes, int rounds)
{
    mongoc_init();
    mongoc_uri_t *uri = mongoc_uri_new(text);
    mongoc_client_t *client = uri ? mongoc_client_new_from_uri(uri) : NULL;
    if (!client || !mongoc_uri_get_database(uri))
        measure_stop("%s names no database", text);
    mongoc_collection_t *feeds = feeds_of(client, uri);
    bson_t all = BSON_INITIALIZER;
    if (mongoc_collection_count_documents(feeds, &all, NULL, NULL, NULL, NULL) <= 0)
        fill_server(feeds, megabytes * 1000000);
    measure_report_t report = {0};
    measure_figure_t figure = {.name = "scan-server",
                               .what = "a collection: a scan, a cursor that looks at nothing",
                               .bar = 0.8,
                               .threads = 1,
                               .rounds = rounds,
                               .ours = {scan, text, 1},
                               .other = {read_cursor, feeds, 1}};
    measure_print_header();
    measure_figure(&report, &figure);
    mongoc_collection_destroy(feeds);
    mongoc_client_destroy(client);
    mongoc_uri_destroy(uri);
    return report.failed ? 1 : 0;
}

/* Read the file once, so that both sides then read from memory. */
static int64_t warm(const char *path)
{
    static char buffer[1 << 20];
    int64_t size = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t got; (got = read(file, buffer, sizeof buffer)) > 0;)
        size += got;
    close(file);
    return size;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4)
        measure_stop("usage: bench_scan FILE [MEGABYTES [ROUNDS]]");
    char *path = argv[1];
    bool server = strncmp(path, "mongodb", 7) == 0;
    int64_t megabytes = argc > 2 ? strtol(argv[2], NULL, 10) : server ? 64 : 1100;
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 5;
    if (server)
        return measure_server(path, megabytes, rounds);
    if (access(path, R_OK) != 0)
        make_file(path, megabytes * 1000000);
    int64_t size = warm(path);
    measure_report_t report = {0};
    measure_figure_t figure = {.name = "scan",
                               .what = "a .bson file: two threads of a scan, one of libbson",
                               .bar = 8,
                               .threads = 1,
                               .rounds = rounds,
                               .ours = {scan, path, 1},
                               .other = {visit, path, 1}};
    printf("%" PRId64 " bytes\n", size);
    measure_print_header();
    measure_figure(&report, &figure);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double ours_each = ours_cpu / ours_count, other_each = other_cpu / other_count;
    printf("processor time: ours %.2f s, libbson %.2f s; %.2f times ours on two processors\n",
           ours_each, other_each, 2 * other_each / ours_each);
    printf("most memory: %ld KB\n", usage.ru_maxrss);
    return report.failed ? 1 : 0;
}
