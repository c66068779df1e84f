/* Replies that the gateway makes by itself. */
#ifndef SPILL_GATEWAY_RELAY_OWN_REPLY_H
#define SPILL_GATEWAY_RELAY_OWN_REPLY_H

#include <bson/bson.h>

/* Codes of the server's table of errors (mongodb/mongo, src/mongo/base/error_codes.yml). */
typedef enum spill_own_code {
    SPILL_OWN_ILLEGAL_OPERATION = 20,
    SPILL_OWN_AUTHENTICATION_FAILED = 18,
    SPILL_OWN_UNKNOWN_OUTCOME = 91,
    SPILL_OWN_TRANSACTION_TOO_OLD = 225,
    SPILL_OWN_UNSUPPORTED_QUERY = 352,
    SPILL_OWN_OVERLOADED = 462
} spill_own_code_t;

/*
 * Make {ok: 0, code, codeName, errmsg}. The overload error has the labels that ask drivers to wait
 * and to try again. The caller destroys `reply`.
 */
void spill_own_error(spill_own_code_t code, const char *message, bson_t *reply);

#endif
