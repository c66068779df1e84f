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

#include <bson/bson.h>

#include <stdbool.h>
#include <stddef.h>

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

/* Releases for SPILL_SCOPED: of a text of libbson's allocator, and of a document. NULL is allowed.
 */
void spill_free_text(char **text);
void spill_free_document(bson_t **document);

/* Fill *error (may be NULL) with a formatted message and return the code. */
spill_code_t spill_fail(spill_error_t *error, spill_code_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, and mark the error as retryable: the same call may succeed later. */
spill_code_t spill_fail_retryable(spill_error_t *error, spill_code_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Set the reason of the error that was just filled, and return `code`. */
spill_code_t spill_fail_because(spill_error_t *error, spill_code_t code, spill_reason_t reason);

/* Like spill_fail, for a failed system call: maps errno_value to a code and appends its text. */
spill_code_t spill_fail_errno(spill_error_t *error, int errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "prefix: " before the message that *error (may be NULL) holds, and set and return `code`. */
spill_code_t spill_fail_prefix(spill_error_t *error, spill_code_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- arguments of public functions ----------------------------------------------------------- */

/*
 * Checks of the arguments of public functions. Internal functions assert instead, or rely on the
 * public function that called them.
 *
 *     SPILL_CHECK_POINTERS(error, array, owner);
 *
 * returns SPILL_INVALID from the function it stands in if one of the pointers is NULL. The message
 * names the function and the argument.
 */

/*
 * Is one of the pointers NULL? spill_check_pointers answers that. Clang's analyzer does not follow
 * the pointers into that function, so it gets a comparison of each of up to 8 pointers. It then
 * knows that the code below the check has no NULL pointer.
 */
#ifdef __clang_analyzer__
#define SPILL_IS_NULL(index, count)                                                                \
    ((index) < (count) && pointers_[(index) < (count) ? (index) : 0] == NULL)
#define SPILL_MAY_BE_NULL(count)                                                                   \
    (SPILL_IS_NULL(0, count) || SPILL_IS_NULL(1, count) || SPILL_IS_NULL(2, count) ||              \
     SPILL_IS_NULL(3, count) || SPILL_IS_NULL(4, count) || SPILL_IS_NULL(5, count) ||              \
     SPILL_IS_NULL(6, count) || SPILL_IS_NULL(7, count))
#define SPILL_CHECK_FAILED(checked) true
#else
#define SPILL_MAY_BE_NULL(count) true
#define SPILL_CHECK_FAILED(checked) ((checked) != SPILL_OK)
#endif

/* Up to 8 object pointers. */
#define SPILL_CHECK_POINTERS(error, ...)                                                           \
    do {                                                                                           \
        const void *const pointers_[] = {__VA_ARGS__};                                             \
        if (SPILL_MAY_BE_NULL(sizeof pointers_ / sizeof pointers_[0])) {                           \
            spill_code_t checked_ = spill_check_pointers(                                          \
                pointers_, sizeof pointers_ / sizeof pointers_[0], __func__, #__VA_ARGS__, error); \
            if (SPILL_CHECK_FAILED(checked_))                                                      \
                return checked_;                                                                   \
        }                                                                                          \
    } while (0)

/* Check a condition on an argument, for example its range. `text` is a sentence. */
#define SPILL_CHECK_ARGUMENT(error, condition, text)                                               \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return spill_fail(error, SPILL_INVALID, "%s: %s", __func__, text);                     \
    } while (0)

/* `names` lists the pointers as the source has them: "array, owner". */
spill_code_t spill_check_pointers(const void *const *pointers, size_t count, const char *function,
                                  const char *names, spill_error_t *error);

#endif
