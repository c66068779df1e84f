/*
 * A migration that was interrupted at 90 % of its owners begins there again. Counted are the
 * documents that the first search of a run has to read, and the calls of the run.
 */
#ifndef TESTS_MODEL_RESUMED_H
#define TESTS_MODEL_RESUMED_H

#include "store/store.h"

/* All need an empty store, in which they make so many owners. */

void resumed_in_place(spill_store_t *store, int owners);

/* With other bounds, owners before the place may be new work. */
void resumed_with_other_bounds(spill_store_t *store, int owners);

/* An owner was skipped: the next run visits it again. */
void resumed_before_a_skipped_owner(spill_store_t *store, int owners);

/* An undo makes all owners new work. */
void resumed_after_an_undo(spill_store_t *store, int owners);

/*
 * The second stage. Owners before the place change: the resumed run leaves them, and --finish
 * copies them. An owner is deleted.
 */
void resumed_second_stage(spill_store_t *store, int owners);

#endif
