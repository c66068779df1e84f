#include "store/server_code.h"

#include <stddef.h>

#define MEANS(meaning) SPILL_SERVER_MEANS_##meaning

/*
 * A router replies with HostUnreachable and HostNotFound when it loses the shard, perhaps after it
 * has sent the command. FerretDB replies with InternalError if it loses PostgreSQL.
 */
static const struct {
    int code;
    const char *name;
    spill_server_meaning_t meaning;
    bool changes_state;
} codes[] = {
    {SPILL_SERVER_INTERNAL_ERROR, "InternalError", MEANS(PERHAPS), false},
    {SPILL_SERVER_BAD_VALUE, "BadValue", MEANS(INVALID), false},
    {SPILL_SERVER_HOST_UNREACHABLE, "HostUnreachable", MEANS(PERHAPS), false},
    {SPILL_SERVER_HOST_NOT_FOUND, "HostNotFound", MEANS(PERHAPS), false},
    {SPILL_SERVER_UNKNOWN_ERROR, "UnknownError", MEANS(PERHAPS), false},
    {SPILL_SERVER_FAILED_TO_PARSE, "FailedToParse", MEANS(INVALID), false},
    {SPILL_SERVER_UNAUTHORIZED, "Unauthorized", MEANS(DENIED), false},
    {SPILL_SERVER_TYPE_MISMATCH, "TypeMismatch", MEANS(INVALID), false},
    {SPILL_SERVER_INVALID_LENGTH, "InvalidLength", MEANS(OTHER), false},
    {SPILL_SERVER_AUTHENTICATION_FAILED, "AuthenticationFailed", MEANS(DENIED), false},
    {SPILL_SERVER_ILLEGAL_OPERATION, "IllegalOperation", MEANS(OTHER), false},
    {SPILL_SERVER_INVALID_BSON, "InvalidBSON", MEANS(OTHER), false},
    {SPILL_SERVER_PATH_NOT_VIABLE, "PathNotViable", MEANS(INVALID), false},
    {SPILL_SERVER_CONFLICTING_UPDATE, "ConflictingUpdateOperators", MEANS(INVALID), false},
    {SPILL_SERVER_CURSOR_NOT_FOUND, "CursorNotFound", MEANS(PERHAPS), false},
    {SPILL_SERVER_TIME_EXPIRED, "MaxTimeMSExpired", MEANS(PERHAPS), false},
    {SPILL_SERVER_DOLLAR_PREFIXED_FIELD, "DollarPrefixedFieldName", MEANS(INVALID), false},
    {SPILL_SERVER_WRITE_CONCERN_TIMEOUT, "WriteConcernTimeout", MEANS(PERHAPS), false},
    {SPILL_SERVER_CANNOT_CREATE_INDEX, "CannotCreateIndex", MEANS(OTHER), false},
    {SPILL_SERVER_NETWORK_TIMEOUT, "NetworkTimeout", MEANS(PERHAPS), false},
    {SPILL_SERVER_SHUTDOWN, "ShutdownInProgress", MEANS(PERHAPS), true},
    {SPILL_SERVER_UNSATISFIABLE_WRITE_CONCERN, "UnsatisfiableWriteConcern", MEANS(INVALID), false},
    {SPILL_SERVER_WRITE_CONFLICT, "WriteConflict", MEANS(NOT_DONE), false},
    {SPILL_SERVER_NOT_SUPPORTED, "CommandNotSupported", MEANS(OTHER), false},
    {SPILL_SERVER_PRIMARY_STEPPED_DOWN, "PrimarySteppedDown", MEANS(PERHAPS), true},
    {SPILL_SERVER_INCOMPLETE_HISTORY, "IncompleteTransactionHistory", MEANS(OTHER), false},
    {SPILL_SERVER_TRANSACTION_TOO_OLD, "TransactionTooOld", MEANS(OTHER), false},
    {SPILL_SERVER_EXCEEDED_TIME_LIMIT, "ExceededTimeLimit", MEANS(PERHAPS), false},
    {SPILL_SERVER_NO_TRANSACTION, "OperationNotSupportedInTransaction", MEANS(OTHER), false},
    {SPILL_SERVER_OVERLOADED, "IngressRequestRateLimitExceeded", MEANS(OTHER), false},
    {SPILL_SERVER_ATLAS_DENIED, "AtlasError", MEANS(DENIED), false},
    {SPILL_SERVER_SOCKET, "SocketException", MEANS(PERHAPS), false},
    {SPILL_SERVER_NOT_PRIMARY, "NotWritablePrimary", MEANS(NOT_DONE), true},
    {SPILL_SERVER_DOCUMENT_TOO_LARGE, "BSONObjectTooLarge", MEANS(TOO_LARGE), false},
    {SPILL_SERVER_DUPLICATE_KEY, "DuplicateKey", MEANS(OTHER), false},
    {SPILL_SERVER_INTERRUPTED_AT_SHUTDOWN, "InterruptedAtShutdown", MEANS(PERHAPS), true},
    {SPILL_SERVER_INTERRUPTED, "Interrupted", MEANS(PERHAPS), false},
    {SPILL_SERVER_INTERRUPTED_BY_STATE_CHANGE, "InterruptedDueToReplStateChange", MEANS(PERHAPS),
     true},
    {SPILL_SERVER_NOT_PRIMARY_NO_SECONDARY_OK, "NotPrimaryNoSecondaryOk", MEANS(NOT_DONE), true},
    {SPILL_SERVER_NOT_PRIMARY_OR_SECONDARY, "NotPrimaryOrSecondary", MEANS(NOT_DONE), true},
    {SPILL_SERVER_TOO_LARGE_AFTER_UPDATE, "Location17419", MEANS(TOO_LARGE), false},
    {SPILL_SERVER_TOO_LARGE_AFTER_UPSERT, "Location17420", MEANS(TOO_LARGE), false},
    {SPILL_SERVER_UNKNOWN_FIELD, "Location40415", MEANS(OTHER), false},
};
enum { CODES = sizeof codes / sizeof *codes };

/* CODES: the table has not the code. */
static size_t place_of(int code)
{
    size_t at = 0;
    while (at < CODES && codes[at].code != code)
        at++;
    return at;
}

spill_server_meaning_t spill_server_meaning_of(int code)
{
    size_t at = place_of(code);
    return at < CODES ? codes[at].meaning : SPILL_SERVER_MEANS_OTHER;
}

const char *spill_server_name_of(int code)
{
    size_t at = place_of(code);
    return at < CODES ? codes[at].name : "UnknownError";
}

bool spill_server_changes_state(int code)
{
    size_t at = place_of(code);
    return at < CODES && codes[at].changes_state;
}

bool spill_server_may_have_changed(int code)
{
    return spill_server_meaning_of(code) == SPILL_SERVER_MEANS_PERHAPS;
}
