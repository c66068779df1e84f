/* What becomes of a client's message: answered here, relayed, or translated by a worker. */
#ifndef SPILL_GATEWAY_RELAY_DISPATCH_H
#define SPILL_GATEWAY_RELAY_DISPATCH_H

#include "gateway/relay/command_peek.h"
#include "gateway/relay/connection.h"

/* A whole message; borrowed. */
void spill_dispatch_message(spill_connection_t *connection, const uint8_t *bytes, size_t size);

/* May the rest of this message be passed on before it has arrived? */
bool spill_dispatch_streams(const spill_connection_t *connection, const spill_command_peek_t *peek);

/* A command is relayed: count it, and expect its reply. */
void spill_dispatch_expect_relayed(spill_connection_t *connection, int32_t request_id,
                                   bool unanswered);

/* The limit of memory refused a message, and its bytes were dropped: answer it. */
void spill_dispatch_overloaded(spill_connection_t *connection);

/* The server's reply was collected. */
void spill_dispatch_collected(spill_connection_t *connection, spill_buffer_t *message);

/* The worker has ended. */
void spill_dispatch_job_done(spill_connection_t *connection);

#endif
