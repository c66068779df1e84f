#include "util/argument.h"

#include <string.h>

spill_code_t spill_check_pointers(const void *const *pointers, size_t count, const char *function,
                                  const char *names, spill_error_t *error)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(names, ", ");
        if (pointers[i] == NULL)
            return spill_fail(error, SPILL_INVALID, "%s: the argument '%.*s' is NULL", function,
                              (int)length, names);
        names += length;
        names += strspn(names, ", ");
    }
    return SPILL_OK;
}
