/*
 * Move the oldest elements of a long head to pages. The array may be unmanaged, or other programs
 * may push to a managed one. docs/reference/allowed-writes.md lists what these programs may do at
 * the same time. For layout outlier with keep newest, and for layout capped.
 */
#ifndef SPILL_LAYOUT_RESHAPE_H
#define SPILL_LAYOUT_RESHAPE_H

#include "layout/owner.h"
#include "store/listing.h"

/* What a call did for an owner. Calls add to it: zero it first. */
typedef struct spill_reshaped {
    bool adopted;     /* the array was unmanaged and is managed now */
    bool at_once;     /* ... its document was full, so the same update cut it */
    int64_t elements; /* number of elements moved to pages */
    int64_t pages;    /* number of these pages */
    int64_t bytes;    /* size of these elements */
    uint64_t hash;    /* of these elements, in their order */
    int64_t changed;  /* pages that changed before they could be compared with the head */
} spill_reshaped_t;

/* Add the first `count` elements of `run`, which went to `pages` pages and have `bytes` bytes. */
void spill_reshaped_add(const spill_run_t *run, size_t count, int64_t pages, int64_t bytes,
                        spill_reshaped_t *reshaped);

/* SPILL_TOO_BIG, with the reason, if the document is too full for the array to be adopted. */
spill_code_t spill_reshape_check(const spill_oversized_t *oversized, spill_error_t *error);

/* How a caller follows the steps of one owner, and paces them. All may be NULL. */
typedef struct spill_reshape_steps {
    /*
     * The elements that the next step should move at most; 0: as many as fit in memory. A step
     * moves at least a page.
     */
    int64_t (*limit)(void *context);
    /*
     * Called after each step that moved elements; `so_far` is what the call has done for the owner.
     * It may wait: between two steps the array is as after a crash there, and other clients use it.
     * Any other result than SPILL_OK ends the call with that result.
     */
    spill_code_t (*moved)(void *context, const spill_reshaped_t *so_far, spill_error_t *error);
    void *context;
} spill_reshape_steps_t;

/*
 * Adopt the array if it is unmanaged. Then, if a spill is due (newest.h), move its oldest elements
 * to pages until the head is as short as after a spill. `oversized` describes the array when it was
 * last seen. `steps` (may be NULL) paces the moves.
 *
 * The function reads every page again and compares each element with what it moved. SPILL_CORRUPT:
 * a page differs although no client has changed it. After a crash the same call continues, but
 * after spill_adopt_full only when the lease has ended. If the owner is absent, or no element must
 * move, the result is SPILL_OK.
 *
 * Cost: one operation, and four more for each step, which has SPILL_MOVE_BYTES without a limit, if
 * the store accepts several pages at a time and returns the array that it adopts. A full document
 * costs four more. Memory: four times SPILL_MOVE_BYTES, and twice the growth of the array since it
 * was seen.
 */
spill_code_t spill_reshape(spill_owner_t *owner, const spill_oversized_t *oversized,
                           const spill_reshape_steps_t *steps, spill_reshaped_t *reshaped,
                           spill_error_t *error);

/*
 * Adopt the unmanaged array of a full document: copy its oldest elements to a page, then adopt the
 * rest in one update. Makes one try. SPILL_CONFLICT: another program changed the array, the answer
 * was lost, or the copy of another client is in the way; the message gives the time of the next
 * try. SPILL_TOO_BIG: other fields fill the document. SPILL_OK also if the array is already
 * adopted or deleted. (full.c)
 */
spill_code_t spill_adopt_full(const spill_owner_t *owner, spill_reshaped_t *reshaped,
                              spill_error_t *error);

/*
 * Make the owner's array unmanaged again: all elements go to the head's document, which loses its
 * bookkeeping. SPILL_TOO_BIG: no document can hold the elements. SPILL_CONFLICT: the lease of a
 * page still runs. Both change nothing. No client may edit or remove elements at the same time;
 * appends and pushes may come. If the array is unmanaged already, the function only deletes the
 * pages that a dead client left. Cost: a read and a deletion for each page, and three more
 * operations.
 */
spill_code_t spill_unmanage(spill_owner_t *owner, int64_t *elements, spill_error_t *error);

/*
 * Delete the pages beside an unmanaged array that an undo or a drop left.
 *
 * If other programs write to the store, the pages may hold the only copy of their elements. The
 * function then deletes them in two cases only: all pages have one incarnation and the array begins
 * with all their elements, or the client that copied them has given them up. Otherwise the result
 * is SPILL_REFUSED and all pages stay. SPILL_CONFLICT: a lease still runs, and there is no head.
 *
 * Cost: one read if there is no page, else a read and a deletion for each number up to the highest.
 */
spill_code_t spill_free_pages(const spill_owner_t *owner, spill_error_t *error);

/*
 * Would spill_unmanage fit all elements into one document? *elements is their number, and *bytes
 * the highest size that the document can get: a page counts whole, also if some of its elements are
 * trimmed. SPILL_TOO_BIG: no document can have that size.
 * SPILL_CONFLICT: the lease of a page still runs. Cost: one read for each page and one for the
 * head.
 */
spill_code_t spill_unmanage_size(spill_owner_t *owner, int64_t *elements, int64_t *bytes,
                                 spill_error_t *error);

#endif
