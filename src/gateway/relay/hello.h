/*
 * hello, by which drivers learn what a server is: the gateway answers it from the server's own
 * hello, so that drivers stay with the gateway. Also its older names, isMaster and ismaster.
 */
#ifndef SPILL_GATEWAY_RELAY_HELLO_H
#define SPILL_GATEWAY_RELAY_HELLO_H

#include "gateway/relay/target.h"

/* What hello says that the gateway is. */
typedef enum spill_present {
    SPILL_PRESENT_AUTO, /* a router if the server is a replica set or a router */
    SPILL_PRESENT_MONGOS,
    SPILL_PRESENT_STANDALONE
} spill_present_t;

/* The newest wire version that the tests of the gateway cover: 8.0. */
#define SPILL_HELLO_WIRE_VERSION_MAX 25

typedef struct spill_hello_own {
    spill_present_t present;
    int32_t message_bytes_max;
    int32_t connection;        /* connectionId */
    const bson_oid_t *process; /* serviceId: a router says it to loadBalanced=true */
} spill_hello_own_t;

bool spill_hello_is(const char *command);

/* Is the gateway a router for its clients? Then drivers number their writes and retry them. */
bool spill_hello_presents_router(spill_present_t present, spill_upstream_kind_t kind);

/*
 * Does the server have to answer, because the hello begins an authentication or asks for a user's
 * mechanisms?
 */
bool spill_hello_needs_upstream(const bson_t *request);

/*
 * Make what is sent to the server: the request without the fields that are between the client and
 * the gateway. `database`: of an OP_QUERY, which has no $db; else NULL. The caller destroys `copy`.
 */
void spill_hello_request(const bson_t *request, const char *database, bson_t *copy);

/*
 * Make the answer. `relayed` (may be NULL) is the server's answer to spill_hello_request; the parts
 * about authentication come from it. If it is an error, the answer is a copy. The caller destroys
 * `answer`.
 */
void spill_hello_answer(const spill_target_t *target, const spill_hello_own_t *own,
                        const bson_t *request, const bson_t *relayed, bson_t *answer);

#endif
