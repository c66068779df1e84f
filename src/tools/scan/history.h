/*
 * When the elements of an array came, in bounded memory: the times of evenly spaced ones.
 *
 * Up to `most` times are kept as they are. When there are more, every second of them goes, and from
 * then on every second element, every fourth, and so on is looked at. Points that are evenly spaced
 * among the elements, and not in time, keep their worth beside a few times that are far off (an
 * element of 1970, or of 9999).
 */
#ifndef SPILL_TOOLS_SCAN_HISTORY_H
#define SPILL_TOOLS_SCAN_HISTORY_H

#include <stddef.h>
#include <stdint.h>

typedef struct spill_history {
    int64_t *points; /* milliseconds since 1970; in the elements' order, ascending once sorted */
    size_t count;
    size_t capacity;
    size_t most;
    int64_t stride; /* one point for so many elements, a power of two */
    int64_t seen;   /* elements that were added */
    int64_t oldest, newest;
    int64_t last;            /* the time of the element that was added last */
    int64_t rising, falling; /* neighbours of which the second is later, or earlier */
} spill_history_t;

/* `most`: an even number of points, 8 bytes each. Release in the end. */
void spill_history_init(spill_history_t *history, size_t most);
void spill_history_release(spill_history_t *history);

/* Empty; the memory is kept. */
void spill_history_clear(spill_history_t *history);

/* The array's next element came at `time_ms`. */
void spill_history_add(spill_history_t *history, int64_t time_ms);

/* All elements of `from`, as if they followed. Both may be of several arrays. */
void spill_history_merge(spill_history_t *history, const spill_history_t *from);

/* `copy` is not initialized before; it takes no more memory than its points need. */
void spill_history_copy(const spill_history_t *history, spill_history_t *copy);

/* Needed before what follows; adding after it is a mistake. */
void spill_history_sort(spill_history_t *history);

/*
 * How many elements came before that moment. Exact where no time was left out (stride 1), else
 * interpolated between neighbouring points: off by at most two strides where the array's elements
 * stand in the order of their times.
 */
double spill_history_before(const spill_history_t *history, double time_ms);

/* How many came from the first moment on and before the second; likewise. */
double spill_history_between(const spill_history_t *history, double from_ms, double to_ms);

/* How an array grew until `now_ms`. All 0 for fewer than two elements. */
typedef struct spill_pace {
    double per_day;      /* over the newest tenth of the time since its first element */
    double acceleration; /* the rate of the newest quarter of that time, to the quarter before it;
                            0 where nothing came in one of them */
    double burst;        /* the shortest time in which half of the elements came, as a part of the
                            time in which all did: near a half when steady, near 0 in bursts */
} spill_pace_t;

spill_pace_t spill_history_pace(const spill_history_t *history, int64_t now_ms);

#endif
