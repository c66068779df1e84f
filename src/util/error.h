/* Filling the caller's error object. */
#ifndef SPILL_UTIL_ERROR_H
#define SPILL_UTIL_ERROR_H

#include <spillway/error.h>

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
