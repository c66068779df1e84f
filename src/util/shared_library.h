/* A shared library that is loaded only when it is needed, because loading it takes long. */
#ifndef SPILL_UTIL_SHARED_LIBRARY_H
#define SPILL_UTIL_SHARED_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A function of the library, and where the caller's table has the pointer to it. */
typedef struct spill_library_function {
    const char *name;
    size_t offset;
} spill_library_function_t;

/*
 * Load the library (dlopen) and fill the caller's table with its functions. It stays loaded. False:
 * `failure`, of `failure_size` bytes, says why. One thread at a time.
 */
bool spill_library_load(const char *library, const spill_library_function_t *functions,
                        size_t count, void *table, char *failure, size_t failure_size);

/* Has this process loaded the library already? Any thread. */
bool spill_library_is_loaded(const char *library);

#endif
