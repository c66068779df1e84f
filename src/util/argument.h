/*
 * Checks of the arguments of public functions. Internal functions assert instead, or rely on the
 * public function that called them.
 *
 *     SPILL_CHECK_POINTERS(error, array, owner);
 *
 * returns SPILL_INVALID from the function it stands in if one of the pointers is NULL. The message
 * names the function and the argument.
 */
#ifndef SPILL_UTIL_ARGUMENT_H
#define SPILL_UTIL_ARGUMENT_H

#include "util/error.h"

#include <stdbool.h>
#include <stddef.h>

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
