/*
 * How a long job works on a store in use: at a limited rate, by the store's latency, and by several
 * threads.
 */
#include "tools/throttle.h"

#include "util/clock.h"
#include "util/error.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- throttle -------------------------------------------------------------------------------- */

/* Between two checks of what it waits for; no sleep is longer. */
#define CHECK_US 250000

/* A server that is slow for less time is not reported. */
#define NOTICE_US 2000000

/* With a limit on latency, the rest after a chunk, in multiples of its duration. */
#define REST_LEAST 0.25
#define REST_FIRST 1.0
#define REST_MOST 4.0

/* The largest factor between the sizes of two consecutive chunks. */
#define STEP_MAX 2.0

void spill_throttle_init(spill_throttle_t *throttle, const spill_throttle_options_t *options)
{
    *throttle = (spill_throttle_t){.options = *options, .lock = PTHREAD_MUTEX_INITIALIZER};
    spill_throttle_options_t *own = &throttle->options;
    if (!own->clock.now_us)
        own->clock.now_us = spill_clock_monotonic_us;
    if (!own->clock.sleep_us)
        own->clock.sleep_us = spill_clock_sleep_us;
    if (own->chunk_s <= 0)
        own->chunk_s = SPILL_THROTTLE_CHUNK_S;
    if (own->chunk_max <= 0)
        own->chunk_max = SPILL_THROTTLE_CHUNK_MAX;
    atomic_init(&throttle->own.rate_per_s, own->rate_per_s);
    atomic_init(&throttle->own.latency_max_us, (int64_t)(own->latency_max_s * 1e6));
    throttle->rest = REST_FIRST;
    throttle->chunk_size =
        own->chunk_first > 0 ? own->chunk_first : (int64_t)SPILL_THROTTLE_CHUNK_FIRST;
}

static const spill_job_pace_t *pace_of(const spill_throttle_t *throttle)
{
    return throttle->options.pace ? throttle->options.pace : &throttle->own;
}

int64_t spill_throttle_rate(const spill_throttle_t *throttle)
{
    return atomic_load(&pace_of(throttle)->rate_per_s);
}

/* Seconds; 0: not limited. */
static double latency_limit(const spill_throttle_t *throttle)
{
    return throttle->options.latency ? (double)atomic_load(&pace_of(throttle)->latency_max_us) / 1e6
                                     : 0;
}

const atomic_int *spill_throttle_threads(const spill_throttle_t *throttle)
{
    return throttle && throttle->options.pace ? &throttle->options.pace->threads : NULL;
}

static int64_t chunk_size(const spill_throttle_t *throttle)
{
    int64_t size = throttle->chunk_size, rate = spill_throttle_rate(throttle);
    if (size > throttle->options.chunk_max)
        size = throttle->options.chunk_max;
    if (rate > 0 && size > rate)
        size = rate;
    return size > 0 ? size : 1;
}

int64_t spill_throttle_chunk_size(spill_throttle_t *throttle)
{
    pthread_mutex_lock(&throttle->lock);
    int64_t size = chunk_size(throttle);
    pthread_mutex_unlock(&throttle->lock);
    return size;
}

int64_t spill_throttle_now_us(const spill_throttle_t *throttle)
{
    return throttle->options.clock.now_us(throttle->options.clock.context);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool must_stop(const spill_throttle_t *throttle)
{
    const spill_throttle_options_t *options = &throttle->options;
    return options->stop && options->stop(options->context);
}

static void notify(const spill_throttle_t *throttle, bool waits, const char *text)
{
    if (throttle->options.notice)
        throttle->options.notice(throttle->options.context, waits, text);
}

/* Is the server too slow, or a secondary too far behind? Then put that into `text`. */
static bool is_behind(const spill_throttle_t *throttle, char *text, size_t text_size)
{
    const spill_throttle_options_t *options = &throttle->options;
    double limit_s = latency_limit(throttle);
    double latency_s = options->latency && limit_s > 0 ? options->latency(options->context) : 0;
    double lag_s = options->lag && options->lag_max_s > 0 ? options->lag(options->context) : 0;
    if (latency_s > limit_s) {
        snprintf(text, text_size, "paused: the server takes %.1f ms, limit %.1f", latency_s * 1e3,
                 limit_s * 1e3);
        return true;
    }
    if (lag_s <= options->lag_max_s)
        return false;
    snprintf(text, text_size, "paused: a secondary is %.1f s behind, limit %.1f", lag_s,
             options->lag_max_s);
    return true;
}

/* Put the reason why the next chunk must wait into `text`; *worth: report it at once. */
static bool must_wait(const spill_throttle_t *throttle, char *text, size_t text_size, bool *worth)
{
    const spill_throttle_options_t *options = &throttle->options;
    if (options->pause_file && access(options->pause_file, F_OK) == 0) {
        snprintf(text, text_size, "paused: %s exists", options->pause_file);
        *worth = true;
        return true;
    }
    *worth = atomic_load(&pace_of(throttle)->paused);
    if (*worth) {
        snprintf(text, text_size, "paused by `spillway control'");
        return true;
    }
    return is_behind(throttle, text, text_size);
}

static void sleep_before_check(const spill_throttle_t *throttle, int64_t duration_us)
{
    const spill_clock_t *clock = &throttle->options.clock;
    clock->sleep_us(clock->context, duration_us < CHECK_US ? duration_us : CHECK_US);
}

/*
 * Take the units off the debt that the rate has allowed since the last call. Below zero, the debt
 * is unused time. A new rate counts from this call on.
 */
static void pay_debt(spill_throttle_t *throttle)
{
    int64_t now_us = spill_throttle_now_us(throttle), rate = spill_throttle_rate(throttle);
    throttle->debt -= (double)(now_us - throttle->paid_at_us) * (double)throttle->paid_rate / 1e6;
    throttle->paid_at_us = now_us;
    throttle->paid_rate = rate;
    if (rate == 0)
        throttle->debt = 0;
}

/* The time that the present rate needs for the rest of the debt. */
static int64_t delay_by_rate(const spill_throttle_t *throttle)
{
    int64_t rate = spill_throttle_rate(throttle);
    return rate > 0 && throttle->debt > 0 ? (int64_t)(throttle->debt / (double)rate * 1e6) : 0;
}

static int64_t rest_left(const spill_throttle_t *throttle)
{
    int64_t left_us = throttle->rest_until_us - spill_throttle_now_us(throttle);
    return latency_limit(throttle) > 0 && left_us > 0 ? left_us : 0;
}

/* The rest after a slow chunk is no delay by the rate. */
static void report_delay(spill_throttle_t *throttle, int64_t left_us)
{
    const spill_throttle_options_t *options = &throttle->options;
    if (options->delayed && (left_us > 0 || throttle->delays))
        options->delayed(options->context, left_us);
    throttle->delays = left_us > 0;
}

static bool wait_for_turn(spill_throttle_t *throttle)
{
    char text[512];
    bool worth = false;
    int64_t began_us = spill_throttle_now_us(throttle);
    for (;;) {
        if (must_stop(throttle))
            return false;
        pay_debt(throttle);
        int64_t delay_us = delay_by_rate(throttle), rest_us = rest_left(throttle);
        report_delay(throttle, delay_us);
        if (delay_us > 0 || rest_us > 0) {
            sleep_before_check(throttle, delay_us > rest_us ? delay_us : rest_us);
        } else if (must_wait(throttle, text, sizeof text, &worth)) {
            worth = worth || spill_throttle_now_us(throttle) - began_us >= NOTICE_US;
            if (!throttle->noticed && worth)
                notify(throttle, true, text);
            throttle->noticed = throttle->noticed || worth;
            sleep_before_check(throttle, CHECK_US);
        } else {
            break;
        }
    }
    if (throttle->noticed)
        notify(throttle, false, "going on");
    throttle->noticed = false;
    return true;
}

bool spill_throttle_wait(spill_throttle_t *throttle)
{
    pthread_mutex_lock(&throttle->lock);
    bool continues = wait_for_turn(throttle);
    pthread_mutex_unlock(&throttle->lock);
    return continues;
}

/* ---- after a chunk --------------------------------------------------------------------------- */

/* A fast chunk below the allowed size does not show that a larger one would be fast. */
static void adapt_chunk_size(spill_throttle_t *throttle, int64_t units, int64_t duration_us)
{
    double wanted_us = throttle->options.chunk_s * 1e6;
    double factor = duration_us > 0 ? wanted_us / (double)duration_us : STEP_MAX;
    int64_t size = chunk_size(throttle);
    if (factor > 1 && units < size)
        return;
    if (factor > STEP_MAX)
        factor = STEP_MAX;
    if (factor < 1 / STEP_MAX)
        factor = 1 / STEP_MAX;
    int64_t next = (int64_t)((double)size * factor);
    if (next == size && factor > 1)
        next++;
    if (next > throttle->options.chunk_max)
        next = throttle->options.chunk_max;
    throttle->chunk_size = next > 0 ? next : 1;
}

/* Lengthen the rest quickly, shorten it slowly. */
static void rest_after(spill_throttle_t *throttle, int64_t duration_us)
{
    const spill_throttle_options_t *options = &throttle->options;
    double limit_s = latency_limit(throttle);
    if (limit_s <= 0)
        return;
    bool slow = options->latency(options->context) > limit_s;
    throttle->rest *= slow ? 2 : 0.8;
    if (throttle->rest > REST_MOST)
        throttle->rest = REST_MOST;
    if (throttle->rest < REST_LEAST)
        throttle->rest = REST_LEAST;
    int64_t until_us =
        spill_throttle_now_us(throttle) + (int64_t)((double)duration_us * throttle->rest);
    if (until_us > throttle->rest_until_us)
        throttle->rest_until_us = until_us;
}

/* The rate's time for the chunk counts from its beginning, except time that paid for another one.
 */
static void count_chunk(spill_throttle_t *throttle, int64_t units, int64_t duration_us)
{
    adapt_chunk_size(throttle, units, duration_us);
    rest_after(throttle, duration_us);
    pay_debt(throttle);
    int64_t rate = spill_throttle_rate(throttle);
    double allowed = (double)duration_us * (double)rate / 1e6;
    if (throttle->debt < -allowed)
        throttle->debt = -allowed;
    if (rate > 0)
        throttle->debt += (double)units;
}

void spill_throttle_ran(spill_throttle_t *throttle, int64_t units, int64_t duration_us)
{
    pthread_mutex_lock(&throttle->lock);
    if (units > 0)
        count_chunk(throttle, units, duration_us);
    pthread_mutex_unlock(&throttle->lock);
}

/* ---- probe ----------------------------------------------------------------------------------- */

enum { RING = SPILL_PROBE_LOOK_MS / SPILL_PROBE_EVERY_MS };

/* Wait for the next measurement; `lock` is held. False: the probe ends. */
static bool pause_between(spill_probe_t *probe)
{
    struct timespec until = spill_clock_after_us(SPILL_PROBE_EVERY_MS * 1000);
    while (!probe->ends && pthread_cond_timedwait(&probe->ending, &probe->lock, &until) == 0)
        continue;
    return !probe->ends;
}

static void *run_probe(void *argument)
{
    spill_probe_t *probe = argument;
    pthread_mutex_lock(&probe->lock);
    do {
        probe->began_us = spill_clock_monotonic_us(NULL);
        probe->under_way = true;
        pthread_mutex_unlock(&probe->lock);
        bool good = probe->operation(probe->context);
        pthread_mutex_lock(&probe->lock);
        int64_t now_us = spill_clock_monotonic_us(NULL);
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
    spill_clock_condition_init(&probe->ending);
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
    int64_t now_us = spill_clock_monotonic_us(NULL), longest_us = 0;
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
