/* Wrong counts in heads and pages, and their repair from the elements, on any store. */
#ifndef TESTS_SUPPORT_MISCOUNTED_H
#define TESTS_SUPPORT_MISCOUNTED_H

#include <spillway/spillway.h>

/* Fails the cmocka test if repair misses a wrong count or does not correct it. Borrows the store.
 */
void miscounted_fixed(spill_store_t *store);

#endif
