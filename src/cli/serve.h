/*
 * serve: the options, and the two programs that have them. `spillway` starts spillway-serve, which
 * has the libraries of a network service; other commands must not wait for these to be loaded.
 */
#ifndef SPILL_CLI_SERVE_H
#define SPILL_CLI_SERVE_H

#include "cli/command.h"
#include "gateway/gateway.h"

/* A number that the command line does not give; it cannot give a negative one. */
#define SPILL_CLI_NOT_GIVEN (-1)

typedef struct spill_cli_serve_options {
    /* Without uri, present and tls_client; numbers with a default of the gateway's are
     * SPILL_CLI_NOT_GIVEN. */
    spill_gateway_options_t gateway;
    const char *tls_client;
    const char *present;
    bool check;
} spill_cli_serve_options_t;

/* In `spillway` it starts the other program, in spillway-serve it serves. */
spill_exit_t spill_cli_serve(const spill_invocation_t *invocation);

#endif
