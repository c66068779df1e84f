/*
 * The error codes of MongoDB-compatible servers: what each says of the command that failed. The
 * only table of them; the store and the gateway read it.
 */
#ifndef SPILL_STORE_SERVER_CODE_H
#define SPILL_STORE_SERVER_CODE_H

#include <stdbool.h>

/* As MongoDB numbers them; others of the family use the same numbers. */
typedef enum spill_server_code {
    SPILL_SERVER_INTERNAL_ERROR = 1,
    SPILL_SERVER_BAD_VALUE = 2,
    SPILL_SERVER_HOST_UNREACHABLE = 6,
    SPILL_SERVER_HOST_NOT_FOUND = 7,
    SPILL_SERVER_UNKNOWN_ERROR = 8,
    SPILL_SERVER_FAILED_TO_PARSE = 9,
    SPILL_SERVER_UNAUTHORIZED = 13,
    SPILL_SERVER_TYPE_MISMATCH = 14,
    SPILL_SERVER_INVALID_LENGTH = 16,
    SPILL_SERVER_AUTHENTICATION_FAILED = 18,
    SPILL_SERVER_ILLEGAL_OPERATION = 20,
    SPILL_SERVER_INVALID_BSON = 22,
    SPILL_SERVER_PATH_NOT_VIABLE = 28,
    SPILL_SERVER_CONFLICTING_UPDATE = 40,
    SPILL_SERVER_CURSOR_NOT_FOUND = 43,
    SPILL_SERVER_TIME_EXPIRED = 50,
    SPILL_SERVER_DOLLAR_PREFIXED_FIELD = 52,
    SPILL_SERVER_WRITE_CONCERN_TIMEOUT = 64,
    SPILL_SERVER_CANNOT_CREATE_INDEX = 67,
    SPILL_SERVER_NETWORK_TIMEOUT = 89,
    SPILL_SERVER_SHUTDOWN = 91,
    SPILL_SERVER_UNSATISFIABLE_WRITE_CONCERN = 100,
    SPILL_SERVER_WRITE_CONFLICT = 112,
    SPILL_SERVER_NOT_SUPPORTED = 115,
    SPILL_SERVER_PRIMARY_STEPPED_DOWN = 189,
    SPILL_SERVER_INCOMPLETE_HISTORY = 217,
    SPILL_SERVER_TRANSACTION_TOO_OLD = 225,
    SPILL_SERVER_EXCEEDED_TIME_LIMIT = 262,
    SPILL_SERVER_NO_TRANSACTION = 263,
    SPILL_SERVER_OVERLOADED = 462,
    SPILL_SERVER_ATLAS_DENIED = 8000,
    SPILL_SERVER_SOCKET = 9001,
    SPILL_SERVER_NOT_PRIMARY = 10107,
    SPILL_SERVER_DOCUMENT_TOO_LARGE = 10334,
    SPILL_SERVER_DUPLICATE_KEY = 11000,
    SPILL_SERVER_INTERRUPTED_AT_SHUTDOWN = 11600,
    SPILL_SERVER_INTERRUPTED = 11601,
    SPILL_SERVER_INTERRUPTED_BY_STATE_CHANGE = 11602,
    SPILL_SERVER_NOT_PRIMARY_NO_SECONDARY_OK = 13435,
    SPILL_SERVER_NOT_PRIMARY_OR_SECONDARY = 13436,
    SPILL_SERVER_TOO_LARGE_AFTER_UPDATE = 17419,
    SPILL_SERVER_TOO_LARGE_AFTER_UPSERT = 17420,
    SPILL_SERVER_UNKNOWN_FIELD = 40415
} spill_server_code_t;

typedef enum spill_server_meaning {
    SPILL_SERVER_MEANS_OTHER,    /* also a code that the table has not */
    SPILL_SERVER_MEANS_NOT_DONE, /* the server did not begin */
    SPILL_SERVER_MEANS_PERHAPS,  /* it may have been carried out, and may be rolled back */
    SPILL_SERVER_MEANS_DENIED,
    SPILL_SERVER_MEANS_INVALID,
    SPILL_SERVER_MEANS_TOO_LARGE
} spill_server_meaning_t;

spill_server_meaning_t spill_server_meaning_of(int code);

/* As in codeName; "UnknownError" if the table has not the code. */
const char *spill_server_name_of(int code);

/* Does the code say that the server is no primary, or ends? Drivers then repeat the command. */
bool spill_server_changes_state(int code);

/* May a server have made a command to which it replies with this code? */
bool spill_server_may_have_changed(int code);

#endif
