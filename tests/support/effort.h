/* How often a test repeats what it does. */
#ifndef TESTS_SUPPORT_EFFORT_H
#define TESTS_SUPPORT_EFFORT_H

#include <stdint.h>

/*
 * Return `usual`, or `sanitized` in a build with a sanitizer, which is slower. SPILLWAY_LONG asks
 * for more: `all`, and with a sanitizer `usual`.
 */
int64_t effort(int64_t all, int64_t usual, int64_t sanitized);

#endif
