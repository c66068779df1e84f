/*
 * The MongoDB store compared with the commands that an application would send itself, on one
 * server. Each figure is the median of the ratios of several rounds, in which the two sides take
 * turns.
 *
 *   bench_server [--quick] [--only NAME] mongodb://HOST/
 *
 * Heads and pages hold some tens of elements, because on the measured servers the cost of a push
 * grows with the document. docs/internals/benchmarks/server.md has the figures and the bars.
 */
#include "measure.h"

#include <mongoc/mongoc.h>
#include <spillway/spillway.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    THRESHOLD = 5,
    PAGE_CAPACITY = 20,
    HEAD_MEAN = THRESHOLD + PAGE_CAPACITY / 2,
    HOT_THRESHOLD = 50,
    HOT_CAPACITY = 200,
    PAGE = 20
};

typedef struct bench {
    measure_report_t report;
    const char *server;
    char *uri; /* with a new database for this run */
    bool quick;
    mongoc_client_pool_t *pool;
    char *database;
    spill_store_t *store;
} bench_t;

/* ---- Spillway's side ------------------------------------------------------------------------- */

typedef struct ours {
    spill_array_t *array;
    const char *owner;
} ours_t;

static ours_t ours_open(const bench_t *bench, const char *name, int64_t threshold, int64_t capacity)
{
    ours_t ours = {.owner = "ada"};
    spill_error_t error;
    spill_definition_t definition;
    measure_check(spill_definition_preset(&definition, "feed-recent", name, &error), &error);
    snprintf(definition.collection, SPILL_NAME_SIZE, "%s", name);
    snprintf(definition.page_collection, SPILL_NAME_SIZE, "%sPages", name);
    definition.bounds.threshold = threshold;
    definition.bounds.page_capacity = capacity;
    measure_check(spill_store_define(bench->store, &definition, &error), &error);
    measure_check(spill_array_open(bench->store, name, &ours.array, &error), &error);
    return ours;
}

static void ours_append(const ours_t *ours, uint64_t from, size_t count)
{
    enum { BATCH_MAX = 1000 };
    uint8_t *bytes = malloc(count * ELEMENT_BYTES);
    spill_value_t *elements = malloc(count * sizeof *elements);
    bson_t storage = BSON_INITIALIZER;
    spill_error_t error;
    spill_append_result_t result;
    if (!bytes || !elements || count > BATCH_MAX)
        measure_stop("no memory");
    for (size_t i = 0; i < count; i++) {
        measure_element(bytes + i * ELEMENT_BYTES, from + i);
        elements[i] = (spill_value_t){.data = bytes + i * ELEMENT_BYTES,
                                      .size_bytes = ELEMENT_BYTES,
                                      .type = BSON_TYPE_DOCUMENT};
    }
    spill_value_t owner = spill_value_from_utf8(&storage, ours->owner);
    measure_check(spill_array_append(ours->array, &owner, elements, count, NULL, &result, &error),
                  &error);
    bson_destroy(&storage);
    free(elements);
    free(bytes);
}

static void ours_appends(void *context, int thread, int count)
{
    (void)thread;
    for (int i = 0; i < count; i++)
        ours_append(context, (uint64_t)i, 1);
}

static void ours_fill(const ours_t *ours, int count)
{
    enum { BATCH = 500 };
    for (int done = 0; done < count; done += BATCH)
        ours_append(ours, (uint64_t)done, BATCH);
}

static void ours_newest_pages(void *context, int thread, int count)
{
    const ours_t *ours = context;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, ours->owner);
    spill_read_options_t options;
    spill_error_t error;
    (void)thread;
    spill_read_options_init(&options);
    options.limit = PAGE;
    for (int i = 0; i < count; i++) {
        spill_slice_t *slice;
        measure_check(spill_array_read(ours->array, &owner, &options, &slice, &error), &error);
        if (slice->count != PAGE)
            measure_stop("a page of %zu elements was read", slice->count);
        spill_slice_free(slice);
    }
    bson_destroy(&storage);
}

/* Appends of one client, each with an operation id. */
static void ours_appends_with_ids(void *context, int thread, int count)
{
    const ours_t *ours = context;
    static uint64_t number;
    uint8_t bytes[ELEMENT_BYTES];
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, ours->owner);
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    spill_op_t op = {.id = &number, .id_bytes = sizeof number};
    (void)thread;
    spill_append_options_init(&options);
    options.op = &op;
    measure_check(spill_array_op_base(ours->array, &owner, &op.base, &error), &error);
    for (int i = 0; i < count; i++) {
        measure_element(bytes, ++number);
        spill_value_t element = {
            .data = bytes, .size_bytes = sizeof bytes, .type = BSON_TYPE_DOCUMENT};
        measure_check(
            spill_array_append(ours->array, &owner, &element, 1, &options, &result, &error),
            &error);
        op.base = result.op_base;
    }
    bson_destroy(&storage);
}

/* ---- the application's own commands ---------------------------------------------------------- */

typedef struct plain {
    const bench_t *bench;
    const char *collection;
    int slice; /* $slice of each push; 0: none */
    bool page; /* finds read the newest page, not the owner's name */
} plain_t;

static void unmanaged_push(mongoc_collection_t *collection, const char *owner, int slice, int count)
{
    uint8_t bytes[ELEMENT_BYTES];
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(owner));
    bson_t update = BSON_INITIALIZER, push, array, each;
    bson_error_t error;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$push", &push);
    BSON_APPEND_DOCUMENT_BEGIN(&push, "activities", &array);
    BSON_APPEND_ARRAY_BEGIN(&array, "$each", &each);
    for (int i = 0; i < count; i++) {
        char buffer[16];
        const char *key;
        bson_t element;
        measure_element(bytes, (uint64_t)i);
        bson_init_static(&element, bytes, sizeof bytes);
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        BSON_APPEND_DOCUMENT(&each, key, &element);
    }
    bson_append_array_end(&array, &each);
    if (slice != 0)
        BSON_APPEND_INT32(&array, "$slice", slice);
    bson_append_document_end(&push, &array);
    bson_append_document_end(&update, &push);
    if (!mongoc_collection_update_one(collection, filter, &update, NULL, NULL, &error))
        measure_stop("%s", error.message);
    bson_destroy(filter);
    bson_destroy(&update);
}

static void unmanaged_pushes(void *context, int thread, int count)
{
    const plain_t *plain = context;
    (void)thread;
    mongoc_client_t *client = mongoc_client_pool_pop(plain->bench->pool);
    mongoc_collection_t *collection =
        mongoc_client_get_collection(client, plain->bench->database, plain->collection);
    for (int i = 0; i < count; i++)
        unmanaged_push(collection, "ada", plain->slice, 1);
    mongoc_collection_destroy(collection);
    mongoc_client_pool_push(plain->bench->pool, client);
}

/* A document with an array of `length` elements, and fields beside it. */
static plain_t unmanaged_open(const bench_t *bench, const char *name, int length, int slice)
{
    enum { BATCH = 500 };
    plain_t plain = {.bench = bench, .collection = name, .slice = slice};
    mongoc_client_t *client = mongoc_client_pool_pop(bench->pool);
    mongoc_collection_t *collection = mongoc_client_get_collection(client, bench->database, name);
    bson_t *document = BCON_NEW("_id", "ada", "name", "Ada Lovelace", "mail", "ada@example.org");
    bson_error_t error;
    if (!mongoc_collection_insert_one(collection, document, NULL, NULL, &error))
        measure_stop("%s", error.message);
    for (int done = 0; done < length; done += BATCH)
        unmanaged_push(collection, "ada", 0, length - done < BATCH ? length - done : BATCH);
    bson_destroy(document);
    mongoc_collection_destroy(collection);
    mongoc_client_pool_push(bench->pool, client);
    return plain;
}

/* Read the owner's name, or the newest page. */
static void unmanaged_finds(void *context, int thread, int count)
{
    const plain_t *plain = context;
    (void)thread;
    mongoc_client_t *client = mongoc_client_pool_pop(plain->bench->pool);
    mongoc_collection_t *collection =
        mongoc_client_get_collection(client, plain->bench->database, plain->collection);
    bson_t *filter = BCON_NEW("_id", "ada");
    bson_t *fields = plain->page ? BCON_NEW("activities", "{", "$slice", BCON_INT32(-PAGE), "}")
                                 : BCON_NEW("name", BCON_INT32(1));
    bson_t *opts = BCON_NEW("projection", BCON_DOCUMENT(fields), "limit", BCON_INT64(1),
                            "singleBatch", BCON_BOOL(true));
    for (int i = 0; i < count; i++) {
        mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(collection, filter, opts, NULL);
        const bson_t *document;
        if (!mongoc_cursor_next(cursor, &document) ||
            !bson_has_field(document, plain->page ? "activities" : "name"))
            measure_stop("nothing was read");
        mongoc_cursor_destroy(cursor);
    }
    bson_destroy(filter);
    bson_destroy(fields);
    bson_destroy(opts);
    mongoc_collection_destroy(collection);
    mongoc_client_pool_push(plain->bench->pool, client);
}

/* ---- figures --------------------------------------------------------------------------------- */

/* Spillway's appends at the full length, against pushes to arrays of several lengths. */
static void bench_length(bench_t *bench)
{
    int length = measure_count(bench->quick ? 50000 : 1000000, 100);
    bool filled = false;
    ours_t ours = ours_open(bench, "long", THRESHOLD, PAGE_CAPACITY);
    measure_side_t append = {ours_appends, &ours, 25 * PAGE_CAPACITY}; /* 25 spills */
    static const struct {
        const char *name;
        const char *what;
        int length;
        int slice; /* keeps the array at that length; 0: it grows */
        double bar;
    } others[] = {
        {"long-empty", "append at the full length / $push to an array of at most 5", 5, -5, 1.25},
        {"long-head", "the same / $push to an array as long as the head is on average", HEAD_MEAN,
         -HEAD_MEAN, 0},
        {"push-10000", "times faster than $push to an array of 10 000", 10000, 0, 30},
        {"push-20000", "times faster than $push to an array of 20 000", 20000, 0, 60},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (!measure_wanted(&bench->report, others[i].name))
            continue;
        if (!filled)
            ours_fill(&ours, length);
        filled = true;
        bool keeps = others[i].slice != 0;
        plain_t plain = unmanaged_open(bench, others[i].name, others[i].length, others[i].slice);
        measure_figure_t figure = {.name = others[i].name,
                                   .what = others[i].what,
                                   .bar = others[i].bar,
                                   .at_most = keeps,
                                   .threads = 1,
                                   .rounds = bench->quick ? 3 : 9,
                                   .ours = append,
                                   .other = {unmanaged_pushes, &plain, keeps ? append.count : 15}};
        measure_figure(&bench->report, &figure);
    }
    spill_array_close(ours.array);
}

static void bench_hot(bench_t *bench)
{
    if (!measure_wanted(&bench->report, "hot"))
        return;
    ours_t ours = ours_open(bench, "hot", HOT_THRESHOLD, HOT_CAPACITY);
    plain_t plain = unmanaged_open(bench, "hotPlain", 50, -50);
    measure_figure_t figure = {
        .name = "hot",
        .what = "times the appends/s of $push with $slice: -50, 32 threads, one owner",
        .bar = 6,
        .threads = 32,
        .rounds = bench->quick ? 3 : 9,
        .ours = {ours_appends, &ours, 200},
        .other = {unmanaged_pushes, &plain, 50}};
    measure_figure(&bench->report, &figure);
    spill_array_close(ours.array);
}

static void bench_fields(bench_t *bench)
{
    if (!measure_wanted(&bench->report, "fields"))
        return;
    plain_t without = unmanaged_open(bench, "fieldsPlain", 0, 0);
    plain_t with = unmanaged_open(bench, "fields", 0, 0);
    ours_t ours = ours_open(bench, "fields", THRESHOLD, PAGE_CAPACITY);
    ours_fill(&ours, measure_count(10000, 100));
    measure_figure_t figure = {.name = "fields",
                               .what =
                                   "reading the owner's name / from a document without the array",
                               .bar = 1.15,
                               .at_most = true,
                               .threads = 1,
                               .rounds = bench->quick ? 5 : 25,
                               .ours = {unmanaged_finds, &with, 200},
                               .other = {unmanaged_finds, &without, 200}};
    measure_figure(&bench->report, &figure);
    spill_array_close(ours.array);
}

/* Newest pages: of a long array, and of an array as long as the head is on average. */
static void bench_newest(bench_t *bench)
{
    if (!measure_wanted(&bench->report, "newest-page"))
        return;
    enum { LENGTH = HOT_THRESHOLD + HOT_CAPACITY / 2 };
    ours_t ours = ours_open(bench, "newest", HOT_THRESHOLD, HOT_CAPACITY);
    ours_fill(&ours, measure_count(10, 1) * HOT_CAPACITY + HOT_CAPACITY / 2);
    plain_t plain = unmanaged_open(bench, "newestPlain", LENGTH, 0);
    plain.page = true;
    measure_figure_t figure = {
        .name = "newest-page",
        .what = "newest page of 20 / a find with $slice of an array as long as the head",
        .bar = 1.05,
        .at_most = true,
        .threads = 1,
        .rounds = bench->quick ? 5 : 25,
        .ours = {ours_newest_pages, &ours, 200},
        .other = {unmanaged_finds, &plain, 200}};
    measure_figure(&bench->report, &figure);
    spill_array_close(ours.array);
}

/* Appends with operation ids, compared with appends without. */
static void bench_ids(bench_t *bench)
{
    if (!measure_wanted(&bench->report, "append-id"))
        return;
    ours_t with = ours_open(bench, "ids", THRESHOLD, PAGE_CAPACITY);
    ours_t without = ours_open(bench, "idsPlain", THRESHOLD, PAGE_CAPACITY);
    measure_figure_t figure = {.name = "append-id",
                               .what = "append with an operation id / without",
                               .bar = 1.11,
                               .at_most = true,
                               .threads = 1,
                               .rounds = bench->quick ? 3 : 9,
                               .ours = {ours_appends_with_ids, &with, 10 * PAGE_CAPACITY},
                               .other = {ours_appends, &without, 10 * PAGE_CAPACITY}};
    measure_figure(&bench->report, &figure);
    spill_array_close(with.array);
    spill_array_close(without.array);
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* Adds of ids that the set does not have. */
typedef struct set {
    const bench_t *bench;
    const char *collection;
    spill_array_t *array; /* Spillway's side */
    int next;
} set_t;

static spill_value_t id_value(const int64_t *id)
{
    return (spill_value_t){
        .data = (const uint8_t *)id, .size_bytes = sizeof *id, .type = BSON_TYPE_INT64};
}

static void set_add(set_t *set, int count)
{
    enum { MOST = 500 };
    int64_t ids[MOST];
    spill_value_t elements[MOST];
    spill_append_result_t result;
    spill_error_t error;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    for (int i = 0; i < count; i++) {
        ids[i] = set->next++;
        elements[i] = id_value(&ids[i]);
    }
    measure_check(
        spill_array_append(set->array, &owner, elements, (size_t)count, NULL, &result, &error),
        &error);
    if (result.duplicates > 0)
        measure_stop("%lld ids were there", (long long)result.duplicates);
    bson_destroy(&storage);
}

static void set_adds(void *context, int thread, int count)
{
    (void)thread;
    for (int i = 0; i < count; i++)
        set_add(context, 1);
}

/* $addToSet with $each, as many ids at once. */
static void plain_set_add(set_t *set, mongoc_collection_t *collection, int count)
{
    bson_t *filter = BCON_NEW("_id", "ada");
    bson_t update = BSON_INITIALIZER, add, array, each;
    bson_error_t error;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$addToSet", &add);
    BSON_APPEND_DOCUMENT_BEGIN(&add, "followers", &array);
    BSON_APPEND_ARRAY_BEGIN(&array, "$each", &each);
    for (int i = 0; i < count; i++) {
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        BSON_APPEND_INT64(&each, key, set->next++);
    }
    bson_append_array_end(&array, &each);
    bson_append_document_end(&add, &array);
    bson_append_document_end(&update, &add);
    if (!mongoc_collection_update_one(collection, filter, &update, NULL, NULL, &error))
        measure_stop("%s", error.message);
    bson_destroy(filter);
    bson_destroy(&update);
}

static void plain_set_adds(void *context, int thread, int count)
{
    set_t *set = context;
    (void)thread;
    mongoc_client_t *client = mongoc_client_pool_pop(set->bench->pool);
    mongoc_collection_t *collection =
        mongoc_client_get_collection(client, set->bench->database, set->collection);
    for (int i = 0; i < count; i++)
        plain_set_add(set, collection, 1);
    mongoc_collection_destroy(collection);
    mongoc_client_pool_push(set->bench->pool, client);
}

static void plain_set_fill(set_t *set, int length)
{
    mongoc_client_t *client = mongoc_client_pool_pop(set->bench->pool);
    mongoc_collection_t *collection =
        mongoc_client_get_collection(client, set->bench->database, set->collection);
    bson_t *document = BCON_NEW("_id", "ada", "followers", "[", "]");
    bson_t list = BSON_INITIALIZER;
    bson_error_t error;
    bson_t update = BSON_INITIALIZER, fields;
    for (int i = 0; i < length; i++) {
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        BSON_APPEND_INT64(&list, key, set->next++);
    }
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &fields);
    BSON_APPEND_ARRAY(&fields, "followers", &list);
    bson_append_document_end(&update, &fields);
    if (!mongoc_collection_insert_one(collection, document, NULL, NULL, &error) ||
        !mongoc_collection_update_one(collection, document, &update, NULL, NULL, &error))
        measure_stop("%s", error.message);
    bson_destroy(document);
    bson_destroy(&list);
    bson_destroy(&update);
    mongoc_collection_destroy(collection);
    mongoc_client_pool_push(set->bench->pool, client);
}

/* Adds to a set of 64 000 ids, and $addToSet on one document with as many. */
static void bench_set(bench_t *bench)
{
    if (!measure_wanted(&bench->report, "set"))
        return;
    int length = measure_count(bench->quick ? 8000 : 64000, 200);
    spill_error_t error;
    spill_definition_t definition;
    set_t ours = {.bench = bench}, plain = {.bench = bench, .collection = "setPlain"};
    measure_check(spill_definition_preset(&definition, "feed-recent", "set", &error), &error);
    strcpy(definition.collection, "set");
    strcpy(definition.page_collection, "setPages");
    strcpy(definition.id_field, ".");
    definition.unique = true;
    definition.bounds.threshold = HOT_THRESHOLD;
    definition.bounds.page_capacity = HOT_CAPACITY;
    measure_check(spill_store_define(bench->store, &definition, &error), &error);
    measure_check(spill_array_open(bench->store, "set", &ours.array, &error), &error);
    while (ours.next < length)
        set_add(&ours, HOT_CAPACITY / 2);
    plain_set_fill(&plain, length);
    measure_figure_t figure = {.name = "set",
                               .what = "times the adds/s of $addToSet on one document, 64 000 ids",
                               .bar = 10,
                               .threads = 1,
                               .rounds = bench->quick ? 3 : 9,
                               .ours = {set_adds, &ours, 5 * HOT_CAPACITY},
                               .other = {plain_set_adds, &plain, 20}};
    measure_figure(&bench->report, &figure);
    spill_array_close(ours.array);
}

/* ---- main ------------------------------------------------------------------------------------ */

static void open_bench(bench_t *bench)
{
    spill_error_t error;
    bson_error_t cause;
    mongoc_init();
    bench->database = bson_strdup_printf("spillway_bench_%ld_%d", (long)time(NULL), (int)getpid());
    size_t length = strlen(bench->server);
    while (length > 0 && bench->server[length - 1] == '/')
        length--;
    bench->uri = bson_strdup_printf("%.*s/%s", (int)length, bench->server, bench->database);
    mongoc_uri_t *uri = mongoc_uri_new_with_error(bench->uri, &cause);
    if (!uri)
        measure_stop("%s", cause.message);
    bench->pool = mongoc_client_pool_new(uri);
    mongoc_uri_destroy(uri);
    measure_check(spill_store_open(bench->uri, NULL, &bench->store, &error), &error);
}

static void close_bench(bench_t *bench)
{
    spill_store_close(bench->store, NULL);
    mongoc_client_t *client = mongoc_client_pool_pop(bench->pool);
    mongoc_database_t *database = mongoc_client_get_database(client, bench->database);
    mongoc_database_drop(database, NULL);
    mongoc_database_destroy(database);
    mongoc_client_pool_push(bench->pool, client);
    mongoc_client_pool_destroy(bench->pool);
    bson_free(bench->uri);
    bson_free(bench->database);
}

int main(int argc, char **argv)
{
    bench_t bench = {.server = getenv("SPILLWAY_TEST_URI")};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            bench.quick = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            bench.report.only = argv[++i];
        else if (strncmp(argv[i], "mongodb", strlen("mongodb")) == 0)
            bench.server = argv[i];
        else
            measure_stop("usage: bench_server [--quick] [--only NAME] mongodb://HOST/");
    }
    if (!bench.server)
        measure_stop("name a server, or run this under tools/test-server");
    open_bench(&bench);
    measure_print_header();
    bench_length(&bench);
    bench_hot(&bench);
    bench_fields(&bench);
    bench_newest(&bench);
    bench_ids(&bench);
    bench_set(&bench);
    close_bench(&bench);
    return bench.report.failed ? 1 : 0;
}
