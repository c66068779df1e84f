/*
 * How long the program takes to start: elapsed times of whole processes. `--version` opens nothing.
 * `read` and `append` open an embedded store of OWNERS owners, the append with log durability. Each
 * round runs each command once. Prints the median, the lowest and the highest time of each, and
 * whether the median meets its bar.
 *
 *   bench_start [--rounds N] [--program FILE] [--dir FOLDER]
 */
#include "measure.h"
#include "program.h"

#include <spillway/spillway.h>

#include <bson/bson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWNERS = 200, ROUNDS = 50, ARGUMENTS_MAX = 8 };

typedef struct command {
    const char *name;
    double ms_max; /* the bar; 0: none */
    char *arguments[ARGUMENTS_MAX];
    double ms[ROUNDS_MAX];
} command_t;

/* Create a store in which each owner has one element. */
static void make_store(const char *folder)
{
    spill_error_t error;
    spill_store_options_t options;
    spill_definition_t definition;
    spill_store_t *store;
    spill_array_t *array;
    uint8_t document[ELEMENT_BYTES];
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    measure_check(spill_store_open(folder, &options, &store, &error), &error);
    measure_check(spill_definition_preset(&definition, "feed", "feed", &error), &error);
    measure_check(spill_store_define(store, &definition, &error), &error);
    measure_check(spill_array_open(store, "feed", &array, &error), &error);
    for (int i = 0; i < OWNERS; i++) {
        char name[32];
        bson_t storage = BSON_INITIALIZER;
        spill_append_result_t result;
        snprintf(name, sizeof name, "user-%d", i);
        measure_element(document, (uint64_t)i);
        spill_value_t owner = spill_value_from_utf8(&storage, name);
        spill_value_t element = {
            .data = document, .size_bytes = ELEMENT_BYTES, .type = BSON_TYPE_DOCUMENT};
        measure_check(spill_array_append(array, &owner, &element, 1, NULL, &result, &error),
                      &error);
        bson_destroy(&storage);
    }
    spill_array_close(array);
    measure_check(spill_store_close(store, &error), &error);
}

static void print_times(measure_report_t *report, command_t *command, int rounds)
{
    double median = measure_median(command->ms, (size_t)rounds);
    printf("%-16s %10.2f %10.2f %10.2f", command->name, median, command->ms[0],
           command->ms[rounds - 1]);
    if (command->ms_max > 0)
        measure_print_bar(report, median, command->ms_max, true);
    printf("\n");
}

static void measure_all(measure_report_t *report, char *program, char *store, int rounds)
{
    command_t commands[] = {
        {"--version", 8, {program, "--version", NULL}, {0}},
        {"read", 0, {program, "read", store, "feed", "user-1", NULL}, {0}},
        {"append",
         30,
         {program, "append", "--durability=log", store, "feed", "user-1", "{\"a\": 1}", NULL},
         {0}},
    };
    enum { COMMANDS = sizeof commands / sizeof *commands };
    for (int round = -1; round < rounds; round++) /* round -1 warms up */
        for (int i = 0; i < COMMANDS; i++) {
            double seconds = program_run(commands[i].arguments);
            if (round >= 0)
                commands[i].ms[round] = seconds * 1e3;
        }
    printf("%-16s %10s %10s %10s\n", "command", "median ms", "lowest", "highest");
    for (int i = 0; i < COMMANDS; i++)
        print_times(report, &commands[i], rounds);
}

int main(int argc, char **argv)
{
    const char *parent = "/tmp";
    int rounds = measure_count(ROUNDS, 1);
    char *program = program_beside(argv[0]);
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (value && strcmp(argv[i], "--rounds") == 0) {
            rounds = (int)strtol(value, NULL, 10);
        } else if (value && strcmp(argv[i], "--program") == 0) {
            bson_free(program);
            program = bson_strdup(value);
        } else if (value && strcmp(argv[i], "--dir") == 0) {
            parent = value;
        } else {
            measure_stop("usage: bench_start [--rounds N] [--program FILE] [--dir FOLDER]");
        }
    }
    if (rounds < 1 || rounds > ROUNDS_MAX)
        measure_stop("--rounds is between 1 and %d", ROUNDS_MAX);
    char *folder = measure_folder(parent);
    char *store = bson_strdup_printf("%s/store", folder);
    make_store(store);
    measure_report_t report = {0};
    measure_all(&report, program, store, rounds);
    measure_remove_folder(folder);
    bson_free(store);
    bson_free(program);
    return report.failed;
}
