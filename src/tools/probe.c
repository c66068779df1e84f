#include "tools/probe.h"

#include "util/clock.h"
#include "util/error.h"

#include <string.h>
#include <time.h>

enum { RING = SPILL_PROBE_LOOK_MS / SPILL_PROBE_EVERY_MS };

/* Wait for the next measurement; `lock` is held. False: the probe ends. */
static bool pause_between(spill_probe_t *probe)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += SPILL_PROBE_EVERY_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    while (!probe->ends && pthread_cond_timedwait(&probe->ending, &probe->lock, &until) == 0)
        continue;
    return !probe->ends;
}

static void *run_probe(void *argument)
{
    spill_probe_t *probe = argument;
    pthread_mutex_lock(&probe->lock);
    do {
        probe->began_us = spill_clock_now_us(NULL);
        probe->under_way = true;
        pthread_mutex_unlock(&probe->lock);
        bool good = probe->operation(probe->context);
        pthread_mutex_lock(&probe->lock);
        int64_t now_us = spill_clock_now_us(NULL);
        probe->under_way = false;
        probe->failed = !good;
        probe->last[probe->next].ended_us = now_us;
        probe->last[probe->next].took_us = good ? now_us - probe->began_us : 0;
        probe->next = (probe->next + 1) % RING;
    } while (pause_between(probe));
    pthread_mutex_unlock(&probe->lock);
    return NULL;
}

spill_code_t spill_probe_start(spill_probe_t *probe, spill_probe_fn operation, void *context,
                               spill_error_t *error)
{
    *probe = (spill_probe_t){.operation = operation, .context = context};
    pthread_mutex_init(&probe->lock, NULL);
    pthread_cond_init(&probe->ending, NULL);
    int problem = pthread_create(&probe->thread, NULL, run_probe, probe);
    probe->started = problem == 0;
    return probe->started ? SPILL_OK : spill_fail_errno(error, problem, "a thread");
}

void spill_probe_stop(spill_probe_t *probe)
{
    if (!probe->started)
        return;
    pthread_mutex_lock(&probe->lock);
    probe->ends = true;
    pthread_cond_signal(&probe->ending);
    pthread_mutex_unlock(&probe->lock);
    pthread_join(probe->thread, NULL);
    pthread_cond_destroy(&probe->ending);
    pthread_mutex_destroy(&probe->lock);
    probe->started = false;
}

double spill_probe_latency(spill_probe_t *probe)
{
    pthread_mutex_lock(&probe->lock);
    int64_t now_us = spill_clock_now_us(NULL), longest_us = 0;
    if (probe->under_way)
        longest_us = now_us - probe->began_us;
    for (size_t i = 0; i < RING; i++)
        if (now_us - probe->last[i].ended_us <= SPILL_PROBE_LOOK_MS * 1000 &&
            probe->last[i].took_us > longest_us)
            longest_us = probe->last[i].took_us;
    bool failed = probe->failed && !probe->under_way;
    pthread_mutex_unlock(&probe->lock);
    return failed ? -1 : (double)longest_us / 1e6;
}
