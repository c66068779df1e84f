/*
 * The idiom for errors and cleanup. A function that can fail returns a code and fills the caller's
 * error object:
 *
 *     SPILL_SCOPED(spill_response_release) spill_response_t response = SPILL_RESPONSE_INIT;
 *     SPILL_TRY(spill_owner_read_state(&own, SPILL_HEAD, &response, error));
 *     if (!response.state.present)
 *         return spill_fail(error, SPILL_NOT_FOUND, "...");
 */
#ifndef SPILL_UTIL_ERROR_H
#define SPILL_UTIL_ERROR_H

#include <spillway/error.h>

/* Return the code of `call` to the caller, unless it is SPILL_OK. */
#define SPILL_TRY(call)                                                                            \
    do {                                                                                           \
        spill_code_t spill_try_code = (call);                                                      \
        if (spill_try_code != SPILL_OK)                                                            \
            return spill_try_code;                                                                 \
    } while (0)

/*
 * Call release(&variable) when the variable that follows goes out of scope, also after a return.
 * Several are released in the reverse order of their declarations. Initialize the variable where it
 * is declared: `release` must accept its first value.
 */
#define SPILL_SCOPED(release) __attribute__((cleanup(release)))

/* Fill *error (may be NULL) with a formatted message and return the code. */
spill_code_t spill_fail(spill_error_t *error, spill_code_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, and mark the error as retryable: the same call may succeed later. */
spill_code_t spill_fail_retryable(spill_error_t *error, spill_code_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed system call: maps errno_value to a code and appends its text. */
spill_code_t spill_fail_errno(spill_error_t *error, int errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "prefix: " before the message that *error (may be NULL) holds, and set and return `code`. */
spill_code_t spill_fail_prefix(spill_error_t *error, spill_code_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
