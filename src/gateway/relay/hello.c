/* The gateway's answer to hello. */
#include "gateway/relay/hello.h"

#include "bson/value.h"
#include "util/clock.h"

#include <spillway/version.h>

#include <string.h>

bool spill_hello_is(const char *command)
{
    return strcmp(command, "hello") == 0 || strcmp(command, "isMaster") == 0 ||
           strcmp(command, "ismaster") == 0;
}

bool spill_hello_presents_router(spill_present_t present, spill_upstream_kind_t kind)
{
    return present == SPILL_PRESENT_MONGOS ||
           (present == SPILL_PRESENT_AUTO && kind != SPILL_UPSTREAM_STANDALONE);
}

/* ---- the request ----------------------------------------------------------------------------- */

/* An X.509 authentication, which TLS at the gateway ends. */
static bool is_x509(const bson_iter_t *speculative)
{
    bson_iter_t inner;
    return BSON_ITER_HOLDS_DOCUMENT(speculative) && bson_iter_recurse(speculative, &inner) &&
           bson_iter_find(&inner, "mechanism") && BSON_ITER_HOLDS_UTF8(&inner) &&
           strcmp(bson_iter_utf8(&inner, NULL), "MONGODB-X509") == 0;
}

bool spill_hello_needs_upstream(const bson_t *request)
{
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, request, "saslSupportedMechs"))
        return true;
    return bson_iter_init_find(&iter, request, "speculativeAuthenticate") && !is_x509(&iter);
}

/* Is the field between the client and the gateway? */
static bool is_between(const bson_iter_t *field)
{
    static const char *const between[] = {"compression", "loadBalanced", "topologyVersion",
                                          "maxAwaitTimeMS", NULL};
    const char *key = bson_iter_key(field);
    for (size_t i = 0; between[i]; i++)
        if (strcmp(key, between[i]) == 0)
            return true;
    return strcmp(key, "speculativeAuthenticate") == 0 && is_x509(field);
}

void spill_hello_request(const bson_t *request, const char *database, bson_t *copy)
{
    bson_iter_t iter;
    bson_init(copy);
    if (!bson_iter_init(&iter, request))
        return;
    while (bson_iter_next(&iter))
        if (!is_between(&iter))
            bson_append_iter(copy, NULL, -1, &iter);
    if (database && !bson_has_field(copy, "$db"))
        BSON_APPEND_UTF8(copy, "$db", database);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void copy_field(const bson_t *from, const char *key, bson_t *answer)
{
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, from, key))
        bson_append_iter(answer, NULL, -1, &iter);
}

static void append_wire_version(const bson_t *hello, bson_t *answer)
{
    bson_iter_t iter;
    int64_t most =
        bson_iter_init_find(&iter, hello, "maxWireVersion") ? bson_iter_as_int64(&iter) : 0;
    copy_field(hello, "minWireVersion", answer);
    BSON_APPEND_INT32(
        answer, "maxWireVersion",
        (int32_t)(most < SPILL_HELLO_WIRE_VERSION_MAX ? most : SPILL_HELLO_WIRE_VERSION_MAX));
}

void spill_hello_answer(const spill_target_t *target, const spill_hello_own_t *own,
                        const bson_t *request, const bson_t *relayed, bson_t *answer)
{
    const bson_t *hello = &target->primary.hello;
    bson_iter_t iter;
    if (relayed && !spill_document_is_true(relayed, "ok")) {
        bson_copy_to(relayed, answer);
        return;
    }
    bson_init(answer);
    bool by_hello = bson_iter_init(&iter, request) && bson_iter_next(&iter) &&
                    strcmp(bson_iter_key(&iter), "hello") == 0;
    BSON_APPEND_BOOL(answer, by_hello ? "isWritablePrimary" : "ismaster", true);
    BSON_APPEND_BOOL(answer, "helloOk", true);
    bool router = spill_hello_presents_router(own->present, target->primary.kind);
    if (router)
        BSON_APPEND_UTF8(answer, "msg", "isdbgrid");
    copy_field(hello, "maxBsonObjectSize", answer);
    BSON_APPEND_INT32(answer, "maxMessageSizeBytes", own->message_bytes_max);
    copy_field(hello, "maxWriteBatchSize", answer);
    BSON_APPEND_DATE_TIME(answer, "localTime", spill_clock_now_us(NULL) / 1000);
    copy_field(hello, "logicalSessionTimeoutMinutes", answer);
    BSON_APPEND_INT32(answer, "connectionId", own->connection);
    BSON_APPEND_UTF8(answer, SPILL_UPSTREAM_GATEWAY_FIELD, SPILL_VERSION);
    append_wire_version(hello, answer);
    copy_field(hello, "readOnly", answer);
    /* With a serviceId, drivers number and retry writes. Without, they refuse loadBalanced=true. */
    if (router && spill_document_is_true(request, "loadBalanced"))
        BSON_APPEND_OID(answer, "serviceId", own->process);
    if (relayed) {
        copy_field(relayed, "saslSupportedMechs", answer);
        copy_field(relayed, "speculativeAuthenticate", answer);
    }
    BSON_APPEND_DOUBLE(answer, "ok", 1.0);
}
