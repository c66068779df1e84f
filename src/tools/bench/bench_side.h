/*
 * What the files of a run share: the names in a store, one kind of array with its threads and its
 * cost, and the result.
 */
#ifndef SPILL_TOOLS_BENCH_BENCH_SIDE_H
#define SPILL_TOOLS_BENCH_BENCH_SIDE_H

#include "tools/bench/bench.h"
#include "tools/bench/subject.h"

/* ---- names in a store ------------------------------------------------------------------------ */

/*
 * The benchmark's names in a store: no other run uses them at the same time, and they are free
 * again at the end.
 */

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

/* ---- one kind of array ----------------------------------------------------------------------- */

typedef struct spill_bench_side {
    spill_bench_kind_t kind;
    const spill_bench_options_t *options;
    spill_store_t *store;
    char name[SPILL_NAME_SIZE]; /* of its definition and collection */
    spill_array_t *array;       /* NULL: unbounded */
    spill_baseline_t baseline;
} spill_bench_side_t;

/*
 * Define the array SPILL_BENCH_NAME with `suffix`, with these bounds, and open it. Close in every
 * case.
 */
spill_code_t spill_bench_side_open(spill_bench_side_t *side, spill_bench_kind_t kind,
                                   const char *suffix, const spill_subject_bounds_t *bounds,
                                   spill_store_t *store, const spill_bench_options_t *options,
                                   spill_error_t *error);
void spill_bench_side_close(spill_bench_side_t *side);

/* The measurements of one operation so far. */
typedef struct spill_bench_tally {
    spill_samples_t means;     /* of rounds, us */
    spill_samples_t rates;     /* of rounds, operations per second of all threads */
    spill_samples_t latencies; /* of operations, us */
    int64_t bytes_written, bytes_read;
} spill_bench_tally_t;

void spill_bench_tally_release(spill_bench_tally_t *tally);
spill_bench_cost_t spill_bench_tally_cost(spill_bench_tally_t *tally);

/* What threads do with an owner in a round. */
typedef struct spill_bench_turn {
    const char *owner;
    int64_t from; /* number of the first element to append; -1: read newest pages */
    int threads;
    int count; /* per thread */
} spill_bench_turn_t;

/* Do it and add the measurements to the tally. SPILL_CANCELLED: the run was asked to stop. */
spill_code_t spill_bench_take_turn(spill_bench_side_t *side, const spill_bench_turn_t *turn,
                                   spill_bench_tally_t *tally, spill_error_t *error);

/* ---- the result ------------------------------------------------------------------------------ */

/* Begin an empty result with time, machine and load. */
void spill_bench_start(const spill_bench_options_t *options, spill_bench_result_t *result);

/* Set the duration, and mark bytes that were not counted as unknown. */
void spill_bench_finish(spill_bench_result_t *result);

#endif
