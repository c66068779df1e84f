/*
 * Due spills of a store in which each costs round trips: one thread of the store performs them, so
 * the append that made a spill due returns as soon as it is acknowledged. If a head has little room
 * beyond that point (spill_store_t.defer_room), the append spills, as in other stores. The thread
 * takes the same steps as any client. If it dies, the next append to a full head spills.
 *
 * The queue has at most 1024 owners, each once, with at most 2 KiB for its value: 2 MiB. If it is
 * full, appends spill themselves. It keeps the elements that the append has read of the head, up to
 * 8 MiB in all. For other owners, the thread reads the head when their turn comes.
 */
#ifndef SPILL_LAYOUT_SPILLER_H
#define SPILL_LAYOUT_SPILLER_H

#include "layout/owner.h"

/* Spill the owner's head if it is still due. `head` may show what an append has read of it. */
typedef spill_code_t (*spill_due_fn)(spill_owner_t *owner, spill_response_t *head,
                                     spill_error_t *error);

/*
 * Call it when an array is opened. If spills cost round trips, its store defers them from now on.
 * The thread calls `spill`.
 */
void spill_spiller_attach(spill_store_t *store, spill_due_fn spill);

/*
 * Call it before an array is closed: perform its queued spills, up to the first one that fails, and
 * wait for the one in progress. Later appends perform the spills that are left.
 */
void spill_spiller_finish(spill_array_t *array);

/*
 * Remove the owner from the queue, or wait until the thread has ended its spill (true). Call it if
 * an append finds the head full, and before a drop: a late spill would leave a page without a head.
 */
bool spill_spiller_await(const spill_owner_t *owner);

#endif
