/* The tables of the command bench. */
#ifndef SPILL_CLI_BENCH_PRINT_H
#define SPILL_CLI_BENCH_PRINT_H

#include "tools/bench/bench.h"

void spill_cli_print_bench(const spill_bench_options_t *options,
                           const spill_bench_result_t *result);
void spill_cli_print_tuned(const spill_bench_options_t *options,
                           const spill_bench_result_t *result);

/* A store's name for output: its URI without user, password and options, or its path. */
void spill_cli_bench_place(const char *uri, char *place, size_t size);

#endif
