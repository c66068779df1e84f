/*
 * A feed on a server: of a hundred operations, 95 read the newest page of an owner and 5 append to
 * one; owners are drawn by Zipf's law. Spillway and the commands that an application would send
 * itself ($push, and a find with $slice) take turns, with the same draws on arrays of the same
 * lengths. docs/internals/benchmarks/server.md has the figures and the bars.
 *
 *   bench_feed [--quick] [--threads N] mongodb://HOST/
 */
#include "measure.h"
#include "on_server.h"

#include <spillway/spillway.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY = 100, FILL = 20, PAGE = 20, READS = 95 /* percent */, DOCUMENT_BYTES = 4 << 20 };

/* What one side's operations of a round have taken. */
typedef struct sums {
    double read_seconds, append_seconds;
    int reads, appends;
} sums_t;

typedef struct feed {
    on_server_t server;
    mongoc_client_pool_t *pool;
    spill_store_t *store;
    spill_array_t *array;
    double *popularity; /* measure_zipf */
    int owners, threads, count, rounds;
    uint64_t seed; /* of the round */
    sums_t sums[THREADS_MAX];
} feed_t;

/* One operation on an owner by one side; `connection` is the thread's. */
typedef struct side {
    void (*read)(const feed_t *feed, mongoc_collection_t *connection, const char *owner);
    void (*append)(const feed_t *feed, mongoc_collection_t *connection, const char *owner,
                   const uint8_t *element);
} side_t;

/* ---- Spillway's side ------------------------------------------------------------------------- */

static void ours_read(const feed_t *feed, mongoc_collection_t *connection, const char *owner)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_utf8(&storage, owner);
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    (void)connection;
    spill_read_options_init(&options);
    options.limit = PAGE;
    measure_check(spill_array_read(feed->array, &name, &options, &slice, &error), &error);
    if (slice->count != PAGE)
        measure_stop("a page of %zu elements was read", slice->count);
    spill_slice_free(slice);
    bson_destroy(&storage);
}

static void ours_append(const feed_t *feed, mongoc_collection_t *connection, const char *owner,
                        const uint8_t *element)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_utf8(&storage, owner);
    spill_value_t value = {
        .data = element, .size_bytes = ELEMENT_BYTES, .type = BSON_TYPE_DOCUMENT};
    spill_append_result_t result;
    spill_error_t error;
    (void)connection;
    measure_check(spill_array_append(feed->array, &name, &value, 1, NULL, &result, &error), &error);
    bson_destroy(&storage);
}

/* ---- the application's own commands ---------------------------------------------------------- */

static void unmanaged_read(const feed_t *feed, mongoc_collection_t *connection, const char *owner)
{
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(owner));
    bson_t *options = BCON_NEW("projection", "{", "activities", "{", "$slice", BCON_INT32(-PAGE),
                               "}", "}", "limit", BCON_INT64(1), "singleBatch", BCON_BOOL(true));
    const bson_t *document;
    bson_iter_t iter, at;
    int count = 0;
    (void)feed;
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(connection, filter, options, NULL);
    if (mongoc_cursor_next(cursor, &document) &&
        bson_iter_init_find(&iter, document, "activities") && bson_iter_recurse(&iter, &at))
        while (bson_iter_next(&at))
            count++;
    if (count != PAGE)
        measure_stop("a find returned %d elements", count);
    mongoc_cursor_destroy(cursor);
    bson_destroy(options);
    bson_destroy(filter);
}

static void unmanaged_append(const feed_t *feed, mongoc_collection_t *connection, const char *owner,
                             const uint8_t *element)
{
    bson_t document;
    bson_error_t error;
    (void)feed;
    bson_init_static(&document, element, ELEMENT_BYTES);
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(owner));
    bson_t *update = BCON_NEW("$push", "{", "activities", BCON_DOCUMENT(&document), "}");
    if (!mongoc_collection_update_one(connection, filter, update, NULL, NULL, &error))
        measure_stop("%s", error.message);
    bson_destroy(update);
    bson_destroy(filter);
}

/* ---- both ------------------------------------------------------------------------------------ */

static uint64_t draw(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 11;
}

static int draw_owner(const feed_t *feed, uint64_t *random)
{
    double at = (double)draw(random) / (double)(UINT64_C(1) << 53);
    return measure_zipf_draw(feed->popularity, feed->owners, at);
}

static void name_owner(char name[32], int number)
{
    snprintf(name, 32, "owner-%06d", number);
}

static void operate(feed_t *feed, const side_t *side, int thread, int count)
{
    mongoc_client_t *client = mongoc_client_pool_pop(feed->pool);
    mongoc_collection_t *connection =
        mongoc_client_get_collection(client, feed->server.database, "pushed");
    uint64_t random = feed->seed * THREADS_MAX + (uint64_t)thread;
    sums_t sums = {0};
    draw(&random);
    for (int i = 0; i < count; i++) {
        char owner[32];
        uint8_t element[ELEMENT_BYTES];
        name_owner(owner, draw_owner(feed, &random));
        measure_element(element, draw(&random) % 1000000);
        bool reads = draw(&random) % 100 < READS;
        double began = measure_now();
        if (reads)
            side->read(feed, connection, owner);
        else
            side->append(feed, connection, owner, element);
        double seconds = measure_now() - began;
        *(reads ? &sums.read_seconds : &sums.append_seconds) += seconds;
        *(reads ? &sums.reads : &sums.appends) += 1;
    }
    feed->sums[thread] = sums;
    mongoc_collection_destroy(connection);
    mongoc_client_pool_push(feed->pool, client);
}

static void ours(void *context, int thread, int count)
{
    static const side_t side = {ours_read, ours_append};
    operate(context, &side, thread, count);
}

static void unmanaged(void *context, int thread, int count)
{
    static const side_t side = {unmanaged_read, unmanaged_append};
    operate(context, &side, thread, count);
}

/* Microseconds for a read and for an append of one round. */
static void measure_round(feed_t *feed, measure_fn side, double *read_us, double *append_us)
{
    sums_t all = {0};
    measure_threads(side, feed, feed->threads, feed->count);
    for (int i = 0; i < feed->threads; i++) {
        all.read_seconds += feed->sums[i].read_seconds;
        all.append_seconds += feed->sums[i].append_seconds;
        all.reads += feed->sums[i].reads;
        all.appends += feed->sums[i].appends;
    }
    *read_us = all.read_seconds * 1e6 / all.reads;
    *append_us = all.append_seconds * 1e6 / all.appends;
}

/* Print a line as measure_figure does; return whether it meets the bar. */
static bool print_figure(const char *name, double *mine, double *theirs, double *ratios, int rounds,
                         double bar)
{
    double ratio = measure_median(ratios, (size_t)rounds);
    bool kept = ratio >= bar;
    printf("%-16s %10.2f %10.2f %8.2f  >= %5.2f  %-4s feed: speed of ours / the application's\n",
           name, measure_median(mine, (size_t)rounds), measure_median(theirs, (size_t)rounds),
           ratio, bar, kept ? "ok" : "FAIL");
    fflush(stdout);
    return kept;
}

static bool measure_feed(feed_t *feed)
{
    double us[2][2][ROUNDS_MAX], ratios[2][ROUNDS_MAX]; /* [read or append][ours or theirs] */
    for (int i = -1; i < feed->rounds; i++) {           /* round -1 warms up */
        double mine[2], theirs[2];
        feed->seed = (uint64_t)i + 2;
        measure_round(feed, unmanaged, &theirs[0], &theirs[1]);
        measure_round(feed, ours, &mine[0], &mine[1]);
        for (int of = 0; of < 2 && i >= 0; of++) {
            us[of][0][i] = mine[of];
            us[of][1][i] = theirs[of];
            ratios[of][i] = theirs[of] / mine[of];
        }
    }
    measure_print_header();
    bool reads = print_figure("feed-read", us[0][0], us[0][1], ratios[0], feed->rounds, 0.95);
    return print_figure("feed-append", us[1][0], us[1][1], ratios[1], feed->rounds, 0.88) && reads;
}

/* ---- setting up ------------------------------------------------------------------------------ */

static void fill(feed_t *feed)
{
    mongoc_client_t *client = mongoc_client_pool_pop(feed->pool);
    mongoc_collection_t *collection =
        mongoc_client_get_collection(client, feed->server.database, "pushed");
    static uint8_t elements[FILL][ELEMENT_BYTES];
    spill_value_t values[FILL];
    for (int i = 0; i < FILL; i++) {
        measure_element(elements[i], (uint64_t)i);
        values[i] = (spill_value_t){
            .data = elements[i], .size_bytes = ELEMENT_BYTES, .type = BSON_TYPE_DOCUMENT};
    }
    for (int i = 0; i < feed->owners; i++) {
        char owner[32];
        bson_t storage = BSON_INITIALIZER, document = BSON_INITIALIZER, array;
        spill_append_result_t result;
        spill_error_t error;
        bson_error_t cause;
        name_owner(owner, i);
        spill_value_t name = spill_value_from_utf8(&storage, owner);
        measure_check(spill_array_append(feed->array, &name, values, FILL, NULL, &result, &error),
                      &error);
        BSON_APPEND_UTF8(&document, "_id", owner);
        BSON_APPEND_ARRAY_BEGIN(&document, "activities", &array);
        for (int j = 0; j < FILL; j++) {
            char key[8];
            bson_t element;
            snprintf(key, sizeof key, "%d", j);
            bson_init_static(&element, elements[j], ELEMENT_BYTES);
            BSON_APPEND_DOCUMENT(&array, key, &element);
        }
        bson_append_array_end(&document, &array);
        if (!mongoc_collection_insert_one(collection, &document, NULL, NULL, &cause))
            measure_stop("%s", cause.message);
        bson_destroy(&document);
        bson_destroy(&storage);
    }
    mongoc_collection_destroy(collection);
    mongoc_client_pool_push(feed->pool, client);
}

static void open_feed(feed_t *feed, const char *server)
{
    spill_definition_t definition;
    spill_error_t error;
    on_server_open(&feed->server, server);
    mongoc_uri_t *uri = mongoc_uri_new(feed->server.uri);
    feed->pool = mongoc_client_pool_new(uri);
    mongoc_uri_destroy(uri);
    measure_check(spill_store_open(feed->server.uri, NULL, &feed->store, &error), &error);
    spill_definition_init(&definition, "feed");
    definition.bounds.head_bytes_max = definition.bounds.page_bytes_max = DOCUMENT_BYTES;
    definition.bounds.threshold = definition.bounds.page_capacity = CAPACITY;
    measure_check(spill_store_define(feed->store, &definition, &error), &error);
    measure_check(spill_array_open(feed->store, "feed", &feed->array, &error), &error);
    feed->popularity = measure_zipf(feed->owners);
    fill(feed);
}

static void close_feed(feed_t *feed)
{
    spill_array_close(feed->array);
    spill_store_close(feed->store, NULL);
    mongoc_client_pool_destroy(feed->pool);
    on_server_close(&feed->server);
    free(feed->popularity);
}

int main(int argc, char **argv)
{
    const char *server = getenv("SPILLWAY_TEST_URI");
    feed_t feed = {.owners = 2000, .threads = 8, .count = 200, .rounds = 25};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            feed.owners = measure_count(200, 20);
            feed.rounds = measure_count(5, 1);
            feed.count = measure_count(feed.count, 40);
        } else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            feed.threads = atoi(argv[++i]);
        } else if (strncmp(argv[i], "mongodb", strlen("mongodb")) == 0) {
            server = argv[i];
        } else {
            measure_stop("usage: bench_feed [--quick] [--threads N] mongodb://HOST/");
        }
    }
    if (!server)
        measure_stop("name a server, or run this under tools/test-server");
    if (feed.threads < 1 || feed.threads > THREADS_MAX)
        measure_stop("--threads must be from 1 to %d", THREADS_MAX);
    open_feed(&feed, server);
    bool kept = measure_feed(&feed);
    close_feed(&feed);
    return kept ? 0 : 1;
}
