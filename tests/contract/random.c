#include "suite.h"
void add_random_tests(suite_t *suite)
{
    (void)suite;
}
