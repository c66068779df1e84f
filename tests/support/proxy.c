#include "support/proxy.h"

#include "simulation/random.h"
#include "support/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <mongoc/mongoc.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct connection {
    proxy_t *proxy;
    struct connection *next; /* the next open connection */
    int client;
    int server;
    sim_random_t random;
    wire_message_t message;
    bool own;               /* the last request was the driver's own */
    proxy_fault_t fault;    /* of the last request */
    int64_t reply_pause_us; /* before the answer to it */
    bool answered;          /* the proxy has answered the last request with an error */
    proxy_error_t error;
    bool held; /* its answer is, with HOLD_REPLIES */
} connection_t;

struct proxy {
    struct sockaddr_storage server;
    socklen_t server_size;
    int listener;
    uint16_t port;
    pthread_t acceptor;
    pthread_mutex_t lock;  /* protects the members below */
    pthread_cond_t change; /* a connection has ended, or the proxy stops */
    bool stopping;
    connection_t *open;
    proxy_plan_t plan;
    proxy_counts_t counts;
    wire_message_t last; /* the last request that was counted */
    proxy_hold_t hold;
    int64_t pass;   /* requests that are not held, the driver's own not counted */
    bool answering; /* request number `answer_at` is answered with `answer_error` */
    bool has_answered;
    int64_t answer_at;
    proxy_error_t answer_error;
};

static void die(const char *what)
{
    fprintf(stderr, "proxy: %s: %s\n", what, strerror(errno));
    exit(1);
}

const char *proxy_fault_name(proxy_fault_t fault)
{
    static const char *const names[PROXY_FAULT_COUNT] = {
        [PROXY_PASS] = "passed",
        [PROXY_CUT_BEFORE] = "cut before the request",
        [PROXY_CUT_REQUEST] = "cut within the request",
        [PROXY_CUT_AFTER] = "cut after the request",
        [PROXY_CUT_REPLY] = "cut within the answer",
        [PROXY_LATE] = "cut, and the request late",
        [PROXY_DELAY] = "delayed",
    };
    return names[fault];
}

/* ---- one message ----------------------------------------------------------------------------- */

/* Count a request, and draw its fault. */
static proxy_fault_t judge_request(connection_t *connection)
{
    proxy_t *proxy = connection->proxy;
    connection->own = wire_is_driver_own(&connection->message);
    connection->answered = false;
    int drawn = sim_random_below(&connection->random, 10000);
    proxy_fault_t fault = PROXY_PASS;
    pthread_mutex_lock(&proxy->lock);
    if (connection->own) {
        proxy->counts.own_requests++;
    } else {
        for (int i = PROXY_PASS + 1; i < PROXY_FAULT_COUNT && fault == PROXY_PASS; i++) {
            if (drawn < proxy->plan.rate[i])
                fault = (proxy_fault_t)i;
            drawn -= proxy->plan.rate[i];
        }
        connection->answered = proxy->answering && proxy->answer_at-- == 0;
        connection->error = proxy->answer_error;
        proxy->has_answered = proxy->has_answered || connection->answered;
        wire_copy(&connection->message, &proxy->last);
        proxy->counts.requests++;
        proxy->counts.request_bytes += (int64_t)connection->message.size;
        proxy->counts.faults[fault]++;
    }
    pthread_mutex_unlock(&proxy->lock);
    return fault;
}

static void book_reply(connection_t *connection)
{
    proxy_t *proxy = connection->proxy;
    pthread_mutex_lock(&proxy->lock);
    if (connection->own) {
        proxy->counts.own_replies++;
    } else {
        proxy->counts.replies++;
        proxy->counts.reply_bytes += (int64_t)connection->message.size;
    }
    pthread_mutex_unlock(&proxy->lock);
}

/* A random part of the plan's longest pause for this fault. */
static int64_t draw_pause(connection_t *connection)
{
    proxy_t *proxy = connection->proxy;
    pthread_mutex_lock(&proxy->lock);
    int64_t longest = connection->fault == PROXY_LATE ? proxy->plan.late_us : proxy->plan.delay_us;
    pthread_mutex_unlock(&proxy->lock);
    return longest > 0 ? (int64_t)(sim_random_next(&connection->random) % (uint64_t)longest) : 0;
}

/* Sleep, but not beyond the end of the proxy. */
static void pause_us(proxy_t *proxy, int64_t duration_us)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + duration_us % 1000000 * 1000;
    until.tv_sec += (time_t)(duration_us / 1000000 + nanoseconds / 1000000000);
    until.tv_nsec = (long)(nanoseconds % 1000000000);
    pthread_mutex_lock(&proxy->lock);
    while (!proxy->stopping &&
           pthread_cond_timedwait(&proxy->change, &proxy->lock, &until) != ETIMEDOUT) {
    }
    pthread_mutex_unlock(&proxy->lock);
}

/* A random length, at least one byte shorter than the message. */
static size_t draw_part(connection_t *connection, size_t least)
{
    size_t most = connection->message.size - 1;
    return least + sim_random_next(&connection->random) % (most - least + 1);
}

/* Send the client an error instead of the answer to request `number`. */
static bool send_error(connection_t *connection, uint32_t request)
{
    enum { WRITE_CONFLICT = 112, INTERRUPTED = 11601 };
    bool perhaps = connection->error == PROXY_PERHAPS;
    wire_error(&connection->message, request, perhaps ? INTERRUPTED : WRITE_CONFLICT,
               perhaps ? "a test lost the answer" : "a test refused the request");
    return wire_send(connection->client, &connection->message, connection->message.size);
}

/* Wait while the proxy holds the request; note whether it holds the answer. False: it stops. */
static bool hold_request(connection_t *connection)
{
    proxy_t *proxy = connection->proxy;
    pthread_mutex_lock(&proxy->lock);
    bool counts = !connection->own && proxy->hold != PROXY_HOLD_NOTHING;
    bool passes = counts && proxy->pass > 0;
    proxy->pass -= passes;
    while (
        !passes && !proxy->stopping &&
        (proxy->hold == PROXY_HOLD_ALL || (proxy->hold == PROXY_HOLD_REQUESTS && !connection->own)))
        pthread_cond_wait(&proxy->change, &proxy->lock);
    connection->held = !passes && proxy->hold == PROXY_HOLD_REPLIES && !connection->own;
    bool stopping = proxy->stopping;
    pthread_mutex_unlock(&proxy->lock);
    return !stopping;
}

static bool hold_reply(const connection_t *connection)
{
    proxy_t *proxy = connection->proxy;
    pthread_mutex_lock(&proxy->lock);
    while (connection->held && !proxy->stopping && proxy->hold == PROXY_HOLD_REPLIES)
        pthread_cond_wait(&proxy->change, &proxy->lock);
    bool stopping = proxy->stopping;
    pthread_mutex_unlock(&proxy->lock);
    return !stopping;
}

/* Receive a request from the client. Returns false if the connection must end. */
static bool pass_request(connection_t *connection)
{
    wire_message_t *message = &connection->message;
    if (!wire_receive(connection->client, message))
        return false;
    connection->fault = judge_request(connection);
    if (!hold_request(connection))
        return false;
    if (connection->answered && connection->error == PROXY_NOT_DONE)
        return send_error(connection, wire_number(message));
    switch (connection->fault) {
    case PROXY_CUT_BEFORE:
        return false;
    case PROXY_CUT_REQUEST:
        wire_send(connection->server, message, draw_part(connection, 1));
        return false;
    case PROXY_CUT_AFTER:
        shutdown(connection->client, SHUT_RDWR);
        break;
    case PROXY_LATE:
        shutdown(connection->client, SHUT_RDWR);
        pause_us(connection->proxy, draw_pause(connection));
        break;
    case PROXY_DELAY:
        pause_us(connection->proxy, draw_pause(connection));
        connection->reply_pause_us = draw_pause(connection);
        break;
    default:
        break;
    }
    return wire_send(connection->server, message, message->size);
}

static bool pass_reply(connection_t *connection)
{
    wire_message_t *message = &connection->message;
    if (!wire_receive(connection->server, message))
        return false;
    book_reply(connection);
    if (!hold_reply(connection))
        return false;
    if (connection->answered)
        return send_error(connection, wire_answered(message));
    switch (connection->fault) {
    case PROXY_CUT_AFTER:
    case PROXY_LATE: /* the server has done its work, and the client is gone */
        return false;
    case PROXY_CUT_REPLY:
        wire_send(connection->client, message, draw_part(connection, 0));
        return false;
    case PROXY_DELAY:
        pause_us(connection->proxy, connection->reply_pause_us);
        break;
    default:
        break;
    }
    return wire_send(connection->client, message, message->size);
}

/* ---- connections ----------------------------------------------------------------------------- */

static bool pass_next(connection_t *connection)
{
    bool client_gone = connection->fault == PROXY_CUT_AFTER || connection->fault == PROXY_LATE;
    struct pollfd ends[] = {{.fd = connection->server, .events = POLLIN},
                            {.fd = client_gone ? -1 : connection->client, .events = POLLIN}};
    if (poll(ends, 2, -1) < 0)
        return errno == EINTR;
    if (ends[0].revents != 0)
        return pass_reply(connection);
    return pass_request(connection);
}

static void *serve(void *argument)
{
    connection_t *connection = argument;
    proxy_t *proxy = connection->proxy;
    while (pass_next(connection)) {
    }
    pthread_mutex_lock(&proxy->lock);
    connection_t **at = &proxy->open;
    while (*at != connection)
        at = &(*at)->next;
    *at = connection->next;
    close(connection->client);
    close(connection->server);
    pthread_cond_broadcast(&proxy->change);
    pthread_mutex_unlock(&proxy->lock);
    wire_release(&connection->message);
    bson_free(connection);
    return NULL;
}

static int connect_to_server(const proxy_t *proxy)
{
    int one = 1;
    int server = socket(proxy->server.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0)
        die("socket");
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(server, (const struct sockaddr *)&proxy->server, proxy->server_size) == 0)
        return server;
    close(server);
    return -1;
}

/* Accept a client. If the server does not answer, close the connection. */
static void open_connection(proxy_t *proxy, int client)
{
    int one = 1;
    int server = connect_to_server(proxy);
    if (server < 0) {
        close(client);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    connection_t *connection = bson_malloc0(sizeof *connection);
    connection->proxy = proxy;
    connection->client = client;
    connection->server = server;
    pthread_t thread;
    pthread_mutex_lock(&proxy->lock);
    connection->random.state = proxy->plan.seed + (uint64_t)proxy->counts.connections++;
    sim_random_next(&connection->random);
    connection->next = proxy->open;
    proxy->open = connection;
    pthread_mutex_unlock(&proxy->lock);
    if ((errno = pthread_create(&thread, NULL, serve, connection)) != 0)
        die("pthread_create");
    pthread_detach(thread);
}

static void *accept_clients(void *argument)
{
    proxy_t *proxy = argument;
    while (true) {
        int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            open_connection(proxy, client);
        else if (errno != EINTR && errno != ECONNABORTED)
            return NULL; /* proxy_stop has shut it down */
    }
}

/* ---- the proxy ------------------------------------------------------------------------------- */

static void find_server(proxy_t *proxy, const char *text)
{
    mongoc_uri_t *uri = mongoc_uri_new(text);
    const mongoc_host_list_t *host = uri != NULL ? mongoc_uri_get_hosts(uri) : NULL;
    if (host == NULL) {
        fprintf(stderr, "proxy: no host in the URI of the server\n");
        exit(1);
    }
    char port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    snprintf(port, sizeof port, "%u", (unsigned)host->port);
    int failure = getaddrinfo(host->host, port, &hints, &found);
    if (failure != 0) {
        fprintf(stderr, "proxy: %s: %s\n", host->host, gai_strerror(failure));
        exit(1);
    }
    memcpy(&proxy->server, found->ai_addr, found->ai_addrlen);
    proxy->server_size = found->ai_addrlen;
    freeaddrinfo(found);
    mongoc_uri_destroy(uri);
}

proxy_t *proxy_start(const char *uri)
{
    mongoc_init();
    proxy_t *proxy = bson_malloc0(sizeof *proxy);
    find_server(proxy, uri);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (proxy->listener < 0 || bind(proxy->listener, (struct sockaddr *)&address, size) != 0 ||
        listen(proxy->listener, SOMAXCONN) != 0 ||
        getsockname(proxy->listener, (struct sockaddr *)&address, &size) != 0)
        die("listen");
    proxy->port = ntohs(address.sin_port);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&proxy->change, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&proxy->lock, NULL);
    if ((errno = pthread_create(&proxy->acceptor, NULL, accept_clients, proxy)) != 0)
        die("pthread_create");
    return proxy;
}

void proxy_stop(proxy_t *proxy)
{
    if (proxy == NULL)
        return;
    shutdown(proxy->listener, SHUT_RDWR);
    pthread_join(proxy->acceptor, NULL);
    close(proxy->listener);
    pthread_mutex_lock(&proxy->lock);
    proxy->stopping = true;
    pthread_cond_broadcast(&proxy->change);
    for (connection_t *at = proxy->open; at != NULL; at = at->next) {
        shutdown(at->client, SHUT_RDWR);
        shutdown(at->server, SHUT_RDWR);
    }
    while (proxy->open != NULL)
        pthread_cond_wait(&proxy->change, &proxy->lock);
    pthread_mutex_unlock(&proxy->lock);
    pthread_cond_destroy(&proxy->change);
    pthread_mutex_destroy(&proxy->lock);
    wire_release(&proxy->last);
    bson_free(proxy);
}

char *proxy_uri(const proxy_t *proxy, const char *uri)
{
    const char *login = strstr(uri, "://");
    login = login != NULL ? login + 3 : uri;
    size_t authority = strcspn(login, "/?");
    const char *host = login;
    for (const char *at = login; at < login + authority; at++)
        if (*at == '@')
            host = at + 1;
    const char *path = login + authority;
    bson_string_t *text = bson_string_new("mongodb://");
    bson_string_append_printf(text, "%.*s127.0.0.1:%u", (int)(host - login), login,
                              (unsigned)proxy->port);
    size_t path_size = strcspn(path, "?");
    bson_string_append_printf(text, "%.*s?directConnection=true",
                              path_size > 0 ? (int)path_size : 1, path_size > 0 ? path : "/");
    const char *options = path[path_size] == '?' ? path + path_size + 1 : "";
    while (*options != '\0') {
        size_t size = strcspn(options, "&");
        if (size > 0 && strncmp(options, "replicaSet=", strlen("replicaSet=")) != 0)
            bson_string_append_printf(text, "&%.*s", (int)size, options);
        options += size + (options[size] == '&' ? 1 : 0);
    }
    return bson_string_free(text, false);
}

void proxy_set_plan(proxy_t *proxy, const proxy_plan_t *plan)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->plan = plan != NULL ? *plan : (proxy_plan_t){0};
    pthread_mutex_unlock(&proxy->lock);
}

void proxy_hold(proxy_t *proxy, proxy_hold_t hold, int64_t pass)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->hold = hold;
    proxy->pass = pass;
    pthread_cond_broadcast(&proxy->change);
    pthread_mutex_unlock(&proxy->lock);
}

proxy_counts_t proxy_counts(proxy_t *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    proxy_counts_t counts = proxy->counts;
    pthread_mutex_unlock(&proxy->lock);
    return counts;
}

char *proxy_last_request(proxy_t *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    char *text = wire_command_text(&proxy->last);
    pthread_mutex_unlock(&proxy->lock);
    return text;
}

void proxy_answer(proxy_t *proxy, int64_t at, proxy_error_t error)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->answering = true;
    proxy->has_answered = false;
    proxy->answer_at = at;
    proxy->answer_error = error;
    pthread_mutex_unlock(&proxy->lock);
}

bool proxy_cancel_answer(proxy_t *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    bool answered = proxy->has_answered;
    proxy->answering = false;
    pthread_mutex_unlock(&proxy->lock);
    return answered;
}
