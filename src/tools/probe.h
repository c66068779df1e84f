/*
 * A probe: how long a small operation takes, measured again and again by a thread of its own. Work
 * that looks only between two of its own requests would find the store idle each time, and never
 * what others feel while a request is under way.
 */
#ifndef SPILL_TOOLS_PROBE_H
#define SPILL_TOOLS_PROBE_H

#include <spillway/error.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define SPILL_PROBE_EVERY_MS 50 /* from the end of one measurement to the beginning of the next */
#define SPILL_PROBE_LOOK_MS 1000

/* Does the operation once. False: it failed. Called by the probe's thread alone. */
typedef bool (*spill_probe_fn)(void *context);

typedef struct spill_probe {
    spill_probe_fn operation;
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ending;
    bool started, ends;
    bool under_way, failed;
    int64_t began_us; /* the measurement under way */
    /* Those of the last second, in a ring. */
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
 * The longest of those that ended within the last SPILL_PROBE_LOOK_MS, or the one under way where
 * that takes longer already, in seconds; 0: none yet; below 0: the last one failed. Any thread.
 */
double spill_probe_latency(spill_probe_t *probe);

#endif
