/*
 * The benchmark's place in a store: names of its own, that no other run uses at the same time, and
 * that are free again at the end.
 */
#ifndef SPILL_TOOLS_BENCH_PLACE_H
#define SPILL_TOOLS_BENCH_PLACE_H

#include "tools/bench/bench.h"

#define SPILL_BENCH_NAME "spillway_bench"

typedef struct spill_bench_place {
    spill_store_t *store;
    const spill_bench_options_t *options;
    bool taken; /* the mark is this run's */
} spill_bench_place_t;

/*
 * Open the store and take the names. SPILL_REFUSED: another run has them, or something is there.
 * Leave in every case.
 */
spill_code_t spill_bench_enter(const spill_bench_options_t *options, spill_bench_place_t *place,
                               spill_error_t *error);

/*
 * Drop everything under the names, where they were taken, and close the store. An error is reported
 * where `code` is SPILL_OK; what is returned is the first.
 */
spill_code_t spill_bench_leave(spill_bench_place_t *place, spill_code_t code, spill_error_t *error);

/* Was the run asked to stop? */
bool spill_bench_stopped(const spill_bench_options_t *options);

#endif
