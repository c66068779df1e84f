/* HTTP by libmicrohttpd, on a thread of its own. */
#include "service/http_server.h"

#include "util/error.h"
#include "util/shared_library.h"

#include <arpa/inet.h>
#include <bson/bson.h>
#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the library ----------------------------------------------------------------------------- */

#define LIBRARY "libmicrohttpd.so.12"

/* Where it is, as in store/mongo/driver.c. */
#ifndef SPILLWAY_MICROHTTPD
#define SPILLWAY_MICROHTTPD LIBRARY
#endif

#define FUNCTIONS(X)                                                                               \
    X(start_daemon)                                                                                \
    X(stop_daemon)                                                                                 \
    X(get_daemon_info)                                                                             \
    X(create_response_from_buffer)                                                                 \
    X(add_response_header)                                                                         \
    X(queue_response)                                                                              \
    X(destroy_response)

typedef struct microhttpd {
#define MEMBER(name) __typeof__(MHD_##name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} microhttpd_t;

static microhttpd_t mhd;
static char failure[256]; /* why it is not loaded; "": it is */

static void load(void)
{
    static const spill_library_function_t functions[] = {
#define FUNCTION(name) {"MHD_" #name, offsetof(microhttpd_t, name)},
        FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    spill_library_load(SPILLWAY_MICROHTTPD, functions, sizeof functions / sizeof functions[0], &mhd,
                       failure, sizeof failure);
}

static spill_code_t load_library(spill_error_t *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (failure[0] == '\0')
        return SPILL_OK;
    return spill_fail(error, SPILL_IO,
                      "--metrics needs " LIBRARY ", which cannot be loaded: %s: install "
                      "libmicrohttpd 0.9.71 or later (Debian: libmicrohttpd12)",
                      failure);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The policy forbids a page to load anything. */
#define POLICY                                                                                     \
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "         \
    "frame-ancestors 'none'"

struct spill_http_server {
    char address[INET_ADDRSTRLEN];
    struct MHD_Daemon *daemon;
    spill_http_answer_fn answer;
    void *context;
};

void spill_http_say(spill_http_answer_t *answer, unsigned status, const char *text)
{
    answer->status = status;
    spill_buffer_append(&answer->text, text, strlen(text));
}

static enum MHD_Result send_answer(struct MHD_Connection *connection,
                                   const spill_http_answer_t *answer)
{
    struct MHD_Response *response = mhd.create_response_from_buffer(
        answer->text.size, answer->text.data, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    mhd.add_response_header(response, "Content-Type", answer->type);
    mhd.add_response_header(response, "Content-Security-Policy", POLICY);
    mhd.add_response_header(response, "Cache-Control", "no-store");
    enum MHD_Result done = mhd.queue_response(connection, answer->status, response);
    mhd.destroy_response(response);
    return done;
}

/* libmicrohttpd calls it for each request; the bodies of requests are not read. */
static enum MHD_Result serve_request(void *context, struct MHD_Connection *connection,
                                     const char *url, const char *method, const char *version,
                                     const char *upload, size_t *upload_bytes, void **request)
{
    (void)version;
    (void)upload;
    (void)upload_bytes;
    (void)request;
    const spill_http_server_t *server = context;
    spill_http_answer_t answer = {
        .status = SPILL_HTTP_OK, .type = SPILL_HTTP_PLAIN, .text = SPILL_BUFFER_INIT};
    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
        server->answer(server->context, url, &answer);
    else
        spill_http_say(&answer, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    enum MHD_Result done = send_answer(connection, &answer);
    spill_buffer_release(&answer.text);
    return done;
}

/* ---- the server ------------------------------------------------------------------------------ */

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

static spill_code_t read_address(const char *address, struct sockaddr_in *place,
                                 spill_error_t *error)
{
    if (parse_address(address, place))
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID,
                      "--metrics '%s' must be PORT or ADDRESS:PORT, such as 9216 or "
                      "127.0.0.1:9216",
                      address);
}

spill_code_t spill_http_check(const char *address, spill_error_t *error)
{
    struct sockaddr_in place;
    return read_address(address, &place, error);
}

spill_code_t spill_http_start(const char *address, spill_http_answer_fn answer, void *context,
                              spill_http_server_t **server, spill_error_t *error)
{
    enum { CONNECTIONS_MAX = 16, TIMEOUT_SECONDS = 10 };
    struct sockaddr_in place = {0};
    *server = NULL;
    SPILL_TRY(read_address(address, &place, error));
    SPILL_TRY(load_library(error));
    spill_http_server_t *made = bson_malloc0(sizeof *made);
    *made = (spill_http_server_t){.answer = answer, .context = context};
    made->daemon =
        mhd.start_daemon(MHD_USE_AUTO_INTERNAL_THREAD, ntohs(place.sin_port), NULL, NULL,
                         serve_request, made, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&place,
                         MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_SECONDS, MHD_OPTION_END);
    if (!made->daemon) {
        bson_free(made);
        return spill_fail_errno(error, errno, "--metrics %s: cannot listen there", address);
    }
    inet_ntop(AF_INET, &place.sin_addr, made->address, sizeof made->address);
    *server = made;
    return SPILL_OK;
}

void spill_http_stop(spill_http_server_t *server)
{
    if (!server)
        return;
    mhd.stop_daemon(server->daemon);
    bson_free(server);
}

uint16_t spill_http_port(const spill_http_server_t *server)
{
    const union MHD_DaemonInfo *info =
        mhd.get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

spill_http_url_t spill_http_url(const spill_http_server_t *server, const char *path)
{
    spill_http_url_t url;
    snprintf(url.text, sizeof url.text, "http://%s:%u%.40s", server->address,
             (unsigned)spill_http_port(server), path);
    return url;
}
