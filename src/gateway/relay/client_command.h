/* A command that a client sent: the fields that decide what the gateway does with it. */
#ifndef SPILL_GATEWAY_RELAY_CLIENT_COMMAND_H
#define SPILL_GATEWAY_RELAY_CLIENT_COMMAND_H

#include "gateway/relay/wire.h"

/* Borrows from the message, which must stay in memory. */
typedef struct spill_client_command {
    const spill_wire_message_t *message;
    const char *name;       /* the body's first field: "find" */
    const char *database;   /* "$db" */
    const char *collection; /* the first field's value, if it is a text; else NULL */
    const uint8_t *session; /* the 16 bytes of lsid.id; NULL: none */
    int64_t txn_number;     /* txnNumber; -1: none */
    bool in_transaction;    /* autocommit: false */
    bool starts_transaction;
    bool unanswered;     /* moreToCome: the client reads no reply */
    int64_t max_time_ms; /* maxTimeMS; 0: none */
} spill_client_command_t;

/*
 * Read the fields. SPILL_PARSE: the body is malformed BSON, empty, deeper than
 * SPILL_COMMAND_DEPTH_MAX, or has no "$db". Cost: one pass over
 * the body's bytes.
 */
#define SPILL_COMMAND_DEPTH_MAX 200
spill_code_t spill_client_command_read(const spill_wire_message_t *message,
                                       spill_client_command_t *command, spill_error_t *error);

/* Check that a body is well-formed BSON and not too deep; else SPILL_PARSE. */
spill_code_t spill_client_command_check(const bson_t *body, spill_error_t *error);

#endif
