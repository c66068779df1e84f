/*
 * Import compared with the parser alone, and import with operation ids (--id) compared with import
 * without. The sides take turns: one parses every line of an NDJSON file with libbson, the others
 * import the file into a new store with log durability and close the store. Prints the ratios of
 * the medians, which must be at most RATIO_MAX. The exit code is 1 if one is more.
 *
 *   bench_import FILE.ndjson OWNER-FIELD [ROUNDS [ID-FIELD]]
 */
#include "measure.h"

#include "tools/import/import.h"

#include <spillway/store.h>

#include <bson/bson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static const double RATIO_MAX = 2;

static double parse(const char *path, int64_t *lines)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        measure_stop("cannot open the file");
    }
    double start = measure_now();
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    *lines = 0;
    while ((size = getline(&line, &capacity, file)) >= 0) {
        bson_error_t error;
        bson_t *document = bson_new_from_json((const uint8_t *)line, size, &error);
        if (!document) {
            measure_stop("%s", error.message);
        }
        bson_destroy(document);
        (*lines)++;
    }
    double took = measure_now() - start;
    free(line);
    fclose(file);
    return took;
}

static double import(const char *path, const char *owner, const char *id, int64_t lines)
{
    char *folder = measure_folder("/tmp");
    spill_error_t error;
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    spill_definition_t definition;
    spill_definition_init(&definition, "events");
    spill_store_t *store = NULL;
    spill_array_t *array = NULL;
    double start = measure_now();
    measure_check(spill_store_open(folder, &options, &store, &error), &error);
    measure_check(spill_store_define(store, &definition, &error), &error);
    measure_check(spill_array_open(store, "events", &array, &error), &error);
    spill_import_options_t what = {.path = path, .owner = owner, .id = id};
    spill_import_result_t result;
    measure_check(spill_import(store, array, &what, &result, &error), &error);
    spill_array_close(array);
    measure_check(spill_store_close(store, &error), &error);
    double took = measure_now() - start;
    if (result.records != lines) {
        measure_stop("not every line was imported");
    }
    measure_remove_folder(folder);
    return took;
}

static void print_ratio(measure_report_t *report, const char *what, const char *than, double *took,
                        double *other, int rounds)
{
    double median = measure_median(took, (size_t)rounds);
    double other_median = measure_median(other, (size_t)rounds);
    double ratio = median / other_median;
    printf("%s %.3f s, %s %.3f s, ratio %.2f", what, median, than, other_median, ratio);
    measure_print_bar(report, ratio, RATIO_MAX, true);
    printf("\n");
}

int main(int argc, char **argv)
{
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 5;
    const char *id = argc > 4 ? argv[4] : NULL;
    if (argc < 3 || rounds < 1 || rounds > ROUNDS_MAX) {
        measure_stop("usage: bench_import FILE.ndjson OWNER-FIELD [ROUNDS [ID-FIELD]]");
    }
    double parsing[ROUNDS_MAX], importing[ROUNDS_MAX], with_ids[ROUNDS_MAX];
    int64_t lines = 0;
    for (int i = 0; i < rounds; i++) {
        parsing[i] = parse(argv[1], &lines);
        importing[i] = import(argv[1], argv[2], NULL, lines);
        with_ids[i] = id ? import(argv[1], argv[2], id, lines) : 0;
        printf("round %d: parse %.3f s, import %.3f s, with ids %.3f s\n", i + 1, parsing[i],
               importing[i], with_ids[i]);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%lld lines; peak memory %ld MB\n", (long long)lines, usage.ru_maxrss / 1024);
    measure_report_t report = {0};
    print_ratio(&report, "import", "parse", importing, parsing, rounds);
    if (id)
        print_ratio(&report, "import with ids", "import", with_ids, importing, rounds);
    return report.failed;
}
