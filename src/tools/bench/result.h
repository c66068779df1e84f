/* What a run and a tuning share of their results. */
#ifndef SPILL_TOOLS_BENCH_RESULT_H
#define SPILL_TOOLS_BENCH_RESULT_H

#include "tools/bench/bench.h"

/* Begin an empty result: time, machine, load. */
void spill_bench_start(const spill_bench_options_t *options, spill_bench_result_t *result);

/* Note how long it took, and that what is not counted is not known. */
void spill_bench_finish(spill_bench_result_t *result);

#endif
