/*
 * The gateway as a whole: what it is asked to do, and its run. It stands between drivers and a
 * server, which is called upstream here.
 *
 * The folder's files, in the order to read:
 *   gateway.c        its parts, its signals and its end
 *   relay/           sockets, messages, and the relay of bytes (relay/connection.h)
 *   translate/       commands on collections that have a definition (translate/translate.h)
 *   gateway_check.c  serve --check: what would be served, and with which rights
 *   gateway_log.c    the log: lines of JSON; slow.c logs slow commands
 *   metrics.c        counters, as Prometheus reads them
 *   activity.c       what the status page shows of late; status_page.c makes the page
 */
#ifndef SPILL_GATEWAY_GATEWAY_H
#define SPILL_GATEWAY_GATEWAY_H

#include "gateway/relay/hello.h"
#include "gateway/relay/tls.h"

#include <stdio.h>

/* Texts are borrowed; NULL: the option is not given. */
typedef struct spill_gateway_options {
    const char *uri;
    const char *listen;  /* ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT */
    const char *metrics; /* PORT or ADDRESS:PORT */
    const char *tls_certificate;
    const char *tls_key;
    const char *tls_authority;
    spill_tls_client_t tls_client;
    spill_present_t present;
    bool shows_owners;       /* the status page shows the _ids of owners */
    int64_t connections_max; /* 0: SPILL_GATEWAY_CONNECTIONS, or fewer if open files are few */
    int64_t address_connections_max;
    int64_t workers_max;
    int64_t loops; /* 0: one for each core */
    int64_t memory_bytes;
    int64_t reply_bytes_max; /* 0: the server's */
    int64_t header_seconds;
    int64_t drain_seconds;
    int64_t slow_ms; /* log commands that take this long; 0: none */
} spill_gateway_options_t;

#define SPILL_GATEWAY_PORT 27018
#define SPILL_GATEWAY_CONNECTIONS 10000

/*
 * Serve until SIGTERM or SIGINT, then drain. Prints one line on `out` when it serves: what, and
 * where. Errors of the options say what to do. Blocks these signals and SIGHUP in all threads.
 */
spill_code_t spill_gateway_run(const spill_gateway_options_t *options, FILE *out,
                               spill_error_t *error);

/* Check the options that need no server: addresses, and the files for TLS. */
spill_code_t spill_gateway_check_options(const spill_gateway_options_t *options,
                                         spill_error_t *error);

/*
 * Connect to the server, print on `out` what would be served, and end. `json`: a line of JSON for
 * the server, each collection with a definition, and each view of one. *found: a collection has a
 * definition and is not served. SPILL_DENIED: the URI's user lacks a right that served collections
 * need.
 */
spill_code_t spill_gateway_check(const spill_gateway_options_t *options, FILE *out, bool json,
                                 bool *found, spill_error_t *error);

#endif
