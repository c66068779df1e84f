/*
 * Gateways that share a port. An upgrade starts the new process beside the old one, and the kernel
 * gives each a part of the connections. Gateways of two databases must not share a port: a client
 * would reach either of them by chance.
 *
 * Each gateway binds an abstract Unix socket. Its name has the port, the process and a hash of the
 * database, and all processes of the machine that can share the port see it (/proc/net/unix).
 */
#ifndef SPILL_GATEWAY_RELAY_SHARED_PORT_H
#define SPILL_GATEWAY_RELAY_SHARED_PORT_H

#include <spillway/error.h>

/*
 * Announce that this process serves `database` at `address` (ADDRESS:PORT), before it listens.
 * *descriptor keeps the announcement until the caller closes it; -1 after an error, or if the
 * system has no such names. SPILL_REFUSED: another gateway serves another database there.
 */
spill_code_t spill_shared_port_join(const char *address, const char *database, int *descriptor,
                                    spill_error_t *error);

#endif
