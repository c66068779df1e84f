/* Errors in the form of the server's. */
#include "gateway/relay/own_reply.h"

static const char *name_of(spill_own_code_t code)
{
    switch (code) {
    case SPILL_OWN_ILLEGAL_OPERATION:
        return "IllegalOperation";
    case SPILL_OWN_AUTHENTICATION_FAILED:
        return "AuthenticationFailed";
    case SPILL_OWN_UNKNOWN_OUTCOME:
        return "ShutdownInProgress";
    case SPILL_OWN_TRANSACTION_TOO_OLD:
        return "TransactionTooOld";
    case SPILL_OWN_UNSUPPORTED_QUERY:
        return "UnsupportedOpQueryCommand";
    case SPILL_OWN_OVERLOADED:
        return "IngressRequestRateLimitExceeded";
    }
    return "UnknownError";
}

void spill_own_error(spill_own_code_t code, const char *message, bson_t *reply)
{
    bson_init(reply);
    BSON_APPEND_DOUBLE(reply, "ok", 0.0);
    BSON_APPEND_UTF8(reply, "errmsg", message);
    BSON_APPEND_INT32(reply, "code", (int32_t)code);
    BSON_APPEND_UTF8(reply, "codeName", name_of(code));
    if (code != SPILL_OWN_OVERLOADED)
        return;
    bson_t labels;
    BSON_APPEND_ARRAY_BEGIN(reply, "errorLabels", &labels);
    BSON_APPEND_UTF8(&labels, "0", "SystemOverloadedError");
    BSON_APPEND_UTF8(&labels, "1", "RetryableError");
    bson_append_array_end(reply, &labels);
}
