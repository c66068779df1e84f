/*
 * Lay out the array of an owner that has grown too long in its head: one that other programs keep
 * there, or one of ours that they push to. docs/reference/allowed-writes.md lists what these
 * programs may do meanwhile; layouts keep newest and capped.
 */
#ifndef SPILL_LAYOUT_RESHAPE_H
#define SPILL_LAYOUT_RESHAPE_H

#include "layout/outlier.h"
#include "store/oversized.h"

/* What was done for an owner. Added to, so zero it. */
typedef struct spill_reshaped {
    bool taken;       /* its array was of others, and is ours now */
    bool at_once;     /* ... its document was full, so it was cut in the same update */
    int64_t elements; /* moved to pages, ... */
    int64_t pages;    /* ... so many, ... */
    int64_t bytes;    /* ... with so many bytes */
    uint64_t hash;    /* of these elements, in their order */
    int64_t changed;  /* pages that were changed before they could be compared with the head */
} spill_reshaped_t;

/* The first `count` elements of `run` went to so many pages, with so many bytes. */
void spill_reshaped_add(const spill_run_t *run, size_t count, int64_t pages, int64_t bytes,
                        spill_reshaped_t *reshaped);

/* SPILL_TOO_BIG, with the reason: its document is so full that the array cannot be adopted. */
spill_code_t spill_reshape_check(const spill_oversized_t *oversized, spill_error_t *error);

/*
 * Take the array over where it is of others, and move its oldest elements to pages until the head
 * is as after a spill. `oversized`: what it was when last seen. Every page is read again and
 * compared with what was moved, element for element: SPILL_CORRUPT where it differs though nobody
 * has changed it. Dead clients at any point leave what the same call, once more, goes on with; what
 * spill_adopt_full leaves, after its lease. An owner that is not there, or has nothing to do, is no
 * error. Cost: one operation, and four more for each SPILL_MOVE_BYTES, if the store takes several
 * pages at a time, and shows what it has taken; four more for a document that is full. Memory: four
 * times SPILL_MOVE_BYTES, and twice what an array has grown beyond it since it was seen.
 */
spill_code_t spill_reshape(spill_owner_t *owner, const spill_oversized_t *oversized,
                           spill_reshaped_t *reshaped, spill_error_t *error);

/*
 * An array of others in a document that is full: its oldest elements go to a page, and then it is
 * taken over without them; one try. SPILL_CONFLICT: it was changed meanwhile, or the answer was
 * lost, or a copy that somebody has made is in the way; the message says from when on to try again.
 * SPILL_TOO_BIG: its document is full of other things. Nothing to do is no error. (full.c)
 */
spill_code_t spill_adopt_full(const spill_owner_t *owner, spill_reshaped_t *reshaped,
                              spill_error_t *error);

/*
 * Make the owner's array one of others again: all elements in the head's document, without
 * bookkeeping. SPILL_TOO_BIG where no document can hold them, SPILL_CONFLICT where a page's lease
 * runs; nothing is changed then. Nobody may edit or remove elements meanwhile; appends and plain
 * pushes may come. An array that is of others already is no error: what a dead client left of its
 * pages goes. Cost: a read and a deletion for each page, and three.
 */
spill_code_t spill_unmanage(spill_owner_t *owner, int64_t *elements, spill_error_t *error);

/*
 * An array of others, beside which there may be pages of an owner that was given back or dropped:
 * they go. Where other programs write to documents SPILL_REFUSED, and all stay, unless the array
 * begins with the elements of all of them, and they are of one incarnation; or who copied them has
 * given them up. While their lease runs all stay: SPILL_CONFLICT, unless there is a head by then.
 * One read where there are none; else one, and a deletion, for each number up to the highest.
 */
spill_code_t spill_free_pages(const spill_owner_t *owner, spill_error_t *error);

/*
 * Would it fit? *bytes: what the document would have, at most; SPILL_TOO_BIG where that is too
 * much, SPILL_CONFLICT where a page's lease runs. One read for each page and one for the head.
 */
spill_code_t spill_unmanage_size(spill_owner_t *owner, int64_t *bytes, spill_error_t *error);

#endif
