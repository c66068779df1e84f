/*
 * serve: the options, and the two programs that have them. `spillway` starts spillway-serve, which
 * has the libraries of a network service; other commands must not wait for these to be loaded.
 */
#ifndef SPILL_CLI_SERVE_H
#define SPILL_CLI_SERVE_H

#include "cli/command.h"

typedef struct spill_cli_serve_options {
    const char *listen;
    const char *metrics;
    const char *tls_certificate;
    const char *tls_key;
    const char *tls_authority;
    const char *tls_client;
    const char *present;
    int64_t connections_max;
    int64_t address_connections_max;
    int64_t workers_max;
    int64_t loops;
    int64_t memory_bytes;
    int64_t reply_bytes_max;
    int64_t header_seconds;
    int64_t drain_seconds;
    bool check;
} spill_cli_serve_options_t;

/* In `spillway` it starts the other program, in spillway-serve it serves. */
spill_exit_t spill_cli_serve(const spill_invocation_t *invocation);

#endif
