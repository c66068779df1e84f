/* Turn errors of the driver and of the server into the store's codes. */
#include "store/mongo/mongo.h"
#include "util/error.h"

#include <string.h>

/* The server's codes, as MongoDB numbers them; others of the family use the same numbers. */
enum {
    INTERNAL_ERROR = 1,
    BAD_VALUE = 2,
    SERVER_HOST_UNREACHABLE = 6,
    SERVER_HOST_NOT_FOUND = 7,
    UNKNOWN_ERROR = 8,
    FAILED_TO_PARSE = 9,
    UNAUTHORIZED = 13,
    TYPE_MISMATCH = 14,
    AUTHENTICATION_FAILED = 18,
    PATH_NOT_VIABLE = 28,
    CONFLICTING_UPDATE = 40,
    CURSOR_NOT_FOUND = 43,
    MAX_TIME_EXPIRED = 50,
    DOLLAR_PREFIXED_FIELD = 52,
    WRITE_CONCERN_TIMEOUT = 64,
    SERVER_NETWORK_TIMEOUT = 89,
    SHUTDOWN = 91,
    UNSATISFIABLE_WRITE_CONCERN = 100,
    WRITE_CONFLICT = 112,
    PRIMARY_STEPPED_DOWN = 189,
    EXCEEDED_TIME_LIMIT = 262,
    ATLAS_DENIED = 8000,
    SOCKET = 9001,
    NOT_WRITABLE_PRIMARY = 10107,
    TOO_LARGE = 10334,
    DUPLICATE_KEY = 11000,
    INTERRUPTED_AT_SHUTDOWN = 11600,
    INTERRUPTED = 11601,
    INTERRUPTED_BY_STATE_CHANGE = 11602,
    NOT_PRIMARY_NO_SECONDARY_OK = 13435,
    NOT_PRIMARY_OR_SECONDARY = 13436,
    TOO_LARGE_AFTER_UPDATE = 17419,
    TOO_LARGE_AFTER_UPSERT = 17420
};

typedef enum meaning {
    MEANING_OTHER,
    MEANING_NOT_SENT, /* no server was available */
    MEANING_NOT_DONE, /* the server did not begin */
    MEANING_PERHAPS,  /* it may have been carried out, and may be rolled back */
    MEANING_DENIED,
    MEANING_INVALID,
    MEANING_TOO_LARGE
} meaning_t;

bool spill_mongo_is_duplicate(const bson_error_t *cause)
{
    return cause->domain != MONGOC_ERROR_STREAM && cause->code == DUPLICATE_KEY;
}

/* DocumentDB has another code for an update; the text is the same everywhere. */
static bool is_too_large(const bson_error_t *cause)
{
    return cause->code == TOO_LARGE || cause->code == TOO_LARGE_AFTER_UPDATE ||
           cause->code == TOO_LARGE_AFTER_UPSERT || strstr(cause->message, "larger than MaxDoc");
}

/* FerretDB returns PostgreSQL's text with its own codes. */
static bool is_denied(const bson_error_t *cause)
{
    return strstr(cause->message, "permission denied for ") != NULL;
}

static meaning_t meaning_of_code(uint32_t code)
{
    switch (code) {
    case UNAUTHORIZED:
    case AUTHENTICATION_FAILED:
    case ATLAS_DENIED:
        return MEANING_DENIED;
    case SERVER_HOST_UNREACHABLE:
    case SERVER_HOST_NOT_FOUND:
    case WRITE_CONFLICT:
    case NOT_WRITABLE_PRIMARY:
    case NOT_PRIMARY_NO_SECONDARY_OK:
    case NOT_PRIMARY_OR_SECONDARY:
        return MEANING_NOT_DONE;
    case INTERNAL_ERROR: /* FerretDB, if it loses PostgreSQL during the command */
    case UNKNOWN_ERROR:
    case CURSOR_NOT_FOUND:
    case MAX_TIME_EXPIRED:
    case WRITE_CONCERN_TIMEOUT:
    case SERVER_NETWORK_TIMEOUT:
    case SHUTDOWN:
    case PRIMARY_STEPPED_DOWN:
    case EXCEEDED_TIME_LIMIT:
    case SOCKET:
    case INTERRUPTED_AT_SHUTDOWN:
    case INTERRUPTED:
    case INTERRUPTED_BY_STATE_CHANGE:
        return MEANING_PERHAPS;
    case BAD_VALUE:
    case FAILED_TO_PARSE:
    case TYPE_MISMATCH:
    case PATH_NOT_VIABLE:
    case CONFLICTING_UPDATE:
    case DOLLAR_PREFIXED_FIELD:
    case UNSATISFIABLE_WRITE_CONCERN:
        return MEANING_INVALID;
    default:
        return MEANING_OTHER;
    }
}

static meaning_t meaning_of(const bson_error_t *cause)
{
    if (is_too_large(cause))
        return MEANING_TOO_LARGE;
    if (is_denied(cause))
        return MEANING_DENIED;
    switch (cause->domain) {
    case MONGOC_ERROR_SERVER_SELECTION:
        return MEANING_NOT_SENT;
    case MONGOC_ERROR_STREAM:
    case MONGOC_ERROR_PROTOCOL:
        return MEANING_PERHAPS;
    case MONGOC_ERROR_CLIENT:
        return cause->code == MONGOC_ERROR_CLIENT_AUTHENTICATE ? MEANING_DENIED : MEANING_OTHER;
    case MONGOC_ERROR_SASL:
    case MONGOC_ERROR_SCRAM:
        return MEANING_DENIED;
    case MONGOC_ERROR_WRITE_CONCERN: /* done, but may be rolled back */
        return MEANING_PERHAPS;
    case MONGOC_ERROR_BSON:
        return MEANING_INVALID;
    default:
        return meaning_of_code(cause->code);
    }
}

spill_code_t spill_mongo_fail(const spill_mongo_t *store, const char *collection, bool write,
                              const bson_error_t *cause, const bson_t *reply, spill_error_t *error)
{
    meaning_t meaning = meaning_of(cause);
    /* If the driver tried twice, the error is of the second try; the first may have succeeded. */
    if (meaning == MEANING_NOT_DONE && store->retries)
        meaning = MEANING_PERHAPS;
    if (meaning == MEANING_OTHER && reply && mongoc_error_has_label(reply, "RetryableWriteError"))
        meaning = MEANING_PERHAPS;
    spill_code_t code = SPILL_IO;
    switch (meaning) {
    case MEANING_PERHAPS:
        code = write ? SPILL_UNKNOWN : SPILL_IO;
        break;
    case MEANING_DENIED:
        code = SPILL_DENIED;
        break;
    case MEANING_INVALID:
        code = SPILL_INVALID;
        break;
    case MEANING_TOO_LARGE:
        code = SPILL_TOO_BIG;
        break;
    case MEANING_NOT_SENT:
    case MEANING_NOT_DONE:
    case MEANING_OTHER:
        break;
    }
    spill_fail(error, code, "%s%s%s: %s", store->place, collection ? "." : "",
               collection ? collection : "", cause->message);
    if (error) {
        error->native = (int)cause->code;
        error->retryable = meaning == MEANING_NOT_SENT || meaning == MEANING_NOT_DONE ||
                           meaning == MEANING_PERHAPS;
    }
    return code;
}
