/*
 * `spillway consolidate` on a server: how fast it copies.
 *
 *   bench_consolidate [--quick] [--collections N] [--documents N] [--threads N] mongodb://HOST/
 *
 * Each round fills collections with libmongoc's bulk inserts, with documents of about 450 bytes.
 * Then it copies them into one collection, with compound _ids and an index. Both sides write the
 * same documents. "first pass" is the ratio of the copy's first pass, which also reads and
 * transforms the documents. "all" includes the second pass, which compares all documents.
 */
#include "measure.h"
#include "on_server.h"

#include "tools/consolidate/consolidate.h"

#include <spillway/spillway.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench {
    const char *server;
    on_server_t on;
    bool quick;
    int collections, documents; /* collections, and documents in each */
    int threads;
    spill_raw_admin_t *admin;
    double began, first_pass; /* times of the current copy */
} bench_t;

static bson_t *make_document(int number)
{
    uint8_t bytes[ELEMENT_BYTES];
    bson_t *document = BCON_NEW("_id", BCON_INT32(number), "at", BCON_DATE_TIME(1700000000000),
                                "name", "Ada Lovelace"),
           inner;
    for (int i = 0; i < 2; i++) {
        measure_element(bytes, (uint64_t)number * 2 + (uint64_t)i);
        bson_init_static(&inner, bytes, sizeof bytes);
        BSON_APPEND_DOCUMENT(document, i == 0 ? "text" : "more", &inner);
    }
    return document;
}

static double insert_in_bulk(const bench_t *bench, bson_t *const *documents)
{
    double seconds = 0;
    for (int i = 0; i < bench->collections; i++) {
        char name[32];
        snprintf(name, sizeof name, "room_%d", i);
        seconds += on_server_insert(&bench->on, name, documents, (size_t)bench->documents);
    }
    return seconds;
}

static void read_group(const bench_t *bench, spill_consolidation_t *group)
{
    bson_t plan = BSON_INITIALIZER, members, member;
    spill_error_t error;
    BCON_APPEND(&plan, "into", "rooms", "field", "room", "ids", "compound", "pattern", "room_*",
                "indexes", "[", "{", "key", "{", "room", BCON_INT32(1), "at", BCON_INT32(-1), "}",
                "}", "]");
    BSON_APPEND_ARRAY_BEGIN(&plan, "collections", &members);
    for (int i = 0; i < bench->collections; i++) {
        char name[32], buffer[16];
        const char *key;
        snprintf(name, sizeof name, "room_%d", i);
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        BSON_APPEND_DOCUMENT_BEGIN(&members, key, &member);
        BSON_APPEND_UTF8(&member, "collection", name);
        BSON_APPEND_INT32(&member, "value", i);
        bson_append_document_end(&members, &member);
    }
    bson_append_array_end(&plan, &members);
    measure_check(spill_consolidation_read(&plan, group, &error), &error);
    bson_destroy(&plan);
}

static void note_moved(void *context, const spill_consolidate_moved_t *moved)
{
    bench_t *bench = context;
    if (moved->pass == 1)
        bench->first_pass = measure_now() - bench->began;
}

/* Seconds that the whole copy takes. */
static double consolidate(bench_t *bench)
{
    spill_consolidation_t group;
    spill_consolidate_options_t options = {
        .threads = bench->threads, .moved = note_moved, .context = bench};
    spill_consolidate_result_t result;
    spill_error_t error;
    read_group(bench, &group);
    bench->began = measure_now();
    measure_check(spill_consolidate_copy(bench->admin, &group, &options, &result, &error), &error);
    double seconds = measure_now() - bench->began;
    if (result.inserted != (int64_t)bench->collections * bench->documents || result.changing > 0)
        measure_stop("%lld documents were copied", (long long)result.inserted);
    measure_check(spill_consolidate_undo(bench->admin, &group, &options, &result, &error), &error);
    spill_consolidation_release(&group);
    return seconds;
}

static void drop_rooms(const bench_t *bench)
{
    for (int i = 0; i < bench->collections; i++) {
        char name[32];
        snprintf(name, sizeof name, "room_%d", i);
        on_server_drop(&bench->on, name);
    }
}

static void print_passes(const char *name, double megabytes, double *seconds, double *ratios,
                         int rounds)
{
    double ratio = measure_median(ratios, (size_t)rounds); /* sorts the ratios */
    printf("%-16s %8.1f MB/s, ratio %.2f (%.2f to %.2f)\n", name,
           megabytes / measure_median(seconds, (size_t)rounds), ratio, ratios[0],
           ratios[rounds - 1]);
}

static void bench_rounds(bench_t *bench)
{
    enum { ROUNDS = 7, QUICK_ROUNDS = 3 };
    int rounds = measure_count(bench->quick ? QUICK_ROUNDS : ROUNDS, 1);
    double bulk[ROUNDS], first[ROUNDS], all[ROUNDS], first_ratios[ROUNDS], all_ratios[ROUNDS];
    bson_t **documents = bson_malloc((size_t)bench->documents * sizeof *documents);
    double megabytes = 0;
    for (int i = 0; i < bench->documents; i++) {
        documents[i] = make_document(i);
        megabytes += (double)documents[i]->len * bench->collections / 1e6;
    }
    for (int i = -1; i < rounds; i++) { /* round -1 warms up */
        double theirs = insert_in_bulk(bench, documents), mine = consolidate(bench);
        drop_rooms(bench);
        if (i < 0)
            continue;
        bulk[i] = theirs;
        first[i] = bench->first_pass;
        all[i] = mine;
        first_ratios[i] = theirs / bench->first_pass;
        all_ratios[i] = theirs / mine;
    }
    for (int i = 0; i < bench->documents; i++)
        bson_destroy(documents[i]);
    bson_free(documents);
    printf("bulk insert      %8.1f MB/s\n", megabytes / measure_median(bulk, (size_t)rounds));
    print_passes("first pass", megabytes, first, first_ratios, rounds);
    print_passes("all", megabytes, all, all_ratios, rounds);
}

int main(int argc, char **argv)
{
    bench_t bench = {
        .server = getenv("SPILLWAY_TEST_URI"), .collections = 20, .documents = 2000, .threads = 4};
    spill_error_t error;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            bench.quick = true;
        else if (strcmp(argv[i], "--collections") == 0 && i + 1 < argc)
            bench.collections = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--documents") == 0 && i + 1 < argc)
            bench.documents = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            bench.threads = (int)strtol(argv[++i], NULL, 10);
        else if (strncmp(argv[i], "mongodb", strlen("mongodb")) == 0)
            bench.server = argv[i];
        else
            measure_stop("usage: bench_consolidate [--quick] [--collections N] [--documents N] "
                         "[--threads N] mongodb://HOST/");
    }
    if (!bench.server || bench.collections < 2 || bench.documents < 1)
        measure_stop("name a server, or run this under tools/test-server");
    on_server_open(&bench.on, bench.server);
    measure_check(spill_raw_admin_open(bench.on.uri, &bench.admin, &error), &error);
    bench_rounds(&bench);
    spill_raw_admin_close(bench.admin);
    on_server_close(&bench.on);
    return 0;
}
