/* Counts that are wrong, and repair that makes them anew from the elements, on any store. */
#ifndef TESTS_SUPPORT_MISCOUNTED_H
#define TESTS_SUPPORT_MISCOUNTED_H

#include <spillway/spillway.h>

/* Fails the cmocka test where one is not found, or not mended. The store stays the caller's. */
void miscounted_fixed(spill_store_t *store);

#endif
