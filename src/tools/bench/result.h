/* Functions for the results of a run and of a tuning. */
#ifndef SPILL_TOOLS_BENCH_RESULT_H
#define SPILL_TOOLS_BENCH_RESULT_H

#include "tools/bench/bench.h"

/* Begin an empty result with time, machine and load. */
void spill_bench_start(const spill_bench_options_t *options, spill_bench_result_t *result);

/* Set the duration, and mark bytes that were not counted as unknown. */
void spill_bench_finish(spill_bench_result_t *result);

#endif
