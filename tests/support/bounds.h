/*
 * The bounds of a definition change while clients go on: threads append and read by handles that
 * were opened before and after each change.
 */
#ifndef TESTS_SUPPORT_BOUNDS_H
#define TESTS_SUPPORT_BOUNDS_H

#include <spillway/spillway.h>

/*
 * Plays it on a definition of its own, `appends` of each thread between two changes, and checks:
 * nothing is lost or doubled, order is kept, the verifier is content, and no document is beyond the
 * largest that each bound has ever been. Fails the test where that is not so.
 */
void bounds_play(spill_store_t *store, spill_keep_t keep, int appends);

#endif
