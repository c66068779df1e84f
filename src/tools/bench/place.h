/*
 * The benchmark's names in a store: no other run uses them at the same time, and they are free
 * again at the end.
 */
#ifndef SPILL_TOOLS_BENCH_PLACE_H
#define SPILL_TOOLS_BENCH_PLACE_H

#include "tools/bench/bench.h"

#define SPILL_BENCH_NAME "spillway_bench"

typedef struct spill_bench_place {
    spill_store_t *store;
    const spill_bench_options_t *options;
    bool names_reserved; /* this run owns the names */
} spill_bench_place_t;

/*
 * Open the store and reserve the names. SPILL_REFUSED: another run owns them, or something exists
 * under them. Leave in every case.
 */
spill_code_t spill_bench_enter(const spill_bench_options_t *options, spill_bench_place_t *place,
                               spill_error_t *error);

/*
 * Drop everything under the names, if this run owns them, and close the store. If `code` is
 * SPILL_OK, an error is reported. Returns the first error.
 */
spill_code_t spill_bench_leave(spill_bench_place_t *place, spill_code_t code, spill_error_t *error);

/* Report whether the run was asked to stop. */
bool spill_bench_stopped(const spill_bench_options_t *options);

#endif
