/*
 * What bounds the gateway: the memory of messages that it holds, and the number of connections, in
 * all and from one address. Any thread.
 */
#ifndef SPILL_GATEWAY_RELAY_LIMITS_H
#define SPILL_GATEWAY_RELAY_LIMITS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

typedef struct spill_limits spill_limits_t;

spill_limits_t *spill_limits_new(int64_t memory_bytes_max, int64_t connections_max,
                                 int64_t address_connections_max);
void spill_limits_free(spill_limits_t *limits); /* NULL is allowed */

/* Count bytes that are held; false: they would exceed the limit, and are not counted. */
bool spill_limits_reserve(spill_limits_t *limits, size_t bytes);
void spill_limits_release(spill_limits_t *limits, size_t bytes);
int64_t spill_limits_memory(spill_limits_t *limits);

/* The address of a peer, in one form for both families. */
typedef struct spill_peer {
    uint8_t address[16];
} spill_peer_t;

spill_peer_t spill_peer_of(const struct sockaddr *address);

/* Count a connection. NULL: it is admitted; else the reason why not, and it is not counted. */
const char *spill_limits_admit(spill_limits_t *limits, const spill_peer_t *peer);
void spill_limits_leave(spill_limits_t *limits, const spill_peer_t *peer);
int64_t spill_limits_connections(spill_limits_t *limits);

#endif
