/*
 * Who a client is: the gateway relays authentication, and reads from it the user's name. It never
 * sees a password: SCRAM does not send one.
 */
#ifndef SPILL_GATEWAY_RELAY_AUTHENTICATION_H
#define SPILL_GATEWAY_RELAY_AUTHENTICATION_H

#include <bson/bson.h>

#define SPILL_USER_BYTES 8

/* What is known of a connection. Zeroed: not authenticated. */
typedef struct spill_authentication {
    uint8_t user[SPILL_USER_BYTES];    /* digest of database and name; zeros: not authenticated */
    uint8_t pending[SPILL_USER_BYTES]; /* the authentication that has begun */
} spill_authentication_t;

/* Does the command authenticate, or end that? */
bool spill_authentication_is(const char *command);

/* Is it `authenticate` with MONGODB-X509, which TLS at the gateway ends? */
bool spill_authentication_is_x509(const bson_t *command);

/*
 * The command begins or continues an authentication in `database`; or it is the document
 * speculativeAuthenticate of a hello, and `database` is its `db`. In a command of its own, drivers
 * send no `db`, and servers ignore it.
 */
void spill_authentication_begin(spill_authentication_t *authentication, const bson_t *command,
                                const char *database);

/* The server's reply to it. True: the user has changed. */
bool spill_authentication_end(spill_authentication_t *authentication, const char *command,
                              const bson_t *reply);

#endif
