/* Addresses to listen on, as texts. */
#ifndef SPILL_GATEWAY_RELAY_LISTEN_ADDRESS_H
#define SPILL_GATEWAY_RELAY_LISTEN_ADDRESS_H

#include <spillway/error.h>

#include <stdint.h>
#include <sys/socket.h>

#define SPILL_ADDRESS_TEXT_BYTES 64

/*
 * Read "ADDRESS", "ADDRESS:PORT", "[ADDRESS]:PORT" or "NAME:PORT". SPILL_INVALID: the message says
 * what is expected.
 */
spill_code_t spill_listen_address_read(const char *text, uint16_t default_port,
                                       struct sockaddr_storage *address, spill_error_t *error);

/* Write "127.0.0.1:27018" or "[::1]:27018". */
void spill_listen_address_print(const struct sockaddr_storage *address,
                                char text[SPILL_ADDRESS_TEXT_BYTES]);

#endif
