/*
 * `spillway migrate` on a server: its speed, and its effect on another client's latency.
 *
 *   bench_migrate [--quick] [--only speed|staged|latency] [--owners N] [--length N] [--threads N]
 *                 [--home DIR/spillway-test-server] mongodb://HOST/
 *
 * speed     Each round inserts documents of 10 000 (or N) elements of 200 bytes with libmongoc's
 *           bulk inserts, and then migrates the same documents. Both sides have the same bytes. The
 *           ratio of their times is the cost of a migration relative to writing the data once.
 *           Then the migration is undone; that is compared with the migration.
 * staged    Each round migrates such documents to layout reference, then subset, in two stages. The
 *           second stage is compared with a bulk insert of the documents of the elements. With
 *           --home also by the processor time for an element: of this program, and of the server.
 * latency   A client without Spillway updates small documents in the same database at a fixed rate,
 *           in a separate process: alone, during a migration, and during one with --max-latency. A
 *           request's time starts when it is due, so that a request that waits behind a slow one
 *           counts as slow too.
 */
#include "measure.h"
#include "on_server.h"
#include "server_processor.h"

#include "core/array.h"
#include "store/store.h"
#include "tools/migrate/migrate.h"
#include "tools/migrate/planned.h"
#include "tools/migrate/staged.h"
#include "tools/throttle.h"

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
    const char *home; /* of the server; NULL: its processor time is not measured */
    on_server_t on;
    bool quick;
    int owners;
    int length; /* elements of an owner */
    int threads;
    spill_store_t *store;
} bench_t;

/* ---- documents ------------------------------------------------------------------------------- */

/* {_id: "owner N", name: ..., activities: [LENGTH elements]} */
static bson_t *make_document(const bench_t *bench, int number)
{
    bson_t *document = bson_new(), array, element;
    uint8_t bytes[ELEMENT_BYTES];
    char id[32];
    snprintf(id, sizeof id, "owner %d", number);
    BSON_APPEND_UTF8(document, "_id", id);
    BSON_APPEND_UTF8(document, "name", "Ada Lovelace");
    BSON_APPEND_ARRAY_BEGIN(document, "activities", &array);
    for (uint32_t i = 0; i < (uint32_t)bench->length; i++) {
        char buffer[16];
        const char *key;
        measure_element(bytes, (uint64_t)number * (uint64_t)bench->length + i);
        bson_init_static(&element, bytes, sizeof bytes);
        bson_uint32_to_string(i, &key, buffer, sizeof buffer);
        BSON_APPEND_DOCUMENT(&array, key, &element);
    }
    bson_append_array_end(document, &array);
    return document;
}

/* Insert the documents, which exist in memory, and return the seconds that it took. */
static double insert_in_bulk(bench_t *bench, const char *collection, int from)
{
    bson_t **documents = bson_malloc((size_t)bench->owners * sizeof(bson_t *));
    for (int i = 0; i < bench->owners; i++)
        documents[i] = make_document(bench, from + i);
    double seconds = on_server_insert(&bench->on, collection, documents, (size_t)bench->owners);
    for (int i = 0; i < bench->owners; i++)
        bson_destroy(documents[i]);
    bson_free(documents);
    return seconds;
}

static spill_array_t *open_array(bench_t *bench, const char *name)
{
    spill_definition_t definition;
    spill_error_t error;
    spill_array_t *array;
    measure_check(spill_definition_preset(&definition, "feed-recent", name, &error), &error);
    definition.bounds.threshold = definition.bounds.page_capacity = bench->length / 10;
    snprintf(definition.collection, SPILL_NAME_SIZE, "%s", name);
    snprintf(definition.page_collection, SPILL_NAME_SIZE, "%sPages", name);
    measure_check(spill_store_define(bench->store, &definition, &error), &error);
    measure_check(spill_array_open(bench->store, name, &array, &error), &error);
    return array;
}

static double migrate(const bench_t *bench, spill_array_t *array, spill_throttle_t *throttle,
                      spill_migrate_result_t *result)
{
    /* The same options as the program's. */
    spill_migrate_options_t options = {.throttle = throttle,
                                       .threads = throttle ? 1 : bench->threads};
    spill_error_t error;
    *result = (spill_migrate_result_t){0};
    double began = measure_now();
    measure_check(spill_migrate(array, &options, result, &error), &error);
    if (result->failed > 0)
        measure_stop("%lld owners failed", (long long)result->failed);
    return measure_now() - began;
}

/* Undo it with the same options. */
static double undo(const bench_t *bench, spill_array_t *array)
{
    spill_migrate_options_t options = {.threads = bench->threads};
    spill_migrate_result_t result = {0};
    spill_error_t error;
    double began = measure_now();
    measure_check(spill_migrate_undo(array, &options, &result, &error), &error);
    if (result.failed > 0 || result.owners != bench->owners)
        measure_stop("%lld owners were undone", (long long)result.owners);
    return measure_now() - began;
}

/* ---- speed ----------------------------------------------------------------------------------- */

static void bench_speed(bench_t *bench)
{
    enum { ROUNDS = 7, QUICK_ROUNDS = 3 };
    int rounds = measure_count(bench->quick ? QUICK_ROUNDS : ROUNDS, 1);
    double bulk[ROUNDS], ours[ROUNDS], ratios[ROUNDS], undone[ROUNDS], undo_ratios[ROUNDS];
    int64_t calls = 0, undo_calls = 0;
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
        if (result.unmanaged != bench->owners)
            measure_stop("%lld arrays were adopted", (long long)result.unmanaged);
        calls = after.calls - before.calls;
        spill_store_counters(bench->store, &before);
        double back = undo(bench, array);
        spill_store_counters(bench->store, &after);
        undo_calls = after.calls - before.calls;
        spill_array_close(array);
        on_server_drop(&bench->on, name);
        snprintf(name, sizeof name, "speed%dPages", i + 1);
        on_server_drop(&bench->on, name);
        if (i < 0)
            continue;
        bulk[i] = theirs;
        ours[i] = mine;
        ratios[i] = theirs / mine;
        undone[i] = back;
        undo_ratios[i] = mine / back;
    }
    double seconds = measure_median(ours, (size_t)rounds);
    double megabytes = (double)bench->owners * bench->length * ELEMENT_BYTES / 1e6;
    double theirs = measure_median(bulk, (size_t)rounds);
    double ratio = measure_median(ratios, (size_t)rounds), owners = bench->owners * 60 / seconds;
    bool kept = ratio >= 0.5 && owners * bench->length / LENGTH >= 50;
    printf("bulk insert      %8.1f MB/s\n", megabytes / theirs);
    printf("migrate          %8.1f MB/s, %.0f owners of %d elements a minute (bar 50), %.1f store "
           "operations an owner\n",
           megabytes / seconds, owners, bench->length, (double)calls / bench->owners);
    printf("ratio            %8.2f (%.2f to %.2f), bar 0.50: %s\n", ratio, ratios[0],
           ratios[rounds - 1], kept ? "kept" : "MISSED");
    double undo_ratio = measure_median(undo_ratios, (size_t)rounds);
    bool undo_kept = undo_ratio >= 0.7;
    printf("undo             %8.1f MB/s, %.1f store operations an owner\n",
           megabytes / measure_median(undone, (size_t)rounds), (double)undo_calls / bench->owners);
    printf("undo / migrate   %8.2f (%.2f to %.2f), bar 0.70: %s\n", undo_ratio, undo_ratios[0],
           undo_ratios[rounds - 1], undo_kept ? "kept" : "MISSED");
    bench->report.failed = bench->report.failed || !kept || !undo_kept;
}

/* ---- staged ---------------------------------------------------------------------------------- */

/* What some work has taken, in seconds: the time, and the processor time of those involved. */
typedef struct cost {
    double elapsed, client, proxy, database;
} cost_t;

/* The moment. */
static cost_t cost_now(const bench_t *bench)
{
    struct timespec spent;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return (cost_t){.elapsed = measure_now(),
                    .client = (double)spent.tv_sec + (double)spent.tv_nsec / 1e9,
                    .proxy = server_processor(bench->home, "ferretdb"),
                    .database = server_processor(bench->home, "postgresql")};
}

/* The cost since that moment. */
static cost_t cost_since(const bench_t *bench, const cost_t *began)
{
    cost_t now = cost_now(bench);
    return (cost_t){now.elapsed - began->elapsed, now.client - began->client,
                    now.proxy - began->proxy, now.database - began->database};
}

static void add_cost(cost_t *sum, const cost_t *cost)
{
    sum->elapsed += cost->elapsed;
    sum->client += cost->client;
    sum->proxy += cost->proxy;
    sum->database += cost->database;
}

/* Print the processor time for an element, in microseconds. */
static void print_cost(const bench_t *bench, const char *name, const cost_t *cost, double elements)
{
    double all = cost->client + cost->proxy + cost->database;
    if (bench->home)
        printf("  %-12s %6.1f us: program %.1f, FerretDB %.1f, PostgreSQL %.1f\n", name,
               all * 1e6 / elements, cost->client * 1e6 / elements, cost->proxy * 1e6 / elements,
               cost->database * 1e6 / elements);
}

/* The original arrays in `staged`, and a definition with a document for each element. */
static spill_planned_t plan_staged(const char *preset)
{
    spill_planned_t planned;
    spill_definition_t definition;
    spill_error_t error;
    measure_check(spill_definition_preset(&definition, preset, "staged", &error), &error);
    snprintf(definition.collection, SPILL_NAME_SIZE, "stagedHeads");
    snprintf(definition.page_collection, SPILL_NAME_SIZE, "stagedElements");
    snprintf(definition.sort_field, SPILL_NAME_SIZE, "%s",
             definition.layout == SPILL_LAYOUT_SUBSET ? "at" : "");
    spill_planned_init(&planned, &definition, "staged", "activities");
    return planned;
}

/* What a bulk insert of all documents of the collection takes. */
static cost_t insert_again(bench_t *bench, const char *collection, int64_t count)
{
    mongoc_collection_t *from =
        mongoc_client_get_collection(bench->on.client, bench->on.database, collection);
    bson_t all = BSON_INITIALIZER;
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(from, &all, NULL, NULL);
    bson_t **documents = bson_malloc((size_t)count * sizeof(bson_t *));
    const bson_t *document;
    int64_t found = 0;
    while (mongoc_cursor_next(cursor, &document) && found < count)
        documents[found++] = bson_copy(document);
    mongoc_cursor_destroy(cursor);
    mongoc_collection_destroy(from);
    if (found != count)
        measure_stop("%lld of %lld documents were copied", (long long)found, (long long)count);
    cost_t began = cost_now(bench);
    on_server_insert(&bench->on, "again", documents, (size_t)count);
    cost_t cost = cost_since(bench, &began);
    on_server_drop(&bench->on, "again");
    for (int64_t i = 0; i < count; i++)
        bson_destroy(documents[i]);
    bson_free(documents);
    return cost;
}

/* Migrate in two stages, and return the cost of the second one. */
static cost_t stage(bench_t *bench, const spill_planned_t *planned, int64_t *calls)
{
    spill_staged_t staged = {.store = bench->store, .uri = bench->on.uri, .planned = planned};
    spill_migrate_options_t options = {.threads = bench->threads};
    spill_migrate_result_t reshaped = {0};
    spill_catch_up_result_t result = {0};
    spill_counters_t before, after;
    spill_array_t *array;
    spill_error_t error;
    measure_check(spill_staged_begin(&staged, &error), &error);
    measure_check(spill_array_open(bench->store, planned->original.name, &array, &error), &error);
    measure_check(spill_migrate(array, &options, &reshaped, &error), &error);
    spill_store_counters(bench->store, &before);
    cost_t began = cost_now(bench);
    measure_check(spill_catch_up(bench->store, planned->original.name, planned->definition.name,
                                 &options, &result, &error),
                  &error);
    cost_t cost = cost_since(bench, &began);
    spill_store_counters(bench->store, &after);
    *calls = after.calls - before.calls;
    if (result.failed > 0 || result.copied.elements != (int64_t)bench->owners * bench->length)
        measure_stop("%lld owners failed, and %lld elements were copied", (long long)result.failed,
                     (long long)result.copied.elements);
    spill_array_close(array);
    return cost;
}

/* Drop everything. An undo would delete one element after another. */
static void end_stage(bench_t *bench)
{
    spill_error_t error;
    measure_check(spill_store_close(bench->store, &error), &error);
    on_server_empty(&bench->on);
    measure_check(spill_store_open(bench->on.uri, NULL, &bench->store, &error), &error);
}

static void bench_staged(bench_t *bench, const char *name, const char *preset)
{
    enum { ROUNDS = 5, QUICK_ROUNDS = 2 };
    int rounds = measure_count(bench->quick ? QUICK_ROUNDS : ROUNDS, 1);
    double ratios[ROUNDS], ours[ROUNDS];
    int64_t calls = 0, elements = (int64_t)bench->owners * bench->length;
    cost_t all_ours = {0}, all_theirs = {0};
    spill_planned_t planned = plan_staged(preset);
    for (int i = -1; i < rounds; i++) { /* round -1 warms up */
        insert_in_bulk(bench, "staged", 0);
        cost_t mine = stage(bench, &planned, &calls);
        cost_t theirs = insert_again(bench, "stagedElements", elements);
        end_stage(bench);
        if (i < 0)
            continue;
        ours[i] = mine.elapsed;
        ratios[i] = theirs.elapsed / mine.elapsed;
        add_cost(&all_ours, &mine);
        add_cost(&all_theirs, &theirs);
    }
    double ratio = measure_median(ratios, (size_t)rounds);
    bool kept = ratio >= 0.3;
    printf("to %-12s  %8.0f elements/s, %.1f store operations an owner\n", name,
           (double)elements / measure_median(ours, (size_t)rounds), (double)calls / bench->owners);
    printf("of a bulk insert %8.2f (%.2f to %.2f), bar 0.30: %s\n", ratio, ratios[0],
           ratios[rounds - 1], kept ? "kept" : "MISSED");
    print_cost(bench, "stage 2", &all_ours, (double)(elements * rounds));
    print_cost(bench, "bulk insert", &all_theirs, (double)(elements * rounds));
    bench->report.failed = bench->report.failed || !kept;
}

/* ---- latency --------------------------------------------------------------------------------- */

/* Memory shared by the client and its parent. */
typedef struct samples {
    volatile sig_atomic_t stop;
    size_t count;
    double seconds[SAMPLES_MAX];
} samples_t;

static void sleep_until(double moment)
{
    double left = moment - measure_now();
    if (left > 0)
        usleep((useconds_t)(left * 1e6));
}

static void update_one(mongoc_collection_t *collection, size_t number)
{
    bson_error_t error;
    bson_t *filter = BCON_NEW("_id", BCON_INT32((int32_t)(number % CLIENT_OWNERS)));
    bson_t *update =
        BCON_NEW("$push", "{", "events", "{", "$each", "[", BCON_INT64((int64_t)number), "]",
                 "$slice", BCON_INT32(-20), "}", "}");
    bson_t *opts = BCON_NEW("upsert", BCON_BOOL(true));
    if (!mongoc_collection_update_one(collection, filter, update, opts, NULL, &error))
        measure_stop("%s", error.message);
    bson_destroy(filter);
    bson_destroy(update);
    bson_destroy(opts);
}

/* The client's process: CLIENT_RATE updates a second, however long each takes. */
static void run_client(const bench_t *bench, samples_t *samples)
{
    mongoc_client_t *client = mongoc_client_new(bench->on.uri);
    mongoc_collection_t *collection =
        mongoc_client_get_collection(client, bench->on.database, "client");
    for (size_t i = 0; i < CLIENT_OWNERS; i++)
        update_one(collection, i);
    double began = measure_now();
    for (size_t i = 0; !samples->stop && i < SAMPLES_MAX; i++) {
        double due = began + (double)i / CLIENT_RATE;
        sleep_until(due);
        update_one(collection, i);
        samples->seconds[i] = measure_now() - due;
        samples->count = i + 1;
    }
    _exit(EXIT_SUCCESS);
}

static pid_t start_client(const bench_t *bench, samples_t *samples)
{
    samples->stop = 0;
    samples->count = 0;
    fflush(stdout);
    pid_t client = fork();
    if (client < 0)
        measure_stop("cannot start a process");
    if (client == 0)
        run_client(bench, samples);
    while (samples->count == 0)
        usleep(1000);
    return client;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* End the client and return the 99th percentile of its times, in milliseconds. */
static double end_client(pid_t client, samples_t *samples)
{
    int status;
    samples->stop = 1;
    if (waitpid(client, &status, 0) != client || status != 0)
        measure_stop("the client has failed");
    qsort(samples->seconds, samples->count, sizeof *samples->seconds, compare);
    return samples->seconds[samples->count * 99 / 100] * 1e3;
}

typedef struct paced {
    const bench_t *bench;
    spill_probe_t probe;
} paced_t;

static bool read_little(void *context)
{
    const paced_t *paced = context;
    bson_t *nothing = NULL;
    spill_error_t error;
    spill_store_t *store = paced->bench->store;
    measure_check(
        store->ops->catalog_get(store, SPILL_CATALOG_DEFINITION, "probe:latency", &nothing, &error),
        &error);
    return true;
}

static double latency_s(void *context)
{
    paced_t *paced = context;
    return spill_probe_latency(&paced->probe);
}

/* The client's p99 during a migration. `latency_ms` is the value of --max-latency; 0: without. */
static double beside_migration(bench_t *bench, samples_t *samples, int number, double latency_ms,
                               double *owners_a_second)
{
    char name[32];
    paced_t paced = {.bench = bench};
    spill_throttle_options_t options = {
        .latency_max_s = latency_ms / 1e3, .latency = latency_s, .context = &paced};
    spill_throttle_t throttle;
    spill_migrate_result_t result;
    spill_error_t error;
    snprintf(name, sizeof name, "latency%d", number);
    insert_in_bulk(bench, name, number * bench->owners);
    spill_array_t *array = open_array(bench, name);
    spill_throttle_init(&throttle, &options);
    if (latency_ms > 0)
        measure_check(spill_probe_start(&paced.probe, read_little, &paced, &error), &error);
    pid_t client = start_client(bench, samples);
    double seconds = migrate(bench, array, latency_ms > 0 ? &throttle : NULL, &result);
    double p99_ms = end_client(client, samples);
    spill_probe_stop(&paced.probe);
    spill_array_close(array);
    on_server_drop(&bench->on, name);
    snprintf(name, sizeof name, "latency%dPages", number);
    on_server_drop(&bench->on, name);
    *owners_a_second = bench->owners / seconds;
    return p99_ms;
}

static void bench_latency(bench_t *bench)
{
    enum { ROUNDS = 5, QUICK_ROUNDS = 2, ALONE_S = 10 };
    int rounds = measure_count(bench->quick ? QUICK_ROUNDS : ROUNDS, 1);
    double alone[ROUNDS], free[ROUNDS], held[ROUNDS], shares[ROUNDS];
    double free_ratios[ROUNDS], held_ratios[ROUNDS];
    samples_t *samples =
        mmap(NULL, sizeof *samples, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (samples == MAP_FAILED)
        measure_stop("no memory");
    for (int i = 0; i < rounds; i++) {
        double free_rate, held_rate;
        pid_t client = start_client(bench, samples);
        sleep((unsigned)measure_count(ALONE_S, 1));
        alone[i] = end_client(client, samples);
        free[i] = beside_migration(bench, samples, 2 * i, 0, &free_rate);
        held[i] = beside_migration(bench, samples, 2 * i + 1, alone[i], &held_rate);
        free_ratios[i] = free[i] / alone[i];
        held_ratios[i] = held[i] / alone[i];
        shares[i] = held_rate / free_rate;
    }
    munmap(samples, sizeof *samples);
    double ratio = measure_median(held_ratios, (size_t)rounds);
    double share = measure_median(shares, (size_t)rounds);
    bool kept = ratio <= 1.5 && share >= 0.2;
    printf("client's p99     %8.1f ms alone, %.1f beside a migration (%.2f times), %.1f beside one "
           "with --max-latency (%.2f times, bar 1.50)\n",
           measure_median(alone, (size_t)rounds), measure_median(free, (size_t)rounds),
           measure_median(free_ratios, (size_t)rounds), measure_median(held, (size_t)rounds),
           ratio);
    printf("which moves      %8.2f of what it moves without, bar 0.20: %s\n", share,
           kept ? "kept" : "MISSED");
    bench->report.failed = bench->report.failed || !kept;
}

/* ---- main ------------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
    bench_t bench = {.server = getenv("SPILLWAY_TEST_URI"), .length = LENGTH, .threads = 4};
    spill_error_t error;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            bench.quick = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            bench.report.only = argv[++i];
        else if (strcmp(argv[i], "--owners") == 0 && i + 1 < argc)
            bench.owners = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--length") == 0 && i + 1 < argc)
            bench.length = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--home") == 0 && i + 1 < argc)
            bench.home = argv[++i];
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            bench.threads = (int)strtol(argv[++i], NULL, 10);
        else if (strncmp(argv[i], "mongodb", strlen("mongodb")) == 0)
            bench.server = argv[i];
        else
            measure_stop(
                "usage: bench_migrate [--quick] [--only speed|staged|latency] [--owners N] "
                "[--length N] [--threads N] [--home DIR/spillway-test-server] mongodb://HOST/");
    }
    if (bench.length < 100)
        measure_stop("an array of %d elements is too short", bench.length);
    if (bench.owners == 0)
        bench.owners = 20 * LENGTH / bench.length;
    if (!bench.server)
        measure_stop("name a server, or run this under tools/test-server");
    on_server_open(&bench.on, bench.server);
    measure_check(spill_store_open(bench.on.uri, NULL, &bench.store, &error), &error);
    if (measure_wanted(&bench.report, "speed"))
        bench_speed(&bench);
    if (measure_wanted(&bench.report, "staged")) {
        bench_staged(&bench, "reference", "reviews-separate");
        bench_staged(&bench, "subset", "reviews-subset");
    }
    if (measure_wanted(&bench.report, "latency"))
        bench_latency(&bench);
    spill_store_close(bench.store, NULL);
    on_server_close(&bench.on);
    return bench.report.failed ? 1 : 0;
}
