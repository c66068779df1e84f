/*
 * `spillway migrate` on a server: how fast it is, and what a client feels meanwhile.
 *
 *   bench_migrate [--quick] [--only speed|latency] [--owners N] [--threads N] mongodb://HOST/
 *
 * speed     In each round documents of 10 000 elements of 200 bytes are inserted in bulk by
 *           libmongoc, as fast as the server takes them; then migrate lays the same documents out.
 *           So both sides have the same bytes, and the ratio of their times is what a migration
 *           costs against nothing but writing the data once.
 * latency   A client that knows nothing of Spillway updates small documents in the same database at
 *           a fixed rate, in a process of its own: alone, beside a migration, and beside one with
 *           --max-latency. Its times are taken from when a request was due, so that one that waits
 *           behind a slow one counts as slow.
 */
#include "measure.h"

#include "core/array.h"
#include "tools/migrate.h"
#include "tools/throttle.h"

#include <mongoc/mongoc.h>
#include <spillway/spillway.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LENGTH = 10000, SAMPLES_MAX = 200000, CLIENT_RATE = 50, CLIENT_OWNERS = 50 };

typedef struct bench {
    measure_report_t report;
    const char *server;
    char *uri; /* with a database of this run */
    char *database;
    bool quick;
    int owners;
    int threads;
    mongoc_client_t *client;
    spill_store_t *store;
} bench_t;

/* ---- documents ------------------------------------------------------------------------------- */

/* {_id: "owner N", name: ..., activities: [10 000 elements]} */
static bson_t *make_document(int number)
{
    bson_t *document = bson_new(), array, element;
    uint8_t bytes[ELEMENT_BYTES];
    char id[32];
    snprintf(id, sizeof id, "owner %d", number);
    BSON_APPEND_UTF8(document, "_id", id);
    BSON_APPEND_UTF8(document, "name", "Ada Lovelace");
    BSON_APPEND_ARRAY_BEGIN(document, "activities", &array);
    for (uint32_t i = 0; i < LENGTH; i++) {
        char buffer[16];
        const char *key;
        measure_element(bytes, (uint64_t)number * LENGTH + i);
        bson_init_static(&element, bytes, sizeof bytes);
        bson_uint32_to_string(i, &key, buffer, sizeof buffer);
        BSON_APPEND_DOCUMENT(&array, key, &element);
    }
    bson_append_array_end(document, &array);
    return document;
}

/* Insert the documents, made before, and tell how long that took. */
static double insert_in_bulk(bench_t *bench, const char *collection, int from)
{
    bson_t **documents = bson_malloc((size_t)bench->owners * sizeof *documents);
    bson_error_t error;
    for (int i = 0; i < bench->owners; i++)
        documents[i] = make_document(from + i);
    mongoc_collection_t *heads =
        mongoc_client_get_collection(bench->client, bench->database, collection);
    bson_t *opts = BCON_NEW("ordered", BCON_BOOL(false));
    double began = measure_now();
    if (!mongoc_collection_insert_many(heads, (const bson_t **)documents, (size_t)bench->owners,
                                       opts, NULL, &error))
        measure_stop("%s", error.message);
    double seconds = measure_now() - began;
    for (int i = 0; i < bench->owners; i++)
        bson_destroy(documents[i]);
    bson_free(documents);
    bson_destroy(opts);
    mongoc_collection_destroy(heads);
    return seconds;
}

static spill_array_t *open_array(bench_t *bench, const char *name)
{
    spill_definition_t definition;
    spill_error_t error;
    spill_array_t *array;
    measure_check(spill_definition_preset(&definition, "feed-recent", name, &error), &error);
    snprintf(definition.collection, SPILL_NAME_SIZE, "%s", name);
    snprintf(definition.page_collection, SPILL_NAME_SIZE, "%sPages", name);
    measure_check(spill_store_define(bench->store, &definition, &error), &error);
    measure_check(spill_array_open(bench->store, name, &array, &error), &error);
    return array;
}

static void drop_collection(bench_t *bench, const char *name)
{
    mongoc_collection_t *collection =
        mongoc_client_get_collection(bench->client, bench->database, name);
    mongoc_collection_drop(collection, NULL);
    mongoc_collection_destroy(collection);
}

static double migrate(const bench_t *bench, spill_array_t *array, spill_throttle_t *throttle,
                      spill_migrate_result_t *result)
{
    spill_migrate_options_t options = {.throttle = throttle, .threads = bench->threads};
    spill_error_t error;
    *result = (spill_migrate_result_t){0};
    double began = measure_now();
    measure_check(spill_migrate(array, &options, result, &error), &error);
    if (result->failed > 0)
        measure_stop("%lld owners were passed over", (long long)result->failed);
    return measure_now() - began;
}

/* ---- speed ----------------------------------------------------------------------------------- */

static void bench_speed(bench_t *bench)
{
    enum { ROUNDS = 7, QUICK_ROUNDS = 3 };
    int rounds = bench->quick ? QUICK_ROUNDS : ROUNDS;
    double bulk[ROUNDS], ours[ROUNDS], ratios[ROUNDS];
    int64_t calls = 0;
    for (int i = -1; i < rounds; i++) { /* round -1 warms up */
        char name[32];
        spill_migrate_result_t result;
        spill_counters_t before, after;
        snprintf(name, sizeof name, "speed%d", i + 1);
        double theirs = insert_in_bulk(bench, name, (i + 1) * bench->owners);
        spill_array_t *array = open_array(bench, name);
        spill_store_counters(bench->store, &before);
        double mine = migrate(bench, array, NULL, &result);
        spill_store_counters(bench->store, &after);
        if (result.plain != bench->owners)
            measure_stop("%lld arrays were taken over", (long long)result.plain);
        spill_array_close(array);
        calls = after.calls - before.calls;
        drop_collection(bench, name);
        snprintf(name, sizeof name, "speed%dPages", i + 1);
        drop_collection(bench, name);
        if (i < 0)
            continue;
        bulk[i] = theirs;
        ours[i] = mine;
        ratios[i] = theirs / mine;
    }
    double seconds = measure_median(ours, (size_t)rounds);
    double megabytes = (double)bench->owners * LENGTH * ELEMENT_BYTES / 1e6;
    double theirs = measure_median(bulk, (size_t)rounds);
    double ratio = measure_median(ratios, (size_t)rounds), owners = bench->owners * 60 / seconds;
    bool kept = ratio >= 0.5 && owners >= 50;
    printf("bulk insert      %8.1f MB/s\n", megabytes / theirs);
    printf("migrate          %8.1f MB/s, %.0f owners of %d elements a minute (bar 50), %.1f store "
           "operations an owner\n",
           megabytes / seconds, owners, LENGTH, (double)calls / bench->owners);
    printf("ratio            %8.2f (%.2f to %.2f), bar 0.50: %s\n", ratio, ratios[0],
           ratios[rounds - 1], kept ? "kept" : "MISSED");
    bench->report.failed = bench->report.failed || !kept;
}

/* ---- main ------------------------------------------------------------------------------------ */

static void open_bench(bench_t *bench)
{
    spill_error_t error;
    mongoc_init();
    bench->database = bson_strdup_printf("spillway_bench_%ld_%d", (long)time(NULL), (int)getpid());
    size_t length = strlen(bench->server);
    while (length > 0 && bench->server[length - 1] == '/')
        length--;
    bench->uri = bson_strdup_printf("%.*s/%s", (int)length, bench->server, bench->database);
    bench->client = mongoc_client_new(bench->uri);
    if (!bench->client)
        measure_stop("%s is no connection string", bench->uri);
    measure_check(spill_store_open(bench->uri, NULL, &bench->store, &error), &error);
}

static void close_bench(bench_t *bench)
{
    spill_store_close(bench->store, NULL);
    mongoc_database_t *database = mongoc_client_get_database(bench->client, bench->database);
    mongoc_database_drop(database, NULL);
    mongoc_database_destroy(database);
    mongoc_client_destroy(bench->client);
    bson_free(bench->uri);
    bson_free(bench->database);
}

int main(int argc, char **argv)
{
    bench_t bench = {.server = getenv("SPILLWAY_TEST_URI"), .owners = 20, .threads = 2};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            bench.quick = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            bench.report.only = argv[++i];
        else if (strcmp(argv[i], "--owners") == 0 && i + 1 < argc)
            bench.owners = atoi(argv[++i]);
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            bench.threads = atoi(argv[++i]);
        else if (strncmp(argv[i], "mongodb", strlen("mongodb")) == 0)
            bench.server = argv[i];
        else
            measure_stop("usage: bench_migrate [--quick] [--only speed|latency] [--owners N] "
                         "[--threads N] mongodb://HOST/");
    }
    if (!bench.server)
        measure_stop("name a server, or run this under tools/test-server");
    open_bench(&bench);
    if (measure_wanted(&bench.report, "speed"))
        bench_speed(&bench);
    close_bench(&bench);
    return bench.report.failed ? 1 : 0;
}
