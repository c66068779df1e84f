/*
 * Work on a whole store with many owners of few elements.
 *
 *   bench_owners [--quick] [--rounds N] [--program FILE] [--dir FOLDER] [--only import|read]
 *
 * Makes two NDJSON files with the same number of elements of 90 bytes: one with two elements for
 * each owner, one over few owners. `spillway import` imports them in turns, each into a new store.
 * Then one raw iteration of RocksDB over the store with many owners takes turns with `spillway
 * stats`, `verify` and `export` of it (output to /dev/null). The raw iteration opens the store's
 * folder with the store's options, and reads every key and value. Each time is the time of a
 * whole process, or of an open, an iteration and a close. Prints the medians, their ratios, and
 * whether the bars are met.
 */
#include "measure.h"
#include "program.h"
#include "store/embedded/kv_rocksdb.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sizes {
    int64_t elements;
    int64_t many; /* owners */
    int64_t few;
} sizes_t;

typedef struct bench {
    sizes_t sizes;
    int rounds;
    const char *program;
    const char *only; /* NULL: everything */
    char *folder;
    bool failed;
} bench_t;

/* ---- input ----------------------------------------------------------------------------------- */

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A step through all owners that leaves large distances between consecutive ones. */
static int64_t step_of(int64_t owners)
{
    int64_t step = owners * 618 / 1000 + 1;
    while (greatest_common_divisor(step, owners) != 1)
        step++;
    return step;
}

/* A record is a document of 90 bytes in BSON. */
static void write_input(const char *path, int64_t elements, int64_t owners)
{
    FILE *file = fopen(path, "w");
    if (!file)
        measure_stop("%s: cannot be written", path);
    int64_t step = step_of(owners);
    for (int64_t i = 0, owner = 0; i < elements; i++, owner = (owner + step) % owners)
        fprintf(file,
                "{\"o\":\"user-%07" PRId64 "\",\"kind\":\"view\",\"n\":%07" PRId64
                ",\"note\":\"%08" PRIx64 " seen on a page\"}\n",
                owner, i + 1000000, (uint64_t)i * 2654435761U % 0xffffffffU);
    if (fclose(file) != 0)
        measure_stop("%s: cannot be written", path);
}

static char *path_of(const bench_t *bench, const char *name)
{
    return bson_strdup_printf("%s/%s", bench->folder, name);
}

/* ---- the two sides --------------------------------------------------------------------------- */

static double read_whole(const bench_t *bench, const char *command, char *store)
{
    char *const arguments[] = {(char *)bench->program, (char *)command, store, "events", NULL};
    return program_run(arguments);
}

static double import_file(const bench_t *bench, char *store, char *input)
{
    char *const define[] = {
        (char *)bench->program, "define", store, "events", "--preset", "feed", NULL};
    char *const import[] = {
        (char *)bench->program, "import", store, "events", input, "--owner", "o", "--quiet", NULL};
    program_run(define);
    return program_run(import);
}

/* Read every record by one iterator. */
static double iterate_raw(const char *store)
{
    char *message = NULL;
    double start = measure_now();
    rocksdb_options_t *options = spill_kv_rocksdb_options(
        &(spill_rocksdb_options_t){.read_only = true, .cache_bytes = 24 << 20});
    rocksdb_t *db = rocksdb_open_for_read_only(options, store, 0, &message);
    if (message)
        measure_stop("the bare engine: %s", message);
    rocksdb_readoptions_t *read = rocksdb_readoptions_create();
    rocksdb_iterator_t *iter = rocksdb_create_iterator(db, read);
    size_t bytes = 0;
    for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
        size_t key_bytes, value_bytes;
        rocksdb_iter_key(iter, &key_bytes);
        rocksdb_iter_value(iter, &value_bytes);
        bytes += key_bytes + value_bytes;
    }
    rocksdb_iter_get_error(iter, &message);
    if (message || bytes == 0)
        measure_stop("the bare engine: %s", message ? message : "no records");
    rocksdb_iter_destroy(iter);
    rocksdb_readoptions_destroy(read);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    return measure_now() - start;
}

/* ---- figures --------------------------------------------------------------------------------- */

static void print_figure(bench_t *bench, const char *name, double ours, double other, double ratio,
                         double bar, bool at_most)
{
    bool met = at_most ? ratio <= bar : ratio >= bar;
    bench->failed = bench->failed || !met;
    printf("| %-8s | %8.2f | %8.2f | %6.2f | %s %.1f | %s |\n", name, ours, other, ratio,
           at_most ? "at most" : "at least", bar, met ? "met" : "MISSED");
}

static void measure_imports(bench_t *bench, char *many_store)
{
    char *many = path_of(bench, "many.ndjson"), *few = path_of(bench, "few.ndjson");
    char *few_store = path_of(bench, "few");
    double with_many[ROUNDS_MAX], with_few[ROUNDS_MAX], ratios[ROUNDS_MAX];
    write_input(many, bench->sizes.elements, bench->sizes.many);
    write_input(few, bench->sizes.elements, bench->sizes.few);
    for (int i = 0; i < bench->rounds; i++) {
        if (i > 0)
            measure_remove_folder(strdup(many_store));
        with_many[i] = import_file(bench, many_store, many);
        with_few[i] = import_file(bench, few_store, few);
        ratios[i] = with_few[i] / with_many[i];
        measure_remove_folder(strdup(few_store));
    }
    print_figure(bench, "import", measure_median(with_many, (size_t)bench->rounds),
                 measure_median(with_few, (size_t)bench->rounds),
                 measure_median(ratios, (size_t)bench->rounds), 0.4, false);
    remove(many);
    remove(few);
    bson_free(many);
    bson_free(few);
    bson_free(few_store);
}

static void measure_reads(bench_t *bench, char *store)
{
    static const struct {
        const char *command;
        double bar;
    } FIGURES[] = {{"stats", 3}, {"verify", 5}, {"export", 5}};
    enum { COUNT = sizeof FIGURES / sizeof FIGURES[0] };
    double ours[COUNT][ROUNDS_MAX], ratios[COUNT][ROUNDS_MAX], raw[COUNT][ROUNDS_MAX];
    iterate_raw(store);
    for (int i = 0; i < bench->rounds; i++)
        for (int k = 0; k < COUNT; k++) {
            raw[k][i] = iterate_raw(store);
            ours[k][i] = read_whole(bench, FIGURES[k].command, store);
            ratios[k][i] = ours[k][i] / raw[k][i];
        }
    for (int k = 0; k < COUNT; k++)
        print_figure(bench, FIGURES[k].command, measure_median(ours[k], (size_t)bench->rounds),
                     measure_median(raw[k], (size_t)bench->rounds),
                     measure_median(ratios[k], (size_t)bench->rounds), FIGURES[k].bar, true);
}

static void measure_all(bench_t *bench)
{
    char *store = path_of(bench, "many");
    printf("%" PRId64 " elements over %" PRId64 " and over %" PRId64 " owners; %d rounds\n\n",
           bench->sizes.elements, bench->sizes.many, bench->sizes.few, bench->rounds);
    printf("| figure   |  ours, s | other, s |  ratio | bar | |\n|---|---|---|---|---|---|\n");
    fflush(stdout);
    if (bench->only && strcmp(bench->only, "read") == 0) {
        char *input = path_of(bench, "many.ndjson");
        write_input(input, bench->sizes.elements, bench->sizes.many);
        import_file(bench, store, input);
        bson_free(input);
    } else {
        measure_imports(bench, store);
    }
    fflush(stdout);
    if (!bench->only || strcmp(bench->only, "read") == 0)
        measure_reads(bench, store);
    bson_free(store);
}

int main(int argc, char **argv)
{
    bench_t bench = {.sizes = {2000000, 1000000, 4000}, .rounds = 3, .program = NULL};
    const char *parent = "/tmp";
    char *program = NULL;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--quick") == 0) {
            int part = measure_count(1, 100);
            bench.sizes = (sizes_t){200000 / part, 100000 / part, 4000 / part};
            continue;
        }
        if (value && strcmp(argv[i], "--rounds") == 0)
            bench.rounds = (int)strtol(value, NULL, 10);
        else if (value && strcmp(argv[i], "--program") == 0)
            bench.program = value;
        else if (value && strcmp(argv[i], "--dir") == 0)
            parent = value;
        else if (value && strcmp(argv[i], "--only") == 0)
            bench.only = value;
        else
            measure_stop("usage: bench_owners [--quick] [--rounds N] [--program FILE] "
                         "[--dir FOLDER] [--only import|read]");
        i++;
    }
    if (bench.rounds < 1 || bench.rounds > ROUNDS_MAX)
        measure_stop("--rounds is between 1 and %d", ROUNDS_MAX);
    if (!bench.program) {
        program = program_beside(argv[0]);
        bench.program = program;
    }
    bench.folder = measure_folder(parent);
    measure_all(&bench);
    measure_remove_folder(bench.folder);
    bson_free(program);
    return bench.failed ? 1 : 0;
}
