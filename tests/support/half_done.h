/*
 * Clients that die in the middle of what they do, and repair after them: for each layout and kind
 * of change, at each of its calls, on any store.
 */
#ifndef TESTS_SUPPORT_HALF_DONE_H
#define TESTS_SUPPORT_HALF_DONE_H

#include <spillway/spillway.h>

/*
 * Fails the cmocka test where repair leaves something, does more than it says, loses an element, or
 * where the next append does not go on. The store stays the caller's.
 */
void half_done_repaired(spill_store_t *store);

#endif
