/*
 * The benchmark of growing arrays: appends and newest pages, at several lengths, in one unbounded
 * document and in each layout, on any store.
 *
 * All its collections and definitions have names that begin with spillway_bench. A run never
 * touches what already exists under these names, and leaves nothing under them.
 *
 * The folder's files, in the order to read:
 *   samples.c        elements, threads that begin together, statistics
 *   subject.c        arrays in any layout; baseline.c has the unbounded ones
 *   bench_side.c     one kind of array, its threads, and the cost
 *   place.c          the names in a store
 *   bench_run.c      one length after another; tune.c finds the best threshold and page
 *   bench_result.c   rows, JSON, plots
 */
#ifndef SPILL_TOOLS_BENCH_BENCH_H
#define SPILL_TOOLS_BENCH_BENCH_H

#include "tools/bench/samples.h"

#include <spillway/spillway.h>

#include <stdatomic.h>

/* The kinds of arrays that are measured, in the order of the tables. */
typedef enum spill_bench_kind {
    SPILL_BENCH_UNBOUNDED,
    SPILL_BENCH_NEWEST, /* outlier, keep newest */
    SPILL_BENCH_OLDEST,
    SPILL_BENCH_SUBSET,
    SPILL_BENCH_REFERENCE,
    SPILL_BENCH_BUCKET, /* windows of an hour; elements are a second apart */
    SPILL_BENCH_CAPPED,
    SPILL_BENCH_KINDS
} spill_bench_kind_t;

const char *spill_bench_kind_name(spill_bench_kind_t kind);

enum {
    SPILL_BENCH_LENGTHS_MAX = 16,
    SPILL_BENCH_PAGE = 20,  /* elements of a newest page */
    SPILL_BENCH_READS = 20, /* newest pages that a thread reads in a round */
    SPILL_BENCH_GROWTH = 5, /* per cent that an unbounded array grows in a round at most */
    SPILL_BENCH_TUNED_MAX = 32
};

/* The progress. `done` and `whole` count pieces of work of about the same duration. */
typedef struct spill_bench_progress {
    const char *what; /* "filling", "measuring", "dropping" */
    const char *kind;
    int64_t length;
    int64_t done, whole;
} spill_bench_progress_t;

typedef struct spill_bench_options {
    const char *uri;  /* of the store, as spill_store_open takes it */
    const char *made; /* the store's name in the output; without a password */
    spill_durability_t durability;
    int64_t lengths[SPILL_BENCH_LENGTHS_MAX];
    size_t length_count;
    bool kinds[SPILL_BENCH_KINDS];
    int threads; /* measured besides one thread; 1: only one. At most SPILL_CREW_MAX */
    int rounds;  /* measured rounds; one before them warms up */
    int64_t element_bytes;
    int64_t threshold, page;
    unsigned file_mode; /* of a new embedded store, as in spill_store_options_t */
    atomic_bool *stop;  /* or NULL: once true, the run ends and drops what it created */
    void (*progress)(void *context, const spill_bench_progress_t *progress); /* or NULL */
    void *context;
} spill_bench_options_t;

/* Set the defaults: lengths 100 to 10 000, all kinds, 4 threads, 9 rounds, 200 bytes, threshold and
 * page 100. */
void spill_bench_options_init(spill_bench_options_t *options);

/* The cost of one operation. Each round has a mean, over whole cycles of spills. */
typedef struct spill_bench_cost {
    int64_t operations;
    spill_median_t us; /* of the rounds' means: microseconds of a thread per operation */
    double p50_us, p90_us, p99_us, max_us;
    double per_second;                /* of all threads together; the median of the rounds */
    double bytes_written, bytes_read; /* per operation, as in spill_counters_t; -1: unknown */
} spill_bench_cost_t;

typedef struct spill_bench_row {
    spill_bench_kind_t kind;
    int64_t length; /* at the beginning */
    int threads;
    bool over; /* an array of this length does not fit a document: not measured */
    spill_bench_cost_t append, newest;
    int64_t head_bytes;     /* the owner's own document; a window's first one */
    int64_t document_bytes; /* the largest of the first hundred */
    int64_t bytes_max;      /* the most that a document may have */
    int64_t given, found;   /* elements appended to its owners, and elements found */
} spill_bench_row_t;

/* One pair of bounds, for layout outlier, keep newest. */
typedef struct spill_bench_tuned {
    int64_t threshold, page;
    spill_bench_cost_t append, newest;
    double cost_us; /* of an append and a read of a newest page */
    bool final;     /* measured in the last pass too */
} spill_bench_tuned_t;

typedef struct spill_bench_result {
    int64_t started_ms;
    double seconds;
    double load_before, load_after; /* the machine's, over the last minute */
    int processors;
    bool counts_read; /* bytes read are known */
    spill_bench_row_t *rows;
    size_t row_count;
    spill_bench_tuned_t tuned[SPILL_BENCH_TUNED_MAX]; /* the best one first */
    size_t tuned_count;
} spill_bench_result_t;

/*
 * Run it. SPILL_CANCELLED: it was stopped. SPILL_REFUSED: something exists under its names already.
 * Release the result in every case. On an embedded store no other process may write.
 */
spill_code_t spill_bench_run(const spill_bench_options_t *options, spill_bench_result_t *result,
                             spill_error_t *error);

/*
 * Find the threshold and page with the least cost on this store, for one append and one read of a
 * newest page. Of the options' lengths, kinds, rounds and threads only the last two are used.
 */
spill_code_t spill_bench_tune(const spill_bench_options_t *options, spill_bench_result_t *result,
                              spill_error_t *error);

void spill_bench_release(spill_bench_result_t *result);

/* Drop what a killed run has left under its names. */
spill_code_t spill_bench_clean(const spill_bench_options_t *options, spill_error_t *error);

/* The row, or NULL. */
const spill_bench_row_t *spill_bench_find(const spill_bench_result_t *result,
                                          spill_bench_kind_t kind, int64_t length, int threads);

/*
 * The longest length at which an unbounded array was measured; if none was, the longest length; 0
 * without rows.
 */
int64_t spill_bench_proof_length(const spill_bench_result_t *result);

/* Make one JSON document; docs/how-to/bench.md has its schema. */
void spill_bench_to_bson(const spill_bench_options_t *options, const spill_bench_result_t *result,
                         bson_t *document);

/* Write append.svg, threads.svg and documents.svg to a folder, which is created if necessary. */
spill_code_t spill_bench_plots(const spill_bench_options_t *options,
                               const spill_bench_result_t *result, const char *folder,
                               spill_error_t *error);

#endif
