/* The client's bytes as messages. Long messages are passed on in pieces, or collected, or dropped.
 */
#ifndef SPILL_GATEWAY_RELAY_INBOUND_H
#define SPILL_GATEWAY_RELAY_INBOUND_H

#include "gateway/relay/connection.h"

/* Bytes have arrived. */
void spill_inbound_received(spill_connection_t *connection, const uint8_t *bytes, size_t size);

/* Something that messages waited for has ended: continue. */
void spill_inbound_continue(spill_connection_t *connection);

/*
 * The client has ended in an orderly way. Close its connection when the server got what the client
 * sent, and the translated command without a reply is carried out that is in progress. Messages
 * that wait for that are handled first. The owner bounds the time.
 */
void spill_inbound_end(spill_connection_t *connection);

#endif
