/* A client of the gateway's translation, without the relay: commands on a socket to the server. */
#ifndef SPILL_TESTS_GATEWAY_CLIENT_H
#define SPILL_TESTS_GATEWAY_CLIENT_H

#include "gateway/translate/translate.h"

#include <spillway/definition.h>

typedef struct gateway_client gateway_client_t;
struct gateway_client {
    spill_client_connection_t connection; /* first: the translation gets its address */
    spill_served_t *served;
    char *database;
    int socket;
    int32_t request_id;
    int64_t calls;      /* commands sent to the server */
    int64_t reserved;   /* bytes */
    int64_t txn_number; /* -1: commands have none */
    bool relayed;       /* the last command was passed on unchanged */
    /* Called before each command is sent to the server; or NULL. False: the connection breaks. */
    bool (*before_call)(gateway_client_t *client, const bson_t *body);
    void *context; /* of it */
    /*
     * The gateway is killed at its next call with this number, from 1 on (0: never): before the
     * call or, with `loses_reply`, before it reads the reply. All later calls fail too.
     */
    int64_t dies_at;
    bool loses_reply;
    bool omits_collation; /* the server may have none: commands are sent without their collation */
    bool broken;          /* the translation asked to close the connection; there is no reply */
};

/* A URI without a password. The definitions of its database are read. */
gateway_client_t *gateway_client_new(const char *uri);
void gateway_client_free(gateway_client_t *client);

/* The definition of preset `gateway` for collection "c" and field "f": threshold 3, pages of 2. */
spill_definition_t gateway_small_definition(void);

/* A new database with a definition, and a client of it. */
typedef struct gateway_fixture {
    char *uri;
    gateway_client_t *client;
} gateway_fixture_t;

void gateway_define(const char *uri, const spill_definition_t *definition);
gateway_fixture_t *gateway_fixture_new(const spill_definition_t *definition);
void gateway_fixture_free(gateway_fixture_t *fixture);

/* With gateway_small_definition, as a cmocka fixture. */
int gateway_setup(void **state);
int gateway_teardown(void **state);

/* Another gateway continues: the first one makes the spills that its appends have left. */
void gateway_settle(gateway_fixture_t *fixture);

/* Run a command and compare one field of the reply. */
void gateway_try(gateway_fixture_t *fixture, const char *command, const char *path,
                 const char *json);
void gateway_try_direct(gateway_fixture_t *fixture, const char *command, const char *path,
                        const char *json);

/* Push the numbers from `from` to `to` - 1 to the owner, one by one; the owner is upserted. */
void gateway_push(gateway_fixture_t *fixture, int owner, int from, int to);

/* Carry out a command as the gateway does, or directly. $db is added. Destroy the reply. */
bson_t *gateway_run(gateway_client_t *client, const bson_t *command);
bson_t *gateway_run_json(gateway_client_t *client, const char *json);
bson_t *gateway_direct(gateway_client_t *client, const bson_t *command);
bson_t *gateway_direct_json(gateway_client_t *client, const char *json);

/* Is the field at the path equal to the JSON value (as canonical or relaxed text)? Else fail. */
void gateway_expect(const bson_t *reply, const char *path, const char *json);

#endif
