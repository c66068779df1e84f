/*
 * Import against the parser alone. In turns: parse every line of an NDJSON file with libbson, and
 * import the file into a new store with log durability, closing included. Prints the ratio of the
 * medians, which is to be at most 2.
 *
 *   bench_import FILE.ndjson OWNER-FIELD [ROUNDS]
 */
#include "tools/import.h"

#include <spillway/store.h>

#include <bson/bson.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 99

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void stop(const char *what)
{
    fprintf(stderr, "bench_import: %s\n", what);
    exit(EXIT_FAILURE);
}

static void check(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK) {
        stop(error->message);
    }
}

static double parse(const char *path, int64_t *lines)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        stop("cannot open the file");
    }
    double start = seconds();
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    *lines = 0;
    while ((size = getline(&line, &capacity, file)) >= 0) {
        bson_error_t error;
        bson_t *document = bson_new_from_json((const uint8_t *)line, size, &error);
        if (!document) {
            stop(error.message);
        }
        bson_destroy(document);
        (*lines)++;
    }
    double took = seconds() - start;
    free(line);
    fclose(file);
    return took;
}

static int delete_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static double import(const char *path, const char *owner, int64_t lines)
{
    char folder[] = "/tmp/spillway-bench-XXXXXX";
    if (!mkdtemp(folder)) {
        stop("cannot make a folder");
    }
    spill_error_t error;
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    spill_definition_t definition;
    spill_definition_init(&definition, "events");
    spill_store_t *store = NULL;
    spill_array_t *array = NULL;
    double start = seconds();
    check(spill_store_open(folder, &options, &store, &error), &error);
    check(spill_store_define(store, &definition, &error), &error);
    check(spill_array_open(store, "events", &array, &error), &error);
    spill_import_options_t what = {.path = path, .owner = owner};
    spill_import_result_t result;
    check(spill_import(store, array, &what, &result, &error), &error);
    spill_array_close(array);
    check(spill_store_close(store, &error), &error);
    double took = seconds() - start;
    if (result.records != lines) {
        stop("not every line was imported");
    }
    nftw(folder, delete_one, 16, FTW_DEPTH | FTW_PHYS);
    return took;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    int rounds = argc > 3 ? atoi(argv[3]) : 5;
    if (argc < 3 || rounds < 1 || rounds > ROUNDS_MAX) {
        stop("usage: bench_import FILE.ndjson OWNER-FIELD [ROUNDS]");
    }
    double parsing[ROUNDS_MAX];
    double importing[ROUNDS_MAX];
    int64_t lines = 0;
    for (int i = 0; i < rounds; i++) {
        parsing[i] = parse(argv[1], &lines);
        importing[i] = import(argv[1], argv[2], lines);
        printf("round %d: parse %.3f s, import %.3f s, ratio %.2f\n", i + 1, parsing[i],
               importing[i], importing[i] / parsing[i]);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double parse_median = median(parsing, rounds);
    double import_median = median(importing, rounds);
    printf("%lld lines: parse %.3f s, import %.3f s, ratio %.2f (bar: 2.00); peak memory %ld MB\n",
           (long long)lines, parse_median, import_median, import_median / parse_median,
           usage.ru_maxrss / 1024);
    return 0;
}
