/*
 * serve: the options, and the two programs that have them. `spillway` starts spillway-serve, which
 * has the libraries of a network service; other commands must not wait for these to be loaded.
 */
#ifndef SPILL_CLI_SERVE_H
#define SPILL_CLI_SERVE_H

#include "cli/command.h"
#include "gateway/gateway.h"

typedef struct spill_cli_serve_options {
    spill_gateway_options_t gateway; /* without uri, present and tls_client */
    const char *tls_client;
    const char *present;
    bool check;
} spill_cli_serve_options_t;

/* In `spillway` it starts the other program, in spillway-serve it serves. */
spill_exit_t spill_cli_serve(const spill_invocation_t *invocation);

#endif
