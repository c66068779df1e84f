/* One kind of array on a store, the threads that work on it, and the cost. */
#include "tools/bench/bench_side.h"

#include "tools/bench/samples.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

static const spill_subject_kind_t kinds[SPILL_BENCH_KINDS] = {
    [SPILL_BENCH_UNBOUNDED] = {.name = "unbounded"},
    [SPILL_BENCH_NEWEST] = {"newest", "feed-recent", SPILL_LAYOUT_OUTLIER, SPILL_KEEP_NEWEST,
                            SPILL_WINDOW_NONE},
    [SPILL_BENCH_OLDEST] = {"oldest", "feed", SPILL_LAYOUT_OUTLIER, SPILL_KEEP_OLDEST,
                            SPILL_WINDOW_NONE},
    [SPILL_BENCH_SUBSET] = {"subset", "reviews-subset", SPILL_LAYOUT_SUBSET, SPILL_KEEP_NEWEST,
                            SPILL_WINDOW_NONE},
    [SPILL_BENCH_REFERENCE] = {"reference", "reviews-separate", SPILL_LAYOUT_REFERENCE,
                               SPILL_KEEP_NEWEST, SPILL_WINDOW_NONE},
    [SPILL_BENCH_BUCKET] = {"bucket", "reviews-bucket", SPILL_LAYOUT_BUCKET, SPILL_KEEP_OLDEST,
                            SPILL_WINDOW_HOUR},
    [SPILL_BENCH_CAPPED] = {"capped", "feed-recent", SPILL_LAYOUT_CAPPED, SPILL_KEEP_NEWEST,
                            SPILL_WINDOW_NONE},
};

const char *spill_bench_kind_name(spill_bench_kind_t kind)
{
    return kinds[kind].name;
}

/* ---- opening --------------------------------------------------------------------------------- */

spill_code_t spill_bench_side_open(spill_bench_side_t *side, spill_bench_kind_t kind,
                                   const char *suffix, const spill_subject_bounds_t *bounds,
                                   spill_store_t *store, const spill_bench_options_t *options,
                                   spill_error_t *error)
{
    spill_definition_t definition;
    *side = (spill_bench_side_t){.kind = kind, .options = options, .store = store};
    snprintf(side->name, sizeof side->name, SPILL_BENCH_NAME "_%s", suffix);
    if (kind == SPILL_BENCH_UNBOUNDED)
        return spill_baseline_open(store, side->name, options->element_bytes, &side->baseline,
                                   error);
    SPILL_TRY(spill_subject_definition(&kinds[kind], side->name, bounds, &definition, error));
    SPILL_TRY(spill_store_define(store, &definition, error));
    return spill_array_open(store, side->name, &side->array, error);
}

void spill_bench_side_close(spill_bench_side_t *side)
{
    spill_array_close(side->array);
    side->array = NULL;
    if (side->baseline.store)
        spill_baseline_close(&side->baseline);
    side->baseline.store = NULL;
}

/* ---- tallies --------------------------------------------------------------------------------- */

void spill_bench_tally_release(spill_bench_tally_t *tally)
{
    spill_samples_release(&tally->means);
    spill_samples_release(&tally->rates);
    spill_samples_release(&tally->latencies);
}

spill_bench_cost_t spill_bench_tally_cost(spill_bench_tally_t *tally)
{
    double count = (double)tally->latencies.count;
    spill_bench_cost_t cost = {.operations = (int64_t)tally->latencies.count,
                               .us = spill_samples_median(&tally->means),
                               .p50_us = spill_samples_percentile(&tally->latencies, 500),
                               .p90_us = spill_samples_percentile(&tally->latencies, 900),
                               .p99_us = spill_samples_percentile(&tally->latencies, 990),
                               .max_us = spill_samples_percentile(&tally->latencies, 1000),
                               .per_second = spill_samples_median(&tally->rates).median};
    cost.bytes_written = count > 0 ? (double)tally->bytes_written / count : -1;
    cost.bytes_read = count > 0 ? (double)tally->bytes_read / count : -1;
    return cost;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Shared by the threads of a turn. */
typedef struct work {
    spill_bench_side_t *side;
    const spill_bench_turn_t *turn;
    double *latencies_us; /* the latencies of one thread after another */
    pthread_mutex_t lock; /* guards the first error */
    spill_code_t code;
    spill_error_t error;
} work_t;

/* Keep the first error. False: the thread must end. */
static bool keep_error(work_t *work, spill_code_t code, const spill_error_t *error)
{
    pthread_mutex_lock(&work->lock);
    if (code != SPILL_OK && work->code == SPILL_OK) {
        work->code = code;
        work->error = *error;
    }
    bool good = work->code == SPILL_OK;
    pthread_mutex_unlock(&work->lock);
    return good;
}

static spill_code_t append_one(spill_bench_side_t *side, const char *owner,
                               const spill_value_t *name, const spill_value_t *element,
                               spill_error_t *error)
{
    return side->array ? spill_subject_append(side->array, name, element, 1, error)
                       : spill_baseline_append(&side->baseline, owner, element, error);
}

static spill_code_t read_one(spill_bench_side_t *side, const char *owner, const spill_value_t *name,
                             spill_error_t *error)
{
    size_t count;
    return side->array
               ? spill_subject_newest(side->array, name, SPILL_BENCH_PAGE, &count, error)
               : spill_baseline_newest(&side->baseline, owner, SPILL_BENCH_PAGE, &count, error);
}

static void run_thread(void *context, int thread, int count)
{
    work_t *work = context;
    const spill_bench_turn_t *turn = work->turn;
    size_t size = (size_t)work->side->options->element_bytes;
    uint8_t *bytes = bson_malloc(size);
    spill_value_t element = {
        .data = bytes, .size_bytes = (uint32_t)size, .type = BSON_TYPE_DOCUMENT};
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_utf8(&storage, turn->owner);
    spill_error_t error;
    spill_code_t code = SPILL_OK;
    for (int i = 0; i < count && keep_error(work, code, &error); i++) {
        if (spill_bench_stopped(work->side->options)) {
            code = spill_fail(&error, SPILL_CANCELLED, "the benchmark was interrupted");
            continue;
        }
        if (turn->from >= 0)
            spill_bench_element(bytes, size, (uint64_t)(turn->from + thread * count + i));
        double began = spill_crew_now();
        code = turn->from >= 0 ? append_one(work->side, turn->owner, &name, &element, &error)
                               : read_one(work->side, turn->owner, &name, &error);
        work->latencies_us[thread * count + i] = (spill_crew_now() - began) * 1e6;
    }
    keep_error(work, code, &error);
    bson_destroy(&storage);
    bson_free(bytes);
}

static void add_measurements(spill_bench_tally_t *tally, const work_t *work, double seconds,
                             const spill_counters_t *before, const spill_counters_t *after)
{
    int operations = work->turn->threads * work->turn->count;
    double sum = 0;
    for (int i = 0; i < operations; i++) {
        spill_samples_add(&tally->latencies, work->latencies_us[i]);
        sum += work->latencies_us[i];
    }
    spill_samples_add(&tally->means, sum / operations);
    spill_samples_add(&tally->rates, operations / seconds);
    tally->bytes_written += after->bytes_written - before->bytes_written;
    tally->bytes_read += after->bytes_read - before->bytes_read;
}

spill_code_t spill_bench_take_turn(spill_bench_side_t *side, const spill_bench_turn_t *turn,
                                   spill_bench_tally_t *tally, spill_error_t *error)
{
    double seconds = 0;
    spill_counters_t before, after;
    work_t work = {.side = side, .turn = turn, .lock = PTHREAD_MUTEX_INITIALIZER};
    work.latencies_us = bson_malloc0((size_t)turn->threads * (size_t)turn->count * sizeof(double));
    spill_store_counters(side->store, &before);
    spill_code_t code =
        spill_crew_run(run_thread, &work, turn->threads, turn->count, &seconds, error);
    spill_store_counters(side->store, &after);
    if (code == SPILL_OK && work.code != SPILL_OK) {
        code = work.code;
        *error = work.error;
    }
    if (code == SPILL_OK)
        add_measurements(tally, &work, seconds, &before, &after);
    bson_free(work.latencies_us);
    return code;
}
