/*
 * Errors. A function that can fail returns a spill_code_t: SPILL_OK (0) on success. After a failure
 * it fills the caller's spill_error_t, which may be NULL. Nothing keeps a "last error".
 */
#ifndef SPILLWAY_ERROR_H
#define SPILLWAY_ERROR_H

#include <spillway/export.h>

#include <stdbool.h>

SPILL_BEGIN_DECLS

/* X(name, text): every code, once. docs/reference/errors.md says for each what a caller can do. */
#define SPILL_CODES(X)                                                                             \
    X(OK, "success")                                                                               \
    X(NOT_FOUND, "not found")                                                                      \
    X(INVALID, "invalid argument")                                                                 \
    X(PARSE, "malformed input")                                                                    \
    X(TOO_BIG, "too big")                                                                          \
    X(CONFLICT, "conflict")                                                                        \
    X(REFUSED, "refused")                                                                          \
    X(UNKNOWN, "outcome unknown")                                                                  \
    X(CORRUPT, "corrupt")                                                                          \
    X(BUSY, "held by another process")                                                             \
    X(READ_ONLY, "opened read-only")                                                               \
    X(DENIED, "permission denied")                                                                 \
    X(NO_SPACE, "no space left")                                                                   \
    X(IO, "input/output error")                                                                    \
    X(FORMAT, "format version not supported")                                                      \
    X(CANCELLED, "cancelled")                                                                      \
    X(NO_MEMORY, "out of memory")

typedef enum spill_code {
#define SPILL_CODE_ENUM(name, text) SPILL_##name,
    SPILL_CODES(SPILL_CODE_ENUM)
#undef SPILL_CODE_ENUM
} spill_code_t;

#define SPILL_ERROR_MESSAGE_SIZE 512

/*
 * Why a call on an array was refused, for callers that handle some refusals themselves. The code
 * says what kind of error it is; several reasons may have one code.
 */
typedef enum spill_reason {
    SPILL_REASON_NONE, /* the code says all */
    /* SPILL_REFUSED: a program without Spillway wrote the array (see spill_array_adopt). */
    SPILL_REASON_UNMANAGED,
    SPILL_REASON_NO_MATCH, /* SPILL_NOT_FOUND: the head does not match options->match */
    /* SPILL_CONFLICT: the session has made a statement of a later transaction (spill_session_op).
     */
    SPILL_REASON_TOO_OLD,
    /* SPILL_CONFLICT, retryable: too many sessions have written to the owner lately. */
    SPILL_REASON_SESSIONS
} spill_reason_t;

/*
 * A failure. The caller owns it; it needs no initialization and no release.
 *
 *   message    a whole sentence for a person; it names the place (owner, page, file, line)
 *   native     the errno of a system call, or the server's code; else 0. The engine of an embedded
 *              store has texts instead of codes; they are in the message.
 *   retryable  the same call may succeed later: another process has the store (SPILL_BUSY), all
 *              tries met other writers (SPILL_CONFLICT), or a server did not answer. After
 *              SPILL_UNKNOWN, repeat an append only with an operation id.
 *   reason     see spill_reason_t
 */
typedef struct spill_error {
    spill_code_t code;
    int native;
    bool retryable;
    spill_reason_t reason;
    char message[SPILL_ERROR_MESSAGE_SIZE];
} spill_error_t;

/* The code's name ("NOT_FOUND") and its short text ("not found"). Static strings, never NULL. */
SPILL_API const char *spill_code_name(spill_code_t code);
SPILL_API const char *spill_code_text(spill_code_t code);

SPILL_END_DECLS

#endif
