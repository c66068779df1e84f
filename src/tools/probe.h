/*
 * A probe: measures repeatedly, in a thread of its own, how long a small operation takes. A job
 * that measures only between its own requests would find the store idle each time. It would not
 * see how long other clients wait while a request is in progress.
 */
#ifndef SPILL_TOOLS_PROBE_H
#define SPILL_TOOLS_PROBE_H

#include <spillway/error.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

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
