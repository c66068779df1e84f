/* How arrays grew: the history of an owner's array, and the growth of a path. */
#ifndef SPILL_TOOLS_SCAN_GROWTH_H
#define SPILL_TOOLS_SCAN_GROWTH_H

#include <stddef.h>
#include <stdint.h>

/* ---- history --------------------------------------------------------------------------------- */

/*
 * When the elements of an array came, in bounded memory: the times of evenly spaced elements.
 *
 * Up to `most` times are all kept. When there are more, every second one is dropped, and from then
 * on only every second element is added, then every fourth, and so on. The points are evenly spaced
 * among the elements and not in time, so a few wrong times (an element of 1970, or of 9999) do
 * little harm.
 */

typedef struct spill_history {
    int64_t *points; /* milliseconds since 1970; in the elements' order, ascending once sorted */
    size_t count;
    size_t capacity;
    size_t most;
    int64_t stride; /* elements per point, a power of two */
    int64_t seen;   /* elements that were added */
    int64_t oldest, newest;
    int64_t last;            /* the time of the element that was added last */
    int64_t rising, falling; /* pairs of neighbours with a later, or an earlier, second one */
} spill_history_t;

/* `most`: an even number of points, 8 bytes each. Release at the end. */
void spill_history_init(spill_history_t *history, size_t most);
void spill_history_release(spill_history_t *history);

/* Empty it; the memory is kept. */
void spill_history_clear(spill_history_t *history);

/* Add the array's next element, which came at `time_ms`. */
void spill_history_add(spill_history_t *history, int64_t time_ms);

/* Append all elements of `from`. Both may be histories of several arrays. */
void spill_history_merge(spill_history_t *history, const spill_history_t *from);

/* Copy into `copy`, which is not initialized. The copy has only the memory that its points need. */
void spill_history_copy(const spill_history_t *history, spill_history_t *copy);

/* Sort before you call a function below; do not add after it. */
void spill_history_sort(spill_history_t *history);

/*
 * How many elements came before that moment. Exact if no time was dropped (stride 1), else
 * interpolated between neighbouring points. If the array's elements are in the order of their
 * times, it is then off by at most two strides.
 */
double spill_history_before(const spill_history_t *history, double time_ms);

/* How many elements came from the first moment on and before the second, as precisely. */
double spill_history_between(const spill_history_t *history, double from_ms, double to_ms);

/* How an array grew until `now_ms`. All 0 for fewer than two elements. */
typedef struct spill_pace {
    double per_day;      /* over the newest tenth of the time since its first element */
    double acceleration; /* the rate in the newest quarter of that time, divided by the rate in the
                            quarter before it; 0 if nothing came in one of them */
    double burst;        /* the shortest time in which half of the elements came, as a share of the
                            time in which all came: near a half if steady, near 0 in bursts */
} spill_pace_t;

spill_pace_t spill_history_pace(const spill_history_t *history, int64_t now_ms);

/* ---- growth ---------------------------------------------------------------------------------- */

/*
 * How the arrays of one path grow: the times of all their elements, and the histories of a fair
 * sample of the owners, from which forecast.h learns how far a rate can be trusted here.
 *
 * Memory: at most SPILL_GROWTH_OWNERS histories of SPILL_GROWTH_POINTS points and one of
 * SPILL_GROWTH_ALL_POINTS, 8 bytes a point: 0.6 MB, and none before the first long array.
 * Not thread-safe: each thread has its own, and they are merged at the end.
 */

enum {
    SPILL_GROWTH_OWNERS = 256,
    SPILL_GROWTH_POINTS = 256,
    SPILL_GROWTH_ALL_POINTS = 4096,
    /* Arrays that are shorter have no useful history. */
    SPILL_GROWTH_LENGTH_MIN = 20
};

typedef struct spill_growth_owner {
    uint64_t hash;
    spill_history_t history; /* sorted */
} spill_growth_owner_t;

typedef struct spill_growth {
    spill_history_t all;
    /* The owners of long arrays with the lowest hashes: a random sample, which does not depend on
     * the order of the documents. The highest hash first (a heap). */
    spill_growth_owner_t *owners;
    size_t owner_count;
} spill_growth_t;

void spill_growth_init(spill_growth_t *growth);
void spill_growth_release(spill_growth_t *growth);

/*
 * Add one array's history, of SPILL_GROWTH_POINTS points, in any order; `owner` is a spill_hash of
 * the document's _id. O(points).
 */
void spill_growth_add(spill_growth_t *growth, uint64_t owner, const spill_history_t *history);

/* Add what another thread collected for the same path. O(points of both). */
void spill_growth_merge(spill_growth_t *growth, const spill_growth_t *from);

#endif
