/*
 * How a long job works on a store in use: at a limited rate, by the store's latency, and by several
 * threads.
 */
#ifndef SPILL_TOOLS_THROTTLE_H
#define SPILL_TOOLS_THROTTLE_H

#include <spillway/error.h>
#include <spillway/store.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- throttle -------------------------------------------------------------------------------- */

/*
 * Throttle: limits how fast a long job works on a store in use. The work is done in chunks of units
 * (documents, elements). The job waits before each chunk, and reports its duration afterwards.
 *
 *      size = spill_throttle_chunk_size() -> spill_throttle_wait() -> (the chunk)
 *           -> spill_throttle_ran(units, time) -> ...
 *
 * It waits while a pause file exists, while the server's latency or the lag of its secondaries is
 * above a limit, and to keep the rate of units per second. With a limit on latency it also rests
 * after each chunk, for a multiple of the chunk's duration that follows the latency. The size of
 * chunks follows their duration. A job that waits follows a change of the pace within a quarter of
 * a second.
 *
 * Threads: any. A thread that waits holds the throttle's lock, and later threads queue behind it.
 * Chunks of several threads may overlap; the rate bounds their sum.
 */

/* Default duration of a chunk: a tenth of a second, so that clients of the store wait no longer. */
#define SPILL_THROTTLE_CHUNK_S 0.1
#define SPILL_THROTTLE_CHUNK_FIRST 100
#define SPILL_THROTTLE_CHUNK_MAX 10000

/* Settings that another thread may change while the job runs. */
typedef struct spill_job_pace {
    _Atomic int64_t rate_per_s;     /* units; 0: not limited */
    _Atomic int64_t latency_max_us; /* wait while `latency` is higher; 0: not limited */
    atomic_int threads;             /* that may work at the same time */
    atomic_bool paused;             /* wait */
} spill_job_pace_t;

typedef struct spill_throttle_options {
    int64_t rate_per_s;     /* as in the pace */
    double latency_max_s;   /* as in the pace */
    spill_job_pace_t *pace; /* borrowed; it replaces these two. NULL: they do not change */
    double lag_max_s;       /* wait while `lag` is higher; 0: not limited */
    const char *pause_file; /* wait while this file exists; NULL: none */
    double chunk_s;         /* intended duration of a chunk; 0: SPILL_THROTTLE_CHUNK_S */
    int64_t chunk_first;    /* units of the first chunk; 0: SPILL_THROTTLE_CHUNK_FIRST */
    int64_t chunk_max;      /* units; 0: SPILL_THROTTLE_CHUNK_MAX */
    spill_clock_t clock;    /* NULL fields: CLOCK_MONOTONIC */

    /* All may be NULL. */
    double (*latency)(void *context); /* seconds of a small operation; negative: it failed */
    double (*lag)(void *context);     /* seconds that a secondary is behind; negative: it failed */
    bool (*stop)(void *context);      /* must the work end? Called at least twice a second */
    /*
     * Reports why it waits, and (waits: false) that it continues. A slow server is reported after
     * two seconds.
     */
    void (*notice)(void *context, bool waits, const char *text);
    /*
     * Reports that the rate delays the next chunk for left_us more microseconds, at least every
     * quarter of a second, and (0) that the delay has ended.
     */
    void (*delayed)(void *context, int64_t left_us);
    void *context;
} spill_throttle_options_t;

typedef struct spill_throttle {
    spill_throttle_options_t options;
    spill_job_pace_t own;  /* without options.pace */
    int64_t chunk_size;    /* units */
    double debt;           /* units done that the rate has not allowed yet; see pay_debt */
    int64_t paid_at_us;    /* when the debt was last reduced */
    int64_t paid_rate;     /* the rate at that time */
    int64_t rest_until_us; /* the rest after a slow chunk */
    double rest;           /* in multiples of a chunk's duration */
    bool noticed;          /* a notice has reported that it waits */
    bool delays;           /* `delayed` was called, and not yet with 0 */
    pthread_mutex_t lock;
} spill_throttle_t;

/* Options of zero mean "not throttled". They are copied; their texts are borrowed while it is used.
 */
void spill_throttle_init(spill_throttle_t *throttle, const spill_throttle_options_t *options);

/* Units that the next chunk should have: at least 1, and at most one second's worth of the rate. */
int64_t spill_throttle_chunk_size(spill_throttle_t *throttle);

/*
 * Wait until the next chunk may begin. False: `stop` says that the work must end. With a limit on
 * latency, calls `latency` once, and more often while it waits; the same for `lag`. If one of them
 * fails, do not wait: the work itself finds out why.
 */
bool spill_throttle_wait(spill_throttle_t *throttle);

/* Report a finished chunk. The next one may have to wait, and may be larger. */
void spill_throttle_ran(spill_throttle_t *throttle, int64_t units, int64_t duration_us);

/* The units per second that are allowed now; 0: not limited. Any thread. */
int64_t spill_throttle_rate(const spill_throttle_t *throttle);

/* The number of threads that may work at the same time, if it may change; else NULL. Borrowed. */
const atomic_int *spill_throttle_threads(const spill_throttle_t *throttle);

/* The throttle's time, to measure chunks with. */
int64_t spill_throttle_now_us(const spill_throttle_t *throttle);

/* ---- probe ----------------------------------------------------------------------------------- */

/*
 * A probe: measures repeatedly, in a thread of its own, how long a small operation takes. A job
 * that measures only between its own requests would find the store idle each time. It would not
 * see how long other clients wait while a request is in progress.
 */

#define SPILL_PROBE_EVERY_MS 50 /* from the end of one measurement to the beginning of the next */
#define SPILL_PROBE_LOOK_MS 1000

/* Do the operation once. False: it failed. Only the probe's thread calls it. */
typedef bool (*spill_probe_fn)(void *context);

typedef struct spill_probe {
    spill_probe_fn operation;
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ending;
    bool started, ends;
    bool under_way, failed;
    int64_t began_us; /* the measurement in progress */
    /* The measurements of the last second, in a ring. */
    struct {
        int64_t ended_us, took_us;
    } last[SPILL_PROBE_LOOK_MS / SPILL_PROBE_EVERY_MS];
    size_t next;
} spill_probe_t;

/* Start and stop; a zeroed probe may be stopped. SPILL_IO: no thread could be started. */
spill_code_t spill_probe_start(spill_probe_t *probe, spill_probe_fn operation, void *context,
                               spill_error_t *error);
void spill_probe_stop(spill_probe_t *probe);

/*
 * The longest measurement, in seconds, that ended within the last SPILL_PROBE_LOOK_MS, or the one
 * in progress if it has taken longer already. 0: none yet; negative: the last one failed. Any
 * thread.
 */
double spill_probe_latency(spill_probe_t *probe);

#endif
