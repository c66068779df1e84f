/**
 * \file
 * Codes, and the error object that a caller passes.
 */
#ifndef SPILLWAY_ERROR_H
#define SPILLWAY_ERROR_H

#include <spillway/export.h>

#include <stdbool.h>
#include <stdint.h>

/**
 * \defgroup spillway_error Errors
 * What a call returns, and what it says about a failure.
 *
 * A function that can fail returns a #spill_code_t: #SPILL_OK (0) on success. After a failure it
 * fills the caller's #spill_error_t, which may be NULL. Nothing keeps a "last error".
 *
 *     spill_error_t error;
 *     spill_count_t count;
 *     if (spill_array_count(array, &owner, &count, &error) != SPILL_OK)
 *         fprintf(stderr, "%s: %s\n", spill_code_name(error.code), error.message);
 *
 * After any code but #SPILL_UNKNOWN, nothing of the call was written, with these exceptions: a
 * batch that is split (spill_append_result_t::count has the number of appended elements), and
 * functions whose descriptions say that they make several changes.
 * \{
 */

SPILL_BEGIN_DECLS

/** X(name, text): every code, once. docs/reference/errors.md says for each what a caller can do. */
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
    X(NO_MEMORY, "out of memory")                                                                  \
    X(TIMED_OUT, "deadline passed")

/** The result of a call. Later releases may add codes at the end. */
typedef enum spill_code {
/** Declares one code; undefined below. */
#define SPILL_CODE_ENUM(name, text) SPILL_##name,
    SPILL_CODES(SPILL_CODE_ENUM)
#undef SPILL_CODE_ENUM
} spill_code_t;

/**
 * \var spill_code::SPILL_OK
 * Success.
 * \var spill_code::SPILL_NOT_FOUND
 * The owner, element, definition, preset or store does not exist.
 * \var spill_code::SPILL_INVALID
 * An argument makes no sense: a NULL pointer, a malformed element, a number out of range.
 * \var spill_code::SPILL_PARSE
 * Input text does not have the expected format.
 * \var spill_code::SPILL_TOO_BIG
 * It fits no document, or not beside the existing content.
 * \var spill_code::SPILL_CONFLICT
 * The operation id was used for something else, or every race was lost for a long time.
 * \var spill_code::SPILL_REFUSED
 * It would contradict what is stored.
 * \var spill_code::SPILL_UNKNOWN
 * The change may have been made, or not. Repeat an append with its operation id; else read first.
 * \var spill_code::SPILL_CORRUPT
 * Stored bytes are damaged; the message names the file or the document.
 * \var spill_code::SPILL_BUSY
 * Another process has the store open for writing.
 * \var spill_code::SPILL_READ_ONLY
 * A write to a store that was opened read-only.
 * \var spill_code::SPILL_DENIED
 * The operating system or the server does not permit it.
 * \var spill_code::SPILL_NO_SPACE
 * The disk is full, or a file would exceed a limit.
 * \var spill_code::SPILL_IO
 * Another failure of the system, the engine or the network.
 * \var spill_code::SPILL_FORMAT
 * A newer Spillway made the store.
 * \var spill_code::SPILL_CANCELLED
 * A callback asked to stop.
 * \var spill_code::SPILL_NO_MEMORY
 * The embedded engine got no memory, or a thread could not be started.
 * \var spill_code::SPILL_TIMED_OUT
 * The deadline has passed, and nothing was changed (deadline.h).
 */

/** Most bytes of an error's message, with its NUL. */
#define SPILL_ERROR_MESSAGE_SIZE 512

/**
 * Why a call on an array was refused, for callers that handle some refusals themselves. The code
 * says what kind of error it is; several reasons may have one code.
 */
typedef enum spill_reason {
    SPILL_REASON_NONE,       /**< the code says all */
    SPILL_REASON_UNMANAGED,  /**< SPILL_REFUSED: a program without Spillway wrote the array
                              *   (spill_array_adopt()) */
    SPILL_REASON_NO_MATCH,   /**< SPILL_NOT_FOUND: the head does not match options->match */
    SPILL_REASON_TOO_OLD,    /**< SPILL_CONFLICT: the session has made a statement of a later
                              *   transaction (#spill_session_op_t) */
    SPILL_REASON_SESSIONS,   /**< SPILL_CONFLICT: too many sessions have written to the owner lately
                              *   (retryable); or the command leaves too many gaps between its
                              *   numbers (not retryable) */
    SPILL_REASON_NOT_ADOPTED /**< SPILL_REFUSED: the definition is being undone, or is deleted or
                              *   replaced, so spill_array_adopt() adopts none of its arrays */
} spill_reason_t;

/** A failure. The caller owns it; it needs no initialization and no release. */
typedef struct spill_error {
    spill_code_t code; /**< what the call returned */
    int native;     /**< the errno of a system call, or the server's code; else 0. The engine of an
                     *   embedded store has texts instead of codes; they are in the message */
    bool retryable; /**< the same call may succeed later: another process has the store
                     *   (SPILL_BUSY), all tries met other writers (SPILL_CONFLICT), a server did
                     *   not answer, or a deadline has passed. After SPILL_UNKNOWN, repeat an
                     *   append only with an operation id */
    spill_reason_t reason; /**< for callers that handle some refusals themselves */
    /** A whole sentence for a person; it names the owner, page, file or line. */
    char message[SPILL_ERROR_MESSAGE_SIZE];
    int64_t reserved[4]; /**< 0: for fields of later versions */
} spill_error_t;

/**
 * Return the name of a code: "NOT_FOUND" for SPILL_NOT_FOUND.
 *
 * \param code  any value
 * \return a static text, never NULL; "UNDEFINED" for a value that is no code
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API const char *spill_code_name(spill_code_t code);

/**
 * Return the short text of a code: "not found" for SPILL_NOT_FOUND.
 *
 * \param code  any value
 * \return a static text, never NULL; "no such code" for a value that is no code
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API const char *spill_code_text(spill_code_t code);

SPILL_END_DECLS

/** \} */

#endif
