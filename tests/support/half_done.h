/*
 * Clients that crash in the middle of a change, and the repair afterwards: for each layout and kind
 * of change, at each call of the change, on any store.
 */
#ifndef TESTS_SUPPORT_HALF_DONE_H
#define TESTS_SUPPORT_HALF_DONE_H

#include <spillway/spillway.h>

/*
 * Fails the cmocka test if repair leaves something, does more than it reports or loses an element,
 * or if the next append fails. Borrows the store.
 */
void half_done_repaired(spill_store_t *store);

#endif
