/*
 * An array at a path ("stats.events") against one in a top-level field ("events"), on any store.
 * The sides take turns, round after round, and begin in turns. Besides the times, which other load
 * on the machine affects, it counts what the store was asked, and with --home the processor time of
 * a server that tools/test-server has started.
 *
 *   bench_path [--quick] [--home DIR/spillway-test-server] STORE
 *
 * STORE is a folder that does not exist, or a server's URI with a database, in which the
 * collections of the names below are made and dropped again. docs/internals/benchmarks/lengths.md
 * has the figures.
 */
#include "measure.h"
#include "server_processor.h"

#include "store/store.h"

#include <spillway/spillway.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THRESHOLD = 5, PAGE_CAPACITY = 20, HEAD_THRESHOLD = 50, HEAD_CAPACITY = 200, PAGE = 20 };
enum { SIDES = 2 };

#define BAR 1.05

typedef struct side {
    const char *name;
    const char *parent; /* the sub-document; "": none */
    spill_array_t *array;
    uint64_t next;
    double seconds[ROUNDS_MAX];
    double processor; /* of the server, in all rounds */
    long long calls, written, read;
} side_t;

typedef struct bench {
    spill_store_t *store;
    const char *home; /* of the server; NULL: its processor time is not measured */
    bool missed;
} bench_t;

/* ---- the sides ------------------------------------------------------------------------------- */

static void place_field(char *name, const char *parent, const char *field)
{
    snprintf(name, SPILL_NAME_SIZE, "%s%s%s", parent, parent[0] ? "." : "", field);
}

static void open_side(const bench_t *bench, side_t *side, int64_t threshold, int64_t capacity)
{
    spill_error_t error;
    spill_definition_t definition;
    measure_check(spill_definition_preset(&definition, "feed-recent", side->name, &error), &error);
    snprintf(definition.collection, SPILL_NAME_SIZE, "bench_path_%s", side->name);
    snprintf(definition.page_collection, SPILL_NAME_SIZE, "bench_path_%s_pages", side->name);
    place_field(definition.array, side->parent, "events");
    place_field(definition.count_field, side->parent, "count");
    place_field(definition.overflow_field, side->parent, "more");
    place_field(definition.pages_field, side->parent, "pages");
    definition.bounds.threshold = threshold;
    definition.bounds.page_capacity = capacity;
    measure_check(spill_store_define(bench->store, &definition, &error), &error);
    measure_check(spill_array_open(bench->store, side->name, &side->array, &error), &error);
}

static void close_side(const bench_t *bench, side_t *side)
{
    spill_error_t error;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    measure_check(spill_array_drop_owner(side->array, &owner, &error), &error);
    spill_array_close(side->array);
    measure_check(spill_store_drop(bench->store, side->name, &error), &error);
    bson_destroy(&storage);
}

typedef void (*work_fn)(side_t *side, const spill_value_t *owner, int count);

static void append(side_t *side, const spill_value_t *owner, int count)
{
    spill_error_t error;
    for (int i = 0; i < count; i++) {
        uint8_t bytes[ELEMENT_BYTES];
        measure_element(bytes, side->next++);
        spill_value_t element = {
            .data = bytes, .size_bytes = sizeof bytes, .type = BSON_TYPE_DOCUMENT};
        measure_check(spill_array_append(side->array, owner, &element, 1, NULL, NULL, &error),
                      &error);
    }
}

static void read_pages(side_t *side, const spill_value_t *owner, int count, int64_t before)
{
    spill_read_options_t options;
    spill_error_t error;
    spill_read_options_init(&options);
    options.limit = PAGE;
    options.before = before;
    for (int i = 0; i < count; i++) {
        spill_slice_t *slice;
        measure_check(spill_array_read(side->array, owner, &options, &slice, &error), &error);
        if (slice->count != PAGE)
            measure_stop("a page of %zu elements was read", slice->count);
        spill_slice_free(slice);
    }
}

static void read_newest(side_t *side, const spill_value_t *owner, int count)
{
    read_pages(side, owner, count, INT64_MAX);
}

static void read_deep(side_t *side, const spill_value_t *owner, int count)
{
    read_pages(side, owner, count, HEAD_CAPACITY);
}

static void update(side_t *side, const spill_value_t *owner, int count)
{
    spill_error_t error;
    for (int i = 0; i < count; i++) {
        bson_t *change = BCON_NEW("$set", "{", "theme", BCON_INT32(i), "}");
        measure_check(spill_array_update(side->array, owner, change, &error), &error);
        bson_destroy(change);
    }
}

/* ---- a figure -------------------------------------------------------------------------------- */

typedef struct work {
    const char *name;
    work_fn run;
    int64_t threshold, capacity;
    int filled; /* elements before the first round */
    int count;  /* operations of a side in a round */
} work_t;

static void run_side(const bench_t *bench, const work_t *work, side_t *side, int round)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    spill_counts_t *counts = &bench->store->counts;
    long long calls = counts->calls, written = counts->bytes_written, read = counts->bytes_read;
    double processor = server_processor(bench->home, NULL), began = measure_now();
    work->run(side, &owner, work->count);
    side->seconds[round] = measure_now() - began;
    side->processor += server_processor(bench->home, NULL) - processor;
    side->calls += counts->calls - calls;
    side->written += counts->bytes_written - written;
    side->read += counts->bytes_read - read;
    bson_destroy(&storage);
}

static void measure_work(bench_t *bench, const work_t *work, int rounds)
{
    side_t sides[SIDES] = {{.name = "path", .parent = "stats"}, {.name = "field", .parent = ""}};
    double ratios[ROUNDS_MAX], micros[SIDES];
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    for (int i = 0; i < SIDES; i++) {
        open_side(bench, &sides[i], work->threshold, work->capacity);
        append(&sides[i], &owner, work->filled);
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < SIDES; i++)
            run_side(bench, work, &sides[(i + round) % SIDES], round);
        ratios[round] = sides[0].seconds[round] / sides[1].seconds[round];
    }
    double operations = (double)rounds * work->count;
    for (int i = 0; i < SIDES; i++)
        micros[i] = measure_median(sides[i].seconds, (size_t)rounds) * 1e6 / work->count;
    double ratio = measure_median(ratios, (size_t)rounds);
    bench->missed = bench->missed || ratio > BAR;
    printf("%-12s %8.1f %8.1f us  %.3f %s", work->name, micros[0], micros[1], ratio,
           ratio > BAR ? "MISSED" : "met");
    printf("  requests %.3f %.3f", (double)sides[0].calls / operations,
           (double)sides[1].calls / operations);
    if (sides[1].written + sides[1].read > 0)
        printf("  bytes written %.0f %.0f, read %.0f %.0f", (double)sides[0].written / operations,
               (double)sides[1].written / operations, (double)sides[0].read / operations,
               (double)sides[1].read / operations);
    if (sides[1].processor > 0)
        printf("  server %.1f %.1f us of processor time, %.3f",
               1e6 * sides[0].processor / operations, 1e6 * sides[1].processor / operations,
               sides[0].processor / sides[1].processor);
    putchar('\n');
    fflush(stdout);
    for (int i = 0; i < SIDES; i++)
        close_side(bench, &sides[i]);
    bson_destroy(&storage);
}

int main(int argc, char **argv)
{
    static const work_t works[] = {
        {"append", append, THRESHOLD, PAGE_CAPACITY, PAGE_CAPACITY, 5 * PAGE_CAPACITY},
        {"append-large", append, HEAD_THRESHOLD, HEAD_CAPACITY, 2 * HEAD_CAPACITY, HEAD_CAPACITY},
        {"newest-page", read_newest, HEAD_THRESHOLD, HEAD_CAPACITY, 3 * HEAD_CAPACITY, 100},
        {"deep-page", read_deep, HEAD_THRESHOLD, HEAD_CAPACITY, 3 * HEAD_CAPACITY, 100},
        {"update", update, HEAD_THRESHOLD, HEAD_CAPACITY, HEAD_THRESHOLD, 100},
    };
    bench_t bench = {.home = NULL};
    int rounds = 31, at = 1;
    spill_store_options_t options;
    spill_error_t error;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--quick") == 0)
            rounds = measure_count(9, 1);
        else if (strcmp(argv[at], "--home") == 0 && at + 1 < argc)
            bench.home = argv[++at];
        else
            measure_stop("there is no option %s", argv[at]);
    }
    if (at != argc - 1)
        measure_stop("usage: bench_path [--quick] [--home DIR/spillway-test-server] STORE");
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    measure_check(spill_store_open(argv[at], &options, &bench.store, &error), &error);
    printf("%-12s %8s %8s     ratio, and per operation\n", "", "path", "field");
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        measure_work(&bench, &works[i], rounds);
    measure_check(spill_store_close(bench.store, &error), &error);
    return bench.missed;
}
