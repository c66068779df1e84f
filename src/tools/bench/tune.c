/*
 * Finds the threshold and page with the least cost on a store. All pairs take turns for a few
 * rounds; then the best quarter of them continues for the requested number of rounds.
 */
#include "tools/bench/bench_side.h"
#include "util/error.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    FIRST_ROUNDS = 3,
    APPENDS_MIN = 200, /* per round, in whole cycles */
    PAGES_FILLED = 3,  /* beyond the threshold, before the first round */
    FINALISTS = 4,     /* a quarter of the pairs, and at least this many */
};

static const struct {
    int64_t threshold, page;
} pairs[] = {{5, 20},   {10, 20},   {20, 20},   {10, 50},    {25, 50},    {50, 50},
             {20, 100}, {50, 100},  {100, 100}, {50, 200},   {100, 200},  {200, 200},
             {50, 500}, {200, 500}, {500, 500}, {100, 1000}, {1000, 1000}};

enum { PAIRS = sizeof pairs / sizeof pairs[0] };

_Static_assert((int)PAIRS <= (int)SPILL_BENCH_TUNED_MAX, "a result has room for all pairs");

typedef struct candidate {
    spill_bench_side_t side;
    int64_t threshold, page;
    int64_t given;
    spill_bench_tally_t append, newest, warm;
    double cost_us; /* of the median rounds so far */
    bool final;
} candidate_t;

typedef struct tuning {
    const spill_bench_options_t *options;
    spill_bench_place_t place;
    candidate_t candidates[PAIRS];
    spill_bench_progress_t progress;
} tuning_t;

static void report(tuning_t *tuning, const char *what, const candidate_t *candidate)
{
    tuning->progress.what = what;
    tuning->progress.kind = "newest";
    tuning->progress.length = candidate ? candidate->threshold : 0;
    if (tuning->options->progress)
        tuning->options->progress(tuning->options->context, &tuning->progress);
}

static spill_code_t open_candidate(tuning_t *tuning, candidate_t *candidate, spill_error_t *error)
{
    const spill_bench_options_t *options = tuning->options;
    char suffix[64];
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "tuned");
    spill_subject_bounds_t bounds = {candidate->threshold, candidate->page, options->element_bytes};
    snprintf(suffix, sizeof suffix, "%d_%d", (int)candidate->threshold, (int)candidate->page);
    SPILL_TRY(spill_bench_side_open(&candidate->side, SPILL_BENCH_NEWEST, suffix, &bounds,
                                    tuning->place.store, options, error));
    candidate->given = candidate->threshold + PAGES_FILLED * candidate->page;
    SPILL_TRY(spill_subject_fill(candidate->side.array, &owner, options->element_bytes, 0,
                                 candidate->given, error));
    if (spill_bench_stopped(options))
        return spill_fail(error, SPILL_CANCELLED, "the benchmark was interrupted");
    return SPILL_OK;
}

/* Whole cycles, and at least APPENDS_MIN appends. */
static int appends_of(const candidate_t *candidate)
{
    int64_t cycles = (APPENDS_MIN + candidate->page - 1) / candidate->page;
    return (int)(cycles * candidate->page);
}

static spill_code_t measure_turn(candidate_t *candidate, bool warm, spill_error_t *error)
{
    spill_bench_turn_t appends = {"tuned", candidate->given, 1, appends_of(candidate)};
    spill_bench_turn_t reads = {"tuned", -1, 1, SPILL_BENCH_READS};
    candidate->given += appends.count;
    SPILL_TRY(spill_bench_take_turn(&candidate->side, &appends,
                                    warm ? &candidate->warm : &candidate->append, error));
    return spill_bench_take_turn(&candidate->side, &reads,
                                 warm ? &candidate->warm : &candidate->newest, error);
}

static spill_code_t measure_rounds(tuning_t *tuning, size_t count, int from, int rounds,
                                   spill_error_t *error)
{
    for (int round = from; round < rounds; round++)
        for (size_t i = 0; i < count; i++) {
            report(tuning, "tuning", &tuning->candidates[i]);
            SPILL_TRY(measure_turn(&tuning->candidates[i], round < 0, error));
            tuning->progress.done++;
        }
    for (size_t i = 0; i < count; i++) {
        candidate_t *candidate = &tuning->candidates[i];
        candidate->cost_us = spill_samples_median(&candidate->append.means).median +
                             spill_samples_median(&candidate->newest.means).median;
    }
    return SPILL_OK;
}

/* Finalists come first, even if others were faster in their few rounds. */
static int compare(const void *left, const void *right)
{
    const candidate_t *a = left, *b = right;
    if (a->final != b->final)
        return a->final ? -1 : 1;
    return (a->cost_us > b->cost_us) - (a->cost_us < b->cost_us);
}

static void sort_candidates(tuning_t *tuning)
{
    qsort(tuning->candidates, PAIRS, sizeof tuning->candidates[0], compare);
}

static spill_code_t run_passes(tuning_t *tuning, spill_error_t *error)
{
    enum { FINAL = PAIRS / FINALISTS > FINALISTS ? PAIRS / FINALISTS : FINALISTS };
    int rounds = tuning->options->rounds;
    tuning->progress.whole = (int64_t)PAIRS * (FIRST_ROUNDS + 2) + (int64_t)FINAL * rounds;
    for (size_t i = 0; i < PAIRS; i++) {
        candidate_t *candidate = &tuning->candidates[i];
        candidate->threshold = pairs[i].threshold;
        candidate->page = pairs[i].page;
        report(tuning, "filling", candidate);
        SPILL_TRY(open_candidate(tuning, candidate, error));
        tuning->progress.done++;
    }
    SPILL_TRY(measure_rounds(tuning, PAIRS, -1, FIRST_ROUNDS, error));
    sort_candidates(tuning);
    for (size_t i = 0; i < FINAL; i++)
        tuning->candidates[i].final = true;
    SPILL_TRY(measure_rounds(tuning, FINAL, 0, rounds, error));
    sort_candidates(tuning);
    return SPILL_OK;
}

static void keep_results(tuning_t *tuning, spill_bench_result_t *result)
{
    for (size_t i = 0; i < PAIRS; i++) {
        candidate_t *candidate = &tuning->candidates[i];
        result->tuned[result->tuned_count++] =
            (spill_bench_tuned_t){.threshold = candidate->threshold,
                                  .page = candidate->page,
                                  .append = spill_bench_tally_cost(&candidate->append),
                                  .newest = spill_bench_tally_cost(&candidate->newest),
                                  .cost_us = candidate->cost_us,
                                  .final = candidate->final};
    }
}

static void release(tuning_t *tuning)
{
    for (size_t i = 0; i < PAIRS; i++) {
        candidate_t *candidate = &tuning->candidates[i];
        spill_bench_side_close(&candidate->side);
        spill_bench_tally_release(&candidate->append);
        spill_bench_tally_release(&candidate->newest);
        spill_bench_tally_release(&candidate->warm);
    }
}

spill_code_t spill_bench_tune(const spill_bench_options_t *options, spill_bench_result_t *result,
                              spill_error_t *error)
{
    tuning_t tuning = {.options = options};
    spill_bench_start(options, result);
    spill_code_t code = spill_bench_enter(options, &tuning.place, error);
    if (code == SPILL_OK)
        code = run_passes(&tuning, error);
    if (code == SPILL_OK)
        keep_results(&tuning, result);
    release(&tuning);
    report(&tuning, "dropping", NULL);
    code = spill_bench_leave(&tuning.place, code, error);
    spill_bench_finish(result);
    return code;
}
