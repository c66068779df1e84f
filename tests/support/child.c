#include "support/child.h"

#include <unistd.h>

#ifdef SPILLWAY_COVERAGE
void __gcov_dump(void);
#endif

void child_end(int status)
{
#ifdef SPILLWAY_COVERAGE
    __gcov_dump();
#endif
    _exit(status);
}
