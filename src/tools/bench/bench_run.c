/* The benchmark: one length after another; at each length the kinds take turns. */
#include "tools/bench/bench_side.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    MODES = 2, /* one thread, and the requested number of threads */
    OWNER_SIZE = 48,
    GROWTH_MAX = 10,     /* per cent that a bounded array may grow before the next owner is used */
    FILL_BATCH = 500,    /* elements that count as one piece of work for the progress */
    TURN_MIN = 5,        /* pushes of a round to an unbounded array, if they fit */
    BUDGET_US = 1000000, /* most time for these together */
};

/* The owners of one side at one length, and their state. */
typedef struct owners {
    int64_t given[1024]; /* elements of each */
    int count;
    int at;
    int64_t grown; /* elements appended to owner `at` */
} owners_t;

/* A side at one length. */
typedef struct entry {
    spill_bench_side_t *side;
    bool over;
    owners_t owners;
    spill_bench_tally_t append[MODES], newest[MODES], warm;
    int64_t found, given;
    int64_t document_bytes; /* unbounded: after the last turn */
} entry_t;

typedef struct run {
    const spill_bench_options_t *options;
    spill_bench_place_t place;
    spill_bench_side_t sides[SPILL_BENCH_KINDS];
    size_t side_count;
    int64_t length;
    entry_t *entries; /* for `length`, one per side */
    spill_bench_progress_t progress;
    spill_bench_result_t *result;
} run_t;

/* ---- the operations of a turn ---------------------------------------------------------------- */

static int modes_of(const spill_bench_options_t *options)
{
    return options->threads > 1 ? MODES : 1;
}

static int threads_of(const run_t *run, int mode)
{
    return mode == 0 ? 1 : run->options->threads;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Appends of each thread to a bounded array: together they are whole cycles of spills. */
static int count_of(const run_t *run, int mode)
{
    int64_t page = run->options->page, threads = threads_of(run, mode);
    return (int)(page / common_divisor(page, threads));
}

/* Pushes of each thread to an unbounded array: few, so that it grows little, in bounded time. */
static int push_count(const run_t *run, const entry_t *entry, int mode)
{
    const spill_samples_t *means = mode == 0 ? &entry->append[0].means : &entry->append[1].means;
    int64_t most = run->length * SPILL_BENCH_GROWTH / 100;
    int64_t threads = threads_of(run, mode), count = most < TURN_MIN ? most : TURN_MIN;
    if (means->count > 0) {
        count = (int64_t)(BUDGET_US * (double)threads / (means->values[means->count - 1] + 1));
        count = count > most ? most : count;
        count = count > run->options->page ? run->options->page : count;
        count = count < TURN_MIN && most >= TURN_MIN ? TURN_MIN : count;
    }
    return (int)(count >= threads ? count / threads : 1);
}

/* ---- owners ---------------------------------------------------------------------------------- */

static void owner_name(const run_t *run, int number, char name[OWNER_SIZE])
{
    snprintf(name, OWNER_SIZE, "length-%" PRId64 "-%04d", run->length, number);
}

/* Use the next owner if the current one would grow too much. */
static void choose_owner(owners_t *owners, int64_t length, int64_t operations)
{
    if (owners->grown > 0 && (owners->grown + operations) * 100 > length * GROWTH_MAX) {
        owners->at++;
        owners->grown = 0;
    }
    owners->grown += operations;
}

/* How many owners a bounded side needs: runs through the rounds without doing anything. */
static int owners_needed(const run_t *run)
{
    owners_t owners = {0};
    for (int round = -1; round < run->options->rounds; round++)
        for (int mode = 0; mode < modes_of(run->options); mode++)
            choose_owner(&owners, run->length,
                         (int64_t)count_of(run, mode) * threads_of(run, mode));
    return owners.at + 1;
}

/* ---- progress -------------------------------------------------------------------------------- */

static void show_progress(run_t *run, const char *what, const spill_bench_side_t *side)
{
    run->progress.what = what;
    run->progress.kind = side ? spill_bench_kind_name(side->kind) : "";
    run->progress.length = run->length;
    if (run->options->progress)
        run->options->progress(run->options->context, &run->progress);
}

static int64_t pieces_of(run_t *run)
{
    const spill_bench_options_t *options = run->options;
    int64_t pieces = 0;
    for (size_t i = 0; i < options->length_count; i++) {
        run->length = options->lengths[i];
        int64_t fills = owners_needed(run) * (run->length / FILL_BATCH + 1);
        int64_t turns = (int64_t)(options->rounds + 1) * modes_of(options);
        pieces += (int64_t)run->side_count * (fills + turns);
    }
    return pieces;
}

/* ---- filling --------------------------------------------------------------------------------- */

static spill_code_t fill_owner(run_t *run, entry_t *entry, int owner, spill_error_t *error)
{
    char text[OWNER_SIZE];
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    owner_name(run, owner, text);
    spill_value_t name = spill_value_from_utf8(&storage, text);
    for (int64_t from = 0; from < run->length; from += FILL_BATCH) {
        int64_t to = run->length - from < FILL_BATCH ? run->length : from + FILL_BATCH;
        if (spill_bench_stopped(run->options))
            return spill_fail(error, SPILL_CANCELLED, "the benchmark was interrupted");
        SPILL_TRY(spill_subject_fill(entry->side->array, &name, run->options->element_bytes, from,
                                     to, error));
        run->progress.done++;
        show_progress(run, "filling", entry->side);
    }
    entry->owners.given[owner] = run->length;
    return SPILL_OK;
}

static spill_code_t fill_owners(run_t *run, entry_t *entry, spill_error_t *error)
{
    int count = owners_needed(run);
    if (entry->side->kind == SPILL_BENCH_UNBOUNDED) {
        int64_t longest =
            run->length + run->length * SPILL_BENCH_GROWTH / 100 + run->options->threads + TURN_MIN;
        entry->over = !spill_baseline_fits(&entry->side->baseline, longest);
        run->progress.done += count * (run->length / FILL_BATCH + 1);
        return SPILL_OK;
    }
    entry->owners.count = count;
    for (int i = 0; i < count; i++)
        SPILL_TRY(fill_owner(run, entry, i, error));
    return SPILL_OK;
}

/* ---- turns ----------------------------------------------------------------------------------- */

static spill_code_t read_pages(run_t *run, entry_t *entry, int mode, const char *owner, bool warm,
                               spill_error_t *error)
{
    spill_bench_turn_t reads = {owner, -1, threads_of(run, mode), SPILL_BENCH_READS};
    return spill_bench_take_turn(entry->side, &reads, warm ? &entry->warm : &entry->newest[mode],
                                 error);
}

/* The document is created again for each round, so that it always has the same length. */
static spill_code_t unbounded_turn(run_t *run, entry_t *entry, int mode, bool warm,
                                   spill_error_t *error)
{
    spill_baseline_t *baseline = &entry->side->baseline;
    char owner[OWNER_SIZE];
    int64_t found = 0;
    owner_name(run, 0, owner);
    spill_bench_turn_t pushes = {owner, run->length, threads_of(run, mode),
                                 push_count(run, entry, mode)};
    SPILL_TRY(spill_baseline_put(baseline, owner, run->length, error));
    SPILL_TRY(spill_bench_take_turn(entry->side, &pushes,
                                    warm ? &entry->warm : &entry->append[mode], error));
    SPILL_TRY(read_pages(run, entry, mode, owner, warm, error));
    SPILL_TRY(spill_baseline_measure(baseline, owner, &found, &entry->document_bytes, error));
    entry->given += run->length + (int64_t)pushes.threads * pushes.count;
    entry->found += found;
    return SPILL_OK;
}

static spill_code_t bounded_turn(run_t *run, entry_t *entry, int mode, bool warm,
                                 spill_error_t *error)
{
    owners_t *owners = &entry->owners;
    int threads = threads_of(run, mode), count = count_of(run, mode);
    char owner[OWNER_SIZE];
    choose_owner(owners, run->length, (int64_t)threads * count);
    owner_name(run, owners->at, owner);
    spill_bench_turn_t appends = {owner, owners->given[owners->at], threads, count};
    SPILL_TRY(spill_bench_take_turn(entry->side, &appends,
                                    warm ? &entry->warm : &entry->append[mode], error));
    owners->given[owners->at] += (int64_t)threads * count;
    return read_pages(run, entry, mode, owner, warm, error);
}

/* In each round every side has a turn, so that other load on the machine affects all. */
static spill_code_t measure_rounds(run_t *run, spill_error_t *error)
{
    for (int round = -1; round < run->options->rounds; round++)
        for (int mode = 0; mode < modes_of(run->options); mode++)
            for (size_t i = 0; i < run->side_count; i++) {
                entry_t *entry = &run->entries[i];
                show_progress(run, "measuring", entry->side);
                if (entry->side->kind != SPILL_BENCH_UNBOUNDED)
                    SPILL_TRY(bounded_turn(run, entry, mode, round < 0, error));
                else if (!entry->over)
                    SPILL_TRY(unbounded_turn(run, entry, mode, round < 0, error));
                run->progress.done++;
            }
    return SPILL_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static spill_code_t measure_sizes(run_t *run, entry_t *entry, spill_subject_sizes_t *sizes,
                                  spill_error_t *error)
{
    *sizes = (spill_subject_sizes_t){entry->document_bytes, entry->document_bytes};
    for (int i = 0; i < entry->owners.count; i++) {
        char text[OWNER_SIZE];
        SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
        int64_t found;
        owner_name(run, i, text);
        spill_value_t name = spill_value_from_utf8(&storage, text);
        SPILL_TRY(spill_subject_given(entry->side->array, &name, &found, error));
        entry->found += found;
        entry->given += entry->owners.given[i];
        if (i == 0)
            SPILL_TRY(spill_subject_sizes(entry->side->array, &name, run->options->element_bytes,
                                          entry->owners.given[0] - 1, sizes, error));
    }
    return SPILL_OK;
}

static int64_t bytes_max_of(const spill_bench_side_t *side)
{
    if (!side->array)
        return side->baseline.bytes_max;
    const spill_bounds_t *bounds = &spill_array_get_definition(side->array)->bounds;
    return bounds->head_bytes_max > bounds->page_bytes_max ? bounds->head_bytes_max
                                                           : bounds->page_bytes_max;
}

static spill_code_t add_rows(run_t *run, entry_t *entry, spill_error_t *error)
{
    spill_bench_result_t *result = run->result;
    spill_subject_sizes_t sizes;
    SPILL_TRY(measure_sizes(run, entry, &sizes, error));
    for (int mode = 0; mode < modes_of(run->options); mode++) {
        result->rows = bson_realloc(result->rows, (result->row_count + 1) * sizeof *result->rows);
        result->rows[result->row_count++] =
            (spill_bench_row_t){.kind = entry->side->kind,
                                .length = run->length,
                                .threads = threads_of(run, mode),
                                .over = entry->over,
                                .append = spill_bench_tally_cost(&entry->append[mode]),
                                .newest = spill_bench_tally_cost(&entry->newest[mode]),
                                .head_bytes = sizes.head,
                                .document_bytes = sizes.largest,
                                .bytes_max = bytes_max_of(entry->side),
                                .given = entry->given,
                                .found = entry->found};
    }
    return SPILL_OK;
}

static void release_entry(entry_t *entry)
{
    for (int mode = 0; mode < MODES; mode++) {
        spill_bench_tally_release(&entry->append[mode]);
        spill_bench_tally_release(&entry->newest[mode]);
    }
    spill_bench_tally_release(&entry->warm);
}

static spill_code_t measure_length(run_t *run, spill_error_t *error)
{
    for (size_t i = 0; i < run->side_count; i++) {
        run->entries[i].side = &run->sides[i];
        SPILL_TRY(fill_owners(run, &run->entries[i], error));
    }
    SPILL_TRY(measure_rounds(run, error));
    for (size_t i = 0; i < run->side_count; i++)
        SPILL_TRY(add_rows(run, &run->entries[i], error));
    return SPILL_OK;
}

static spill_code_t run_length(run_t *run, int64_t length, spill_error_t *error)
{
    run->length = length;
    run->entries = bson_malloc0(run->side_count * sizeof *run->entries);
    spill_code_t code = measure_length(run, error);
    for (size_t i = 0; i < run->side_count; i++)
        release_entry(&run->entries[i]);
    bson_free(run->entries);
    return code;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static spill_code_t open_sides(run_t *run, spill_error_t *error)
{
    const spill_bench_options_t *options = run->options;
    spill_subject_bounds_t bounds = {options->threshold, options->page, options->element_bytes};
    for (int kind = 0; kind < SPILL_BENCH_KINDS; kind++)
        if (options->kinds[kind])
            SPILL_TRY(spill_bench_side_open(&run->sides[run->side_count++],
                                            (spill_bench_kind_t)kind,
                                            spill_bench_kind_name((spill_bench_kind_t)kind),
                                            &bounds, run->place.store, options, error));
    return SPILL_OK;
}

void spill_bench_options_init(spill_bench_options_t *options)
{
    *options = (spill_bench_options_t){.lengths = {100, 1000, 5000, 10000},
                                       .length_count = 4,
                                       .threads = 4,
                                       .rounds = 9,
                                       .element_bytes = 200,
                                       .threshold = 100,
                                       .page = 100};
    for (int kind = 0; kind < SPILL_BENCH_KINDS; kind++)
        options->kinds[kind] = true;
}

spill_code_t spill_bench_run(const spill_bench_options_t *options, spill_bench_result_t *result,
                             spill_error_t *error)
{
    run_t run = {.options = options, .result = result};
    spill_bench_start(options, result);
    spill_code_t code = spill_bench_enter(options, &run.place, error);
    if (code == SPILL_OK)
        code = open_sides(&run, error);
    run.progress.whole = pieces_of(&run);
    for (size_t i = 0; code == SPILL_OK && i < options->length_count; i++)
        code = run_length(&run, options->lengths[i], error);
    for (size_t i = 0; i < run.side_count; i++)
        spill_bench_side_close(&run.sides[i]);
    show_progress(&run, "dropping", NULL);
    code = spill_bench_leave(&run.place, code, error);
    spill_bench_finish(result);
    return code;
}
