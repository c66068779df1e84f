#include "tools/throttle.h"

#include "util/clock.h"

#include <stdio.h>
#include <unistd.h>

/* Between two looks at whatever is waited for; no sleep is longer. */
#define LOOK_US 250000

/* A server that is slow for less is not worth a word. */
#define NOTICE_US 2000000

/* With a limit on latency a chunk is followed by a rest of so many times what it took. */
#define REST_LEAST 0.25
#define REST_FIRST 1.0
#define REST_MOST 4.0

/* A chunk is at most so many times larger or smaller than the one before. */
#define STEP_MAX 2.0

void spill_throttle_init(spill_throttle_t *throttle, const spill_throttle_options_t *options)
{
    *throttle = (spill_throttle_t){.options = *options};
    spill_throttle_options_t *own = &throttle->options;
    if (!own->clock.now_us)
        own->clock.now_us = spill_clock_now_us;
    if (!own->clock.sleep_us)
        own->clock.sleep_us = spill_clock_sleep_us;
    if (own->chunk_s <= 0)
        own->chunk_s = SPILL_THROTTLE_CHUNK_S;
    if (own->chunk_max <= 0)
        own->chunk_max = SPILL_THROTTLE_CHUNK_MAX;
    throttle->rest = REST_FIRST;
    throttle->chunk_size =
        own->chunk_first > 0 ? own->chunk_first : (int64_t)SPILL_THROTTLE_CHUNK_FIRST;
}

int64_t spill_throttle_chunk_size(const spill_throttle_t *throttle)
{
    int64_t size = throttle->chunk_size, rate = throttle->options.rate_per_s;
    if (size > throttle->options.chunk_max)
        size = throttle->options.chunk_max;
    if (rate > 0 && size > rate)
        size = rate;
    return size > 0 ? size : 1;
}

int64_t spill_throttle_now_us(const spill_throttle_t *throttle)
{
    return throttle->options.clock.now_us(throttle->options.clock.context);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool has_to_stop(const spill_throttle_t *throttle)
{
    const spill_throttle_options_t *options = &throttle->options;
    return options->stop && options->stop(options->context);
}

static void say(const spill_throttle_t *throttle, const char *text)
{
    if (throttle->options.notice)
        throttle->options.notice(throttle->options.context, text);
}

/* Why the next chunk has to wait, into `text`; *worth: that is to be said at once. */
static bool is_held_up(const spill_throttle_t *throttle, char *text, size_t text_size, bool *worth)
{
    const spill_throttle_options_t *options = &throttle->options;
    if (options->pause_file && access(options->pause_file, F_OK) == 0) {
        snprintf(text, text_size, "paused: %s is there", options->pause_file);
        *worth = true;
        return true;
    }
    *worth = false;
    if (options->latency_max_s <= 0 || !options->latency)
        return false;
    double latency_s = options->latency(options->context);
    if (latency_s <= options->latency_max_s)
        return false;
    snprintf(text, text_size, "paused: the server takes %.1f ms, more than %.1f", latency_s * 1e3,
             options->latency_max_s * 1e3);
    return true;
}

static void look_later(const spill_throttle_t *throttle, int64_t duration_us)
{
    const spill_clock_t *clock = &throttle->options.clock;
    clock->sleep_us(clock->context, duration_us < LOOK_US ? duration_us : LOOK_US);
}

bool spill_throttle_wait(spill_throttle_t *throttle)
{
    char text[512];
    bool worth = false;
    int64_t began_us = spill_throttle_now_us(throttle);
    for (;;) {
        if (has_to_stop(throttle))
            return false;
        int64_t left_us = throttle->free_at_us - spill_throttle_now_us(throttle);
        if (left_us > 0) {
            look_later(throttle, left_us);
        } else if (is_held_up(throttle, text, sizeof text, &worth)) {
            worth = worth || spill_throttle_now_us(throttle) - began_us >= NOTICE_US;
            if (!throttle->paused && worth)
                say(throttle, text);
            throttle->paused = throttle->paused || worth;
            look_later(throttle, LOOK_US);
        } else {
            break;
        }
    }
    if (throttle->paused)
        say(throttle, "going on");
    throttle->paused = false;
    return true;
}

/* ---- after a chunk --------------------------------------------------------------------------- */

/* A chunk that was smaller than it might have been says nothing of a larger one. */
static void adapt(spill_throttle_t *throttle, int64_t units, int64_t duration_us)
{
    double wanted_us = throttle->options.chunk_s * 1e6;
    double factor = duration_us > 0 ? wanted_us / (double)duration_us : STEP_MAX;
    int64_t size = spill_throttle_chunk_size(throttle);
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

/* Quickly to a longer rest, slowly back. */
static void rest_after(spill_throttle_t *throttle, int64_t duration_us)
{
    const spill_throttle_options_t *options = &throttle->options;
    if (options->latency_max_s <= 0 || !options->latency)
        return;
    bool slow = options->latency(options->context) > options->latency_max_s;
    throttle->rest *= slow ? 2 : 0.8;
    if (throttle->rest > REST_MOST)
        throttle->rest = REST_MOST;
    if (throttle->rest < REST_LEAST)
        throttle->rest = REST_LEAST;
    int64_t until_us =
        spill_throttle_now_us(throttle) + (int64_t)((double)duration_us * throttle->rest);
    if (until_us > throttle->free_at_us)
        throttle->free_at_us = until_us;
}

void spill_throttle_ran(spill_throttle_t *throttle, int64_t units, int64_t duration_us)
{
    int64_t rate = throttle->options.rate_per_s;
    if (units <= 0)
        return;
    adapt(throttle, units, duration_us);
    rest_after(throttle, duration_us);
    if (rate <= 0)
        return;
    /*
     * What the chunk may take by the rate counts from its beginning, or from where others' end that
     * ran beside it.
     */
    int64_t began_us = spill_throttle_now_us(throttle) - duration_us;
    if (began_us < throttle->paid_until_us)
        began_us = throttle->paid_until_us;
    throttle->paid_until_us = began_us + (int64_t)((double)units / (double)rate * 1e6);
    if (throttle->paid_until_us > throttle->free_at_us)
        throttle->free_at_us = throttle->paid_until_us;
}
