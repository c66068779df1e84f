/* The gateway: its parts, its signals, its end. */
#include "gateway/gateway.h"

#include "gateway/gateway_log.h"
#include "gateway/gateway_state.h"
#include "gateway/relay/listen_address.h"
#include "gateway/relay/serving.h"
#include "gateway/relay/shared_port.h"
#include "gateway/status_page.h"
#include "service/http_server.h"
#include "service/service_manager.h"
#include "util/clock.h"
#include "util/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOPS_MAX = 64,
    RELOAD_US = 5000000,
    SWEEP_RELOADS = 120, /* so many reloads lie between two searches for old notes of drops */
    ABORT_US = 5000000,
    RELOADER_END_US = 1000000,
    THREAD_END_MS = 500,
    OTHER_FILES = 200
};

/* A gateway that runs. */
typedef struct running {
    spill_gateway_t gateway;
    spill_gateway_options_t options;
    spill_loop_t *loops[LOOPS_MAX];
    size_t loop_count;
    int announcement; /* of the shared port; -1: none */
    spill_http_server_t *metrics;
    pthread_t reloader; /* reads the definitions again, which waits for the server */
    bool reloads;
    sem_t wake; /* the reloader */
    atomic_bool ending;
    char address[SPILL_ADDRESS_TEXT_BYTES];
    int64_t files; /* the limit of open files, if it permits fewer connections than usual; else 0 */
} running_t;

/* ---- the parts ------------------------------------------------------------------------------- */

/* Say that the limit of open files permits fewer connections than usual, if it does. */
static void log_fewer(const running_t *running)
{
    if (running->files == 0)
        return;
    spill_gateway_log("fewer connections",
                      BCON_NEW("maxConnections", BCON_INT64(running->options.connections_max),
                               "usual", BCON_INT64(SPILL_GATEWAY_CONNECTIONS), "openFiles",
                               BCON_INT64(running->files), "advice",
                               BCON_UTF8("raise the limit of open files (ulimit -n, "
                                         "LimitNOFILE=), or give --max-connections")));
}

/* A connection needs two open files. Without --max-connections, accept as many as these permit. */
static spill_code_t fit_files(running_t *running, spill_error_t *error)
{
    struct rlimit limit;
    spill_gateway_options_t *options = &running->options;
    int64_t files = INT64_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        files = (int64_t)limit.rlim_cur;
    int64_t most = (files - OTHER_FILES) / 2;
    bool fewer = options->connections_max == 0 && most < SPILL_GATEWAY_CONNECTIONS;
    if (options->connections_max == 0)
        options->connections_max = !fewer ? SPILL_GATEWAY_CONNECTIONS : most > 0 ? most : 1;
    if (options->connections_max <= most) {
        running->files = fewer ? files : 0;
        return SPILL_OK;
    }
    return spill_fail(error, SPILL_INVALID,
                      "--max-connections %" PRId64 " needs %" PRId64 " open files, and the limit "
                      "is %" PRId64 ": raise it (ulimit -n, LimitNOFILE=), or lower "
                      "--max-connections",
                      options->connections_max, 2 * options->connections_max + OTHER_FILES, files);
}

/* OpenSSL's errors name neither the option nor, of a missing file, the reason. */
static spill_code_t check_readable(const char *option, const char *path, spill_error_t *error)
{
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (path && file < 0) {
        const int problem = errno;
        return spill_fail(error, SPILL_INVALID, "--%s: cannot open %s: %s", option, path,
                          strerror(problem));
    }
    if (file >= 0)
        close(file);
    return SPILL_OK;
}

static spill_code_t read_tls(const spill_gateway_options_t *options, spill_tls_context_t **tls,
                             spill_error_t *error)
{
    *tls = NULL;
    if (!options->tls_certificate && (options->tls_key || options->tls_authority ||
                                      options->tls_client != SPILL_TLS_CLIENT_NONE))
        return spill_fail(error, SPILL_INVALID,
                          "--tls-key, --tls-ca and --tls-client need --tls-cert");
    if (!options->tls_certificate)
        return SPILL_OK;
    SPILL_TRY(check_readable("tls-cert", options->tls_certificate, error));
    SPILL_TRY(check_readable("tls-key", options->tls_key, error));
    SPILL_TRY(check_readable("tls-ca", options->tls_authority, error));
    return spill_tls_serve(options->tls_certificate, options->tls_key, options->tls_authority,
                           options->tls_client, tls, error);
}

spill_code_t spill_gateway_check_options(const spill_gateway_options_t *options,
                                         spill_error_t *error)
{
    struct sockaddr_storage address;
    spill_tls_context_t *tls = NULL;
    SPILL_TRY(spill_listen_address_read(options->listen, SPILL_GATEWAY_PORT, &address, error));
    if (options->metrics)
        SPILL_TRY(spill_http_check(options->metrics, error));
    spill_code_t code = read_tls(options, &tls, error);
    spill_tls_context_free(tls);
    return code;
}

static spill_code_t open_parts(running_t *running, const spill_gateway_options_t *options,
                               spill_error_t *error)
{
    spill_gateway_t *gateway = &running->gateway;
    running->options = *options;
    gateway->options = &running->options;
    pthread_mutex_init(&gateway->lock, NULL);
    bson_oid_init(&gateway->process, NULL);
    SPILL_TRY(fit_files(running, error));
    SPILL_TRY(read_tls(options, &gateway->tls, error));
    SPILL_TRY(spill_targets_open(options->uri, &gateway->targets, error));
    SPILL_TRY(spill_served_open(options->uri, &gateway->served, error));
    gateway->limits = spill_limits_new(options->memory_bytes, running->options.connections_max,
                                       options->address_connections_max);
    gateway->activity = spill_activity_new(options->shows_owners);
    gateway->started_us = spill_clock_monotonic_us(NULL);
    if (options->present == SPILL_PRESENT_MONGOS)
        gateway->retries = spill_retries_new(gateway->limits, SPILL_RETRY_SESSIONS_MAX);
    gateway->workers = spill_workers_new((size_t)options->workers_max);
    return SPILL_OK;
}

/*
 * Join the gateways of the port, before this process listens there. For port 0 that is after the
 * system has chosen a port, which no other process has.
 */
static spill_code_t join_port(running_t *running, const struct sockaddr_storage *address,
                              spill_error_t *error)
{
    char text[SPILL_ADDRESS_TEXT_BYTES];
    spill_listen_address_print(address, text);
    if (running->announcement >= 0 || strcmp(strrchr(text, ':'), ":0") == 0)
        return SPILL_OK;
    spill_code_t code = spill_shared_port_join(text, spill_served_database(running->gateway.served),
                                               &running->announcement, error);
    return code == SPILL_OK
               ? code
               : spill_fail_prefix(error, code, "--listen %s", running->gateway.options->listen);
}

static spill_code_t open_loops(running_t *running, spill_error_t *error)
{
    const spill_gateway_options_t *options = running->gateway.options;
    struct sockaddr_storage address;
    SPILL_TRY(spill_listen_address_read(options->listen, SPILL_GATEWAY_PORT, &address, error));
    SPILL_TRY(join_port(running, &address, error));
    int64_t wanted = options->loops > 0 ? options->loops : sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = wanted < 1 ? 1 : wanted > LOOPS_MAX ? LOOPS_MAX : (size_t)wanted;
    while (running->loop_count < count) {
        spill_loop_t **loop = &running->loops[running->loop_count++];
        spill_code_t code =
            spill_loop_new(&address, spill_serving_events(), &running->gateway, loop, error);
        if (code != SPILL_OK)
            return spill_fail_prefix(error, code, "--listen %s", options->listen);
    }
    spill_listen_address_print(&address, running->address);
    SPILL_TRY(join_port(running, &address, error));
    for (size_t i = 0; i < count; i++)
        SPILL_TRY(spill_loop_start(running->loops[i], error));
    return SPILL_OK;
}

static spill_metrics_state_t state_of(void *context)
{
    running_t *running = context;
    spill_gateway_t *gateway = &running->gateway;
    return (spill_metrics_state_t){.connections = spill_limits_connections(gateway->limits),
                                   .memory_bytes = spill_limits_memory(gateway->limits),
                                   .spills = spill_served_spills(gateway->served),
                                   .uptime_us =
                                       spill_clock_monotonic_us(NULL) - gateway->started_us,
                                   .primary = spill_targets_known(gateway->targets),
                                   .listen = running->address,
                                   .upstream = spill_targets_place(gateway->targets),
                                   .activity = gateway->activity,
                                   .log = spill_gateway_lost_lines()};
}

/* For operators: the status page, /metrics and /healthz. */
static void answer_request(void *context, const char *path, spill_http_answer_t *answer)
{
    running_t *running = context;
    spill_metrics_state_t state = state_of(running);
    if (strcmp(path, "/") == 0) {
        answer->type = SPILL_HTTP_PAGE;
        spill_status_page_print(&running->gateway.metrics, &state, &answer->text);
    } else if (strcmp(path, "/metrics") == 0) {
        spill_metrics_print(&running->gateway.metrics, &state, &answer->text);
    } else if (strcmp(path, "/healthz") == 0) {
        if (state.primary)
            spill_http_say(answer, SPILL_HTTP_OK, "ok\n");
        else
            spill_http_say(answer, SPILL_HTTP_UNAVAILABLE, "no primary\n");
        spill_lost_lines_say(spill_gateway_lost_lines(), answer);
    } else {
        spill_http_say(answer, SPILL_HTTP_NOT_FOUND, "try /, /metrics or /healthz\n");
    }
}

static spill_code_t open_metrics(running_t *running, spill_error_t *error)
{
    spill_gateway_t *gateway = &running->gateway;
    if (!gateway->options->metrics)
        return SPILL_OK;
    return spill_http_start(gateway->options->metrics, answer_request, running, &running->metrics,
                            error);
}

static void free_parts(running_t *running)
{
    spill_gateway_t *gateway = &running->gateway;
    spill_http_stop(running->metrics);
    for (size_t i = 0; i < running->loop_count; i++)
        spill_loop_free(running->loops[i]);
    spill_workers_free(gateway->workers);
    spill_served_free(gateway->served);
    spill_targets_free(gateway->targets);
    spill_retries_free(gateway->retries);
    spill_limits_free(gateway->limits);
    spill_activity_free(gateway->activity);
    spill_tls_context_free(gateway->tls);
    pthread_mutex_destroy(&gateway->lock);
}

/* ---- what is served -------------------------------------------------------------------------- */

/* Print the served collections, and those that have a definition and are not served. */
static void print_collections(const spill_served_t *served, FILE *out)
{
    const spill_served_collection_t *const *all = spill_served_all(served);
    if (!*all)
        fprintf(out, "; no collection has a definition, so everything is relayed");
    for (size_t i = 0; all[i]; i++)
        if (all[i]->array)
            fprintf(out, "%s%s", i == 0 ? "; arrays in " : ", ", all[i]->collection);
        else
            fprintf(out, "%s%s (not served: %s)", i == 0 ? "; arrays in " : ", ",
                    all[i]->collection, all[i]->reason);
}

static void print_start(const running_t *running, FILE *out)
{
    const spill_gateway_t *gateway = &running->gateway;
    static const char *const kinds[] = {[SPILL_UPSTREAM_STANDALONE] = "a standalone server",
                                        [SPILL_UPSTREAM_REPLICA_SET] = "a replica set",
                                        [SPILL_UPSTREAM_ROUTER] = "a sharded cluster"};
    spill_target_t *target = spill_targets_get(gateway->targets);
    fprintf(out, "spillway: listening on mongodb://%s/%s in front of %s (%s)", running->address,
            gateway->tls ? "?tls=true" : "", spill_targets_place(gateway->targets),
            kinds[target->primary.kind]);
    print_collections(gateway->served, out);
    if (running->metrics)
        fprintf(out, "; metrics on %s", spill_http_url(running->metrics, "/metrics").text);
    fprintf(out, "\n");
    fflush(out);
    spill_target_release(target);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void block_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Read the definitions again; an error leaves the old ones. */
static void reload_definitions(spill_gateway_t *gateway)
{
    spill_error_t error;
    if (spill_served_reload(gateway->served, &error) != SPILL_OK)
        spill_gateway_log("definitions not reloaded", BCON_NEW("cause", BCON_UTF8(error.message)));
}

/*
 * Finish drops of owners by old notes, a batch for each collection. Another process may have put
 * pages after the drop. A failure leaves the notes. Returns whether there may be more of them.
 */
static bool finish_drops(running_t *running)
{
    bool any = false;
    spill_error_t error;
    const spill_served_collection_t *const *all = spill_served_all(running->gateway.served);
    for (size_t i = 0; all[i] != NULL && !atomic_load(&running->ending); i++) {
        bool more = false;
        if (all[i]->array != NULL &&
            spill_array_finish_drops(all[i]->array, &more, &error) != SPILL_OK)
            spill_gateway_log("old notes of drops stay",
                              BCON_NEW("cause", BCON_UTF8(error.message)));
        any = any || more;
    }
    return any;
}

static void *reload_repeatedly(void *context)
{
    running_t *running = context;
    for (int until_sweep = 0;; until_sweep--) {
        struct timespec until = spill_clock_after_us(RELOAD_US);
        sem_clockwait(&running->wake, CLOCK_MONOTONIC, &until);
        if (atomic_load(&running->ending))
            return NULL;
        reload_definitions(&running->gateway);
        if (until_sweep <= 0)
            until_sweep = finish_drops(running) ? 1 : SWEEP_RELOADS;
    }
}

static spill_code_t start_reloader(running_t *running, spill_error_t *error)
{
    int problem = pthread_create(&running->reloader, NULL, reload_repeatedly, running);
    if (problem != 0)
        return spill_fail_errno(error, problem, "a thread");
    running->reloads = true;
    return SPILL_OK;
}

/* Join the threads that may wait for the server. False: one does, so nothing may be freed. */
static bool end_threads(running_t *running)
{
    struct timespec until = spill_clock_after_us(RELOADER_END_US);
    atomic_store(&running->ending, true);
    sem_post(&running->wake);
    if (running->reloads &&
        pthread_clockjoin_np(running->reloader, NULL, CLOCK_MONOTONIC, &until) != 0)
        return false;
    spill_targets_t *targets = running->gateway.targets;
    return spill_targets_end(targets, THREAD_END_MS) && (!targets || spill_targets_known(targets));
}

static void reload_tls(spill_gateway_t *gateway)
{
    spill_error_t error;
    spill_tls_context_t *fresh;
    if (read_tls(gateway->options, &fresh, &error) != SPILL_OK) {
        spill_gateway_log("certificates not reloaded", BCON_NEW("cause", BCON_UTF8(error.message)));
        spill_tls_context_free(fresh);
        return;
    }
    pthread_mutex_lock(&gateway->lock);
    spill_tls_context_t *before = gateway->tls;
    gateway->tls = fresh;
    pthread_mutex_unlock(&gateway->lock);
    spill_tls_context_free(before);
}

/* Wait for a signal that ends the gateway; SIGHUP: read certificates and definitions again. */
static void serve_until_signal(running_t *running, const sigset_t *signals)
{
    for (;;) {
        int signal = sigwaitinfo(signals, NULL);
        if (signal == SIGTERM || signal == SIGINT)
            return;
        if (signal == SIGHUP) {
            reload_tls(&running->gateway);
            spill_gateway_log("reload", NULL);
            sem_post(&running->wake);
        }
    }
}

/* Wait for the loops at most `wait_us`. `signals`: one of them ends the wait. */
static bool await_loops(running_t *running, int64_t wait_us, const sigset_t *signals)
{
    enum { LOOK_MS = 20 };
    static const struct timespec none = {0};
    int64_t until_us = spill_clock_monotonic_us(NULL) + wait_us;
    for (size_t i = 0; i < running->loop_count; i++) {
        while (!spill_loop_ended(running->loops[i], LOOK_MS)) {
            int signal = sigtimedwait(signals, NULL, &none);
            if (signal == SIGTERM || signal == SIGINT || spill_clock_monotonic_us(NULL) >= until_us)
                return false;
        }
    }
    return true;
}

/* Let commands end, then close what is left. False: a worker hangs. */
static bool end_loops(running_t *running, const sigset_t *signals)
{
    int64_t drain_us = running->gateway.options->drain_seconds * 1000000;
    for (size_t i = 0; i < running->loop_count; i++)
        spill_loop_drain(running->loops[i]); /* closes the listener */
    if (running->announcement >= 0)
        close(running->announcement);
    running->announcement = -1;
    if (await_loops(running, drain_us, signals))
        return true;
    for (size_t i = 0; i < running->loop_count; i++)
        spill_loop_abort(running->loops[i]);
    return await_loops(running, ABORT_US, signals);
}

static spill_code_t serve(running_t *running, FILE *out, const sigset_t *signals,
                          spill_error_t *error)
{
    SPILL_TRY(open_loops(running, error));
    SPILL_TRY(open_metrics(running, error));
    print_start(running, out);
    spill_gateway_log("start", BCON_NEW("listen", BCON_UTF8(running->address)));
    log_fewer(running);
    SPILL_TRY(start_reloader(running, error));
    spill_service_manager_notify("READY=1");
    serve_until_signal(running, signals);
    spill_service_manager_notify("STOPPING=1");
    spill_gateway_log(
        "drain",
        BCON_NEW("connections", BCON_INT64(spill_limits_connections(running->gateway.limits))));
    return SPILL_OK;
}

spill_code_t spill_gateway_run(const spill_gateway_options_t *options, FILE *out,
                               spill_error_t *error)
{
    static _Atomic(running_t *) left; /* what a thread still uses while the process ends */
    sigset_t signals;
    SPILL_TRY(spill_gateway_check_options(options, error));
    running_t *running = bson_malloc0(sizeof *running);
    running->announcement = -1;
    atomic_store(&left, running);
    sem_init(&running->wake, 0, 0);
    block_signals(&signals);
    spill_code_t code = open_parts(running, options, error);
    if (code == SPILL_OK)
        code = serve(running, out, &signals, error);
    bool ended = end_loops(running, &signals) && end_threads(running);
    if (code == SPILL_OK)
        spill_gateway_log("end", NULL);
    if (ended) {
        free_parts(running);
        sem_destroy(&running->wake);
        bson_free(running);
        atomic_store(&left, NULL);
    }
    return code;
}
