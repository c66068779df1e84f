/*
 * Throttle: how fast a long piece of work on a store in use may go. The work is done in chunks of
 * units (documents, elements); before each chunk it waits, after it it tells what the chunk was.
 *
 *      size = spill_throttle_chunk_size() -> spill_throttle_wait() -> (the chunk)
 *           -> spill_throttle_ran(units, time) -> ...
 *
 * It waits while a pause file is there, while the server takes longer to answer than it may, and
 * so that no more units a second are worked off than wanted. With a limit on latency it rests after
 * each chunk, for a share of what that took, which follows the latency. The size of chunks follows
 * the time that they take.
 *
 * Threads: a throttle is one thread's at a time; their chunks may overlap, and the rate is that of
 * all.
 */
#ifndef SPILL_TOOLS_THROTTLE_H
#define SPILL_TOOLS_THROTTLE_H

#include <spillway/store.h>

/* Without a wish: a tenth of a second, so that clients of the store are not held up for longer. */
#define SPILL_THROTTLE_CHUNK_S 0.1
#define SPILL_THROTTLE_CHUNK_FIRST 100
#define SPILL_THROTTLE_CHUNK_MAX 10000

typedef struct spill_throttle_options {
    int64_t rate_per_s;     /* units; 0: as fast as can be */
    double latency_max_s;   /* wait while `latency` says more; 0: however long */
    const char *pause_file; /* wait while there is such a file; NULL: none */
    double chunk_s;         /* what a chunk should take; 0: SPILL_THROTTLE_CHUNK_S */
    int64_t chunk_first;    /* units of the first chunk; 0: SPILL_THROTTLE_CHUNK_FIRST */
    int64_t chunk_max;      /* units; 0: SPILL_THROTTLE_CHUNK_MAX */
    spill_clock_t clock;    /* NULL fields: the real time */

    /* All may be NULL. */
    double (*latency)(void *context); /* seconds of a small operation; below 0: it failed */
    bool (*stop)(void *context);      /* has the work to end? Asked twice a second at least */
    /* It waits, why; and that it goes on. Not where a server is slow for two seconds at most. */
    void (*notice)(void *context, const char *text);
    void *context;
} spill_throttle_options_t;

typedef struct spill_throttle {
    spill_throttle_options_t options;
    int64_t chunk_size;    /* units */
    int64_t paid_until_us; /* what was worked off is, by the rate, */
    int64_t free_at_us;    /* the next chunk may begin */
    double rest;           /* in times of what a chunk took */
    bool paused;           /* a notice said that it waits */
} spill_throttle_t;

/* All zero is "not throttled". The texts of `options` are borrowed for as long as it is used. */
void spill_throttle_init(spill_throttle_t *throttle, const spill_throttle_options_t *options);

/* How many units the next chunk should have: at least 1, and no more than a second's by the rate.
 */
int64_t spill_throttle_chunk_size(const spill_throttle_t *throttle);

/*
 * Wait until the next chunk may begin. False: `stop` said that the work has to end. With a limit on
 * latency one call of `latency`, more while it waits. Where `latency` fails it does not wait: the
 * work itself finds out why.
 */
bool spill_throttle_wait(spill_throttle_t *throttle);

/* A chunk of so many units was worked off, in so long. What follows may wait, and be larger. */
void spill_throttle_ran(spill_throttle_t *throttle, int64_t units, int64_t duration_us);

/* The throttle's time, to measure chunks with. */
int64_t spill_throttle_now_us(const spill_throttle_t *throttle);

#endif
