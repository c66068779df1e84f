#include "support/effort.h"

#include <stdbool.h>
#include <stdlib.h>

int64_t effort(int64_t all, int64_t usual, int64_t sanitized)
{
    bool is_long = getenv("SPILLWAY_LONG") != NULL;
#if defined(SPILLWAY_ASAN) || defined(SPILLWAY_TSAN)
    (void)all;
    return is_long ? usual : sanitized;
#else
    (void)sanitized;
    return is_long ? all : usual;
#endif
}
