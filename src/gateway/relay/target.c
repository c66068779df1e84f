/* The primary, found again and again by a thread. */
#include "gateway/relay/target.h"

#include "gateway/gateway_log.h"
#include "gateway/relay/wire.h"
#include "util/clock.h"
#include "util/error.h"

#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/*
 * The driver's monitoring learns of a failover by itself; the thread asks it each second, so that a
 * new primary is known within a second. Many connections fail at once and ask for a look: look at
 * most once in the pause.
 */
enum { RENEW_MS = 1000, RENEW_PAUSE_US = 100000 };

struct spill_targets {
    spill_upstream_t *upstream;
    spill_tls_context_t *tls;
    atomic_int_fast64_t generation;
    atomic_bool known;
    atomic_int message_bytes_max;
    atomic_bool standalone;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t wake;
    spill_target_t *current;
    int64_t generations;
    bool renew;
    bool ending;
};

/* ---- one target ------------------------------------------------------------------------------ */

void spill_target_release(spill_target_t *target)
{
    if (!target || atomic_fetch_sub(&target->references, 1) > 1)
        return;
    bson_destroy(&target->primary.hello);
    bson_free(target);
}

static spill_code_t resolve(spill_target_t *target, spill_error_t *error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *found = NULL;
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)target->primary.port);
    int failed = getaddrinfo(target->primary.host, port, &hints, &found);
    if (failed != 0) { /* on a host with a loopback interface alone AI_ADDRCONFIG finds nothing */
        hints.ai_flags = 0;
        failed = getaddrinfo(target->primary.host, port, &hints, &found);
    }
    if (failed != 0)
        return spill_fail(error, SPILL_IO, "the host %s of the primary is unknown: %s",
                          target->primary.host, gai_strerror(failed));
    for (struct addrinfo *one = found; one; one = one->ai_next)
        if (target->address_count < SPILL_TARGET_ADDRESSES_MAX)
            memcpy(&target->addresses[target->address_count++], one->ai_addr, one->ai_addrlen);
    freeaddrinfo(found);
    return SPILL_OK;
}

static int32_t message_bytes_of(const bson_t *hello)
{
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, hello, "maxMessageSizeBytes") && BSON_ITER_HOLDS_INT32(&iter) &&
        bson_iter_int32(&iter) > 0)
        return bson_iter_int32(&iter);
    return SPILL_WIRE_MESSAGE_BYTES_MAX;
}

static spill_code_t find_target(spill_targets_t *targets, spill_target_t **target,
                                spill_error_t *error)
{
    *target = bson_malloc0(sizeof **target);
    atomic_init(&(*target)->references, 1);
    spill_code_t code = spill_upstream_find(targets->upstream, &(*target)->primary, error);
    if (code == SPILL_OK)
        code = resolve(*target, error);
    if (code == SPILL_OK) {
        (*target)->message_bytes_max = message_bytes_of(&(*target)->primary.hello);
        return SPILL_OK;
    }
    spill_target_release(*target);
    *target = NULL;
    return code;
}

/* ---- the current one ------------------------------------------------------------------------- */

static bool same_host(const spill_target_t *left, const spill_target_t *right)
{
    return left && right && left->primary.port == right->primary.port &&
           strcmp(left->primary.host, right->primary.host) == 0 &&
           left->primary.kind == right->primary.kind;
}

static void replace_current(spill_targets_t *targets, spill_target_t *target)
{
    pthread_mutex_lock(&targets->lock);
    spill_target_t *before = targets->current;
    bool changed = !same_host(before, target);
    target->generation = changed ? ++targets->generations : before->generation;
    targets->current = target;
    atomic_store(&targets->generation, target->generation);
    atomic_store(&targets->message_bytes_max, target->message_bytes_max);
    atomic_store(&targets->standalone, target->primary.kind == SPILL_UPSTREAM_STANDALONE);
    pthread_mutex_unlock(&targets->lock);
    if (changed)
        spill_gateway_log("primary", BCON_NEW("host", BCON_UTF8(target->primary.host), "port",
                                              BCON_INT32(target->primary.port)));
    spill_target_release(before);
}

spill_target_t *spill_targets_get(spill_targets_t *targets)
{
    pthread_mutex_lock(&targets->lock);
    spill_target_t *target = targets->current;
    atomic_fetch_add(&target->references, 1);
    pthread_mutex_unlock(&targets->lock);
    return target;
}

int64_t spill_targets_generation(const spill_targets_t *targets)
{
    return atomic_load(&targets->generation);
}

int32_t spill_targets_message_bytes_max(const spill_targets_t *targets)
{
    return atomic_load(&targets->message_bytes_max);
}

bool spill_targets_standalone(const spill_targets_t *targets)
{
    return atomic_load(&targets->standalone);
}

bool spill_targets_known(const spill_targets_t *targets)
{
    return atomic_load(&targets->known);
}

void spill_targets_renew(spill_targets_t *targets)
{
    pthread_mutex_lock(&targets->lock);
    targets->renew = true;
    pthread_cond_signal(&targets->wake);
    pthread_mutex_unlock(&targets->lock);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Wait for the next look. False: the thread ends. */
static bool await_turn(spill_targets_t *targets, int64_t wait_ms)
{
    struct timespec until = spill_clock_after_us(wait_ms * 1000);
    pthread_mutex_lock(&targets->lock);
    while (!targets->renew && !targets->ending &&
           pthread_cond_timedwait(&targets->wake, &targets->lock, &until) == 0) {
    }
    targets->renew = false;
    bool ending = targets->ending;
    pthread_mutex_unlock(&targets->lock);
    return !ending;
}

static void *watch(void *context)
{
    spill_targets_t *targets = context;
    while (await_turn(targets, RENEW_MS)) {
        spill_target_t *target;
        spill_error_t error;
        bool found = find_target(targets, &target, &error) == SPILL_OK;
        bool was_known = atomic_exchange(&targets->known, found);
        if (found)
            replace_current(targets, target);
        if (was_known && !found)
            spill_gateway_log("no primary", BCON_NEW("cause", BCON_UTF8(error.message)));
        if (found && !was_known)
            spill_gateway_log("primary is back", NULL);
        spill_clock_sleep_us(NULL, RENEW_PAUSE_US);
    }
    return NULL;
}

spill_code_t spill_targets_open(const char *uri, spill_targets_t **targets, spill_error_t *error)
{
    spill_targets_t *made = bson_malloc0(sizeof *made);
    spill_target_t *target;
    *targets = made;
    pthread_mutex_init(&made->lock, NULL);
    spill_clock_condition_init(&made->wake);
    SPILL_TRY(spill_upstream_open(uri, &made->upstream, error));
    const spill_upstream_tls_t *tls = spill_upstream_tls(made->upstream);
    if (tls->used)
        SPILL_TRY(spill_tls_connect(tls, &made->tls, error));
    SPILL_TRY(find_target(made, &target, error));
    replace_current(made, target);
    atomic_store(&made->known, true);
    if (pthread_create(&made->thread, NULL, watch, made) != 0)
        return spill_fail(error, SPILL_IO, "no thread can be started");
    made->started = true;
    return SPILL_OK;
}

bool spill_targets_end(spill_targets_t *targets, int64_t wait_ms)
{
    if (!targets || !targets->started)
        return true;
    pthread_mutex_lock(&targets->lock);
    targets->ending = true;
    pthread_cond_signal(&targets->wake);
    pthread_mutex_unlock(&targets->lock);
    struct timespec until = spill_clock_after_us(wait_ms * 1000);
    if (pthread_clockjoin_np(targets->thread, NULL, CLOCK_MONOTONIC, &until) != 0)
        return false;
    targets->started = false;
    return true;
}

void spill_targets_free(spill_targets_t *targets)
{
    if (!targets)
        return;
    while (!spill_targets_end(targets, RENEW_MS))
        continue;
    spill_target_release(targets->current);
    spill_tls_context_free(targets->tls);
    spill_upstream_close(targets->upstream);
    pthread_cond_destroy(&targets->wake);
    pthread_mutex_destroy(&targets->lock);
    bson_free(targets);
}

const spill_tls_context_t *spill_targets_tls(const spill_targets_t *targets)
{
    return targets->tls;
}

const char *spill_targets_place(const spill_targets_t *targets)
{
    return spill_upstream_place(targets->upstream);
}

const char *spill_targets_database(const spill_targets_t *targets)
{
    return spill_upstream_database(targets->upstream);
}
