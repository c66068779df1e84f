/* The status page, /metrics and /healthz by libmicrohttpd, on a thread of its own. */
#include "gateway/metrics.h"

#include "gateway/status_page.h"
#include "util/error.h"

#include <arpa/inet.h>
#include <bson/bson.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct spill_metrics_server {
    struct MHD_Daemon *daemon;
    spill_metrics_t *metrics;
    spill_metrics_state_fn state;
    void *context;
};

static const char plain[] = "text/plain; version=0.0.4; charset=utf-8";

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, const char *type,
                             const void *text, size_t size)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, (void *)text, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Content-Security-Policy", SPILL_STATUS_PAGE_POLICY);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    enum MHD_Result done = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return done;
}

static enum MHD_Result reply_text(struct MHD_Connection *connection, unsigned status,
                                  const char *text)
{
    return reply(connection, status, plain, text, strlen(text));
}

/* libmicrohttpd calls it for each request; the bodies of requests are not read. */
static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_bytes, void **request)
{
    (void)version;
    (void)upload;
    (void)upload_bytes;
    (void)request;
    spill_metrics_server_t *server = context;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return reply_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    spill_metrics_state_t state = server->state(server->context);
    if (strcmp(url, "/healthz") == 0)
        return state.primary ? reply_text(connection, MHD_HTTP_OK, "ok\n")
                             : reply_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no primary\n");
    bool page = strcmp(url, "/") == 0;
    if (!page && strcmp(url, "/metrics") != 0)
        return reply_text(connection, MHD_HTTP_NOT_FOUND, "try /, /metrics or /healthz\n");
    spill_buffer_t text = SPILL_BUFFER_INIT;
    if (page)
        spill_status_page_print(server->metrics, &state, &text);
    else
        spill_metrics_print(server->metrics, &state, &text);
    enum MHD_Result done = reply(connection, MHD_HTTP_OK, page ? "text/html; charset=utf-8" : plain,
                                 text.data, text.size);
    spill_buffer_release(&text);
    return done;
}

/* "PORT" or "ADDRESS:PORT", where the address is of IPv4. */
static bool parse_address(const char *text, struct sockaddr_in *address)
{
    char host[INET_ADDRSTRLEN] = "127.0.0.1";
    const char *colon = strrchr(text, ':');
    const char *port = colon ? colon + 1 : text;
    char *end;
    if (colon && (size_t)(colon - text) >= sizeof host)
        return false;
    if (colon)
        snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    unsigned long number = strtoul(port, &end, 10);
    if (*port < '0' || *port > '9' || *end != '\0' || number > UINT16_MAX)
        return false;
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)number)};
    return inet_pton(AF_INET, host, &address->sin_addr) == 1;
}

spill_code_t spill_metrics_serve(const char *address, spill_metrics_t *metrics,
                                 spill_metrics_state_fn state, void *context,
                                 spill_metrics_server_t **server, spill_error_t *error)
{
    enum { CONNECTIONS_MAX = 16, TIMEOUT_SECONDS = 10 };
    struct sockaddr_in place;
    *server = NULL;
    if (!parse_address(address, &place))
        return spill_fail(error, SPILL_INVALID,
                          "--metrics '%s' must be PORT or ADDRESS:PORT, such as 9216 or "
                          "127.0.0.1:9216",
                          address);
    spill_metrics_server_t *made = bson_malloc0(sizeof *made);
    *made = (spill_metrics_server_t){.metrics = metrics, .state = state, .context = context};
    made->daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, ntohs(place.sin_port), NULL, NULL, answer,
                         made, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&place,
                         MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_SECONDS, MHD_OPTION_END);
    if (!made->daemon) {
        bson_free(made);
        return spill_fail_errno(error, errno, "--metrics %s: cannot listen there", address);
    }
    *server = made;
    return SPILL_OK;
}

void spill_metrics_stop(spill_metrics_server_t *server)
{
    if (!server)
        return;
    MHD_stop_daemon(server->daemon);
    bson_free(server);
}

uint16_t spill_metrics_port(const spill_metrics_server_t *server)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}
