/*
 * TLS as a filter of bytes, by OpenSSL with BIOs in memory: what a socket received goes in, what it
 * must send comes out. Nothing here knows sockets.
 *
 * Threads: a context serves all threads; a session is used by one thread at a time.
 */
#ifndef SPILL_GATEWAY_RELAY_TLS_H
#define SPILL_GATEWAY_RELAY_TLS_H

#include "store/upstream.h"

#include <stddef.h>
#include <stdint.h>

typedef struct spill_tls_context spill_tls_context_t;
typedef struct spill_tls_session spill_tls_session_t;

/* What is asked of a client: no certificate; one that is checked if it comes; a valid one. */
typedef enum spill_tls_client {
    SPILL_TLS_CLIENT_NONE,
    SPILL_TLS_CLIENT_ASK,
    SPILL_TLS_CLIENT_REQUIRE
} spill_tls_client_t;

/*
 * The gateway's side towards clients. Files are in PEM; `key` NULL: the certificate's file has it.
 * `authority` (NULL: the system's) signs clients' certificates. SPILL_INVALID names the file. Free
 * it in every case.
 */
spill_code_t spill_tls_serve(const char *certificate, const char *key, const char *authority,
                             spill_tls_client_t client, spill_tls_context_t **context,
                             spill_error_t *error);

/* The gateway's side towards the server. Errors as above. */
spill_code_t spill_tls_connect(const spill_upstream_tls_t *options, spill_tls_context_t **context,
                               spill_error_t *error);

/* Sessions keep what they need of it. NULL is allowed. */
void spill_tls_context_free(spill_tls_context_t *context);

/* `host`: the name that the server's certificate must have; NULL on the server's side. NULL: no
 * memory. */
spill_tls_session_t *spill_tls_session_new(const spill_tls_context_t *context, const char *host);
void spill_tls_session_free(spill_tls_session_t *session); /* NULL is allowed */

typedef enum spill_tls_state {
    SPILL_TLS_WAITS,
    SPILL_TLS_OPEN,
    SPILL_TLS_FAILED
} spill_tls_state_t;

/* Bytes from the socket. */
void spill_tls_receive(spill_tls_session_t *session, const uint8_t *bytes, size_t size);

/* Continue the handshake. FAILED: `why` has the cause. */
spill_tls_state_t spill_tls_handshake(spill_tls_session_t *session, char *why, size_t why_bytes);

/* Read decrypted bytes. 0: none are left; -1: the peer ended the session, or it failed. */
int spill_tls_read(spill_tls_session_t *session, uint8_t *bytes, size_t size);

/* Did the peer report that the session ends? */
bool spill_tls_ended(const spill_tls_session_t *session);

/* Encrypt bytes of an open session. */
bool spill_tls_write(spill_tls_session_t *session, const uint8_t *bytes, size_t size);

/* Report to the peer that the session ends. */
void spill_tls_end(spill_tls_session_t *session);

/* The bytes for the socket. They are valid, and stay, until spill_tls_taken. */
const uint8_t *spill_tls_output(spill_tls_session_t *session, size_t *size);
void spill_tls_taken(spill_tls_session_t *session);

#endif
