/*
 * A small HTTP server for the operators of a running program: /metrics, /healthz and the like. It
 * loads libmicrohttpd when it starts, so programs that start no server do not wait for that.
 */
#ifndef SPILL_SERVICE_HTTP_SERVER_H
#define SPILL_SERVICE_HTTP_SERVER_H

#include "util/buffer.h"

#include <spillway/error.h>

#include <stdbool.h>
#include <stdint.h>

#define SPILL_HTTP_OK 200U
#define SPILL_HTTP_NOT_FOUND 404U
#define SPILL_HTTP_UNAVAILABLE 503U

#define SPILL_HTTP_PLAIN "text/plain; version=0.0.4; charset=utf-8"
#define SPILL_HTTP_PAGE "text/html; charset=utf-8"

/* An answer. It begins as an empty text in the format of Prometheus, with SPILL_HTTP_OK. */
typedef struct spill_http_answer {
    unsigned status;
    const char *type; /* static */
    spill_buffer_t text;
} spill_http_answer_t;

/* Answer a request for `path`. Called on the server's thread, for one request at a time. */
typedef void (*spill_http_answer_fn)(void *context, const char *path, spill_http_answer_t *answer);

/* Append a text to an answer, and set its status. */
void spill_http_say(spill_http_answer_t *answer, unsigned status, const char *text);

typedef struct spill_http_server spill_http_server_t;

/* Check the form of the address for spill_http_start. SPILL_INVALID: the message names --metrics.
 */
spill_code_t spill_http_check(const char *address, spill_error_t *error);

/*
 * Listen on "PORT" (loopback) or "ADDRESS:PORT", on a thread of its own. Port 0: the system chooses
 * one. Every answer forbids browsers to load anything else. SPILL_INVALID: the address; the message
 * names the option --metrics. SPILL_IO: it cannot listen there, or libmicrohttpd is missing.
 */
spill_code_t spill_http_start(const char *address, spill_http_answer_fn answer, void *context,
                              spill_http_server_t **server, spill_error_t *error);

/* Stop the thread and close the connections. NULL is allowed. */
void spill_http_stop(spill_http_server_t *server);

uint16_t spill_http_port(const spill_http_server_t *server);

/* The URL of a path, such as "http://127.0.0.1:9216/metrics". The path has at most 40 bytes. */
typedef struct spill_http_url {
    char text[80];
} spill_http_url_t;
spill_http_url_t spill_http_url(const spill_http_server_t *server, const char *path);

#endif
