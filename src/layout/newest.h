/*
 * Keep newest: every append goes to the head, which spills its oldest run to a page. The outlier
 * layout has a bounded head and bounded pages, in two protocols. docs/internals/protocol.md
 * explains why each step is safe. It names each step after its request kind.
 *
 *   keep newest (newest.c)                          keep oldest (oldest.c)
 *   pages 0 .. k-1 hold the oldest, the head        the head holds the oldest, pages 0 .. k-1 the
 *   the newest elements; every append goes to       rest; appends go to the last document, the
 *   the head, which spills its oldest run:          tail, which is sealed when it is full:
 *
 *        APPEND                                          APPEND
 *         |  ^                                            |  ^
 *         v  |                                            v  |
 *   [head long] --PUT_PAGE k--> [page put]          [tail full] --SEAL--> [sealed]
 *         ^                        |                      ^                   | ADVANCE
 *         +---------CUT------------+                      +---CREATE_PAGE-----+
 */
#ifndef SPILL_LAYOUT_NEWEST_H
#define SPILL_LAYOUT_NEWEST_H

#include "layout/owner.h"

/* READ of the head with its oldest run, of up to a page's elements. */
spill_code_t spill_newest_read_run(const spill_owner_t *owner, spill_response_t *head,
                                   spill_error_t *error);

/*
 * Make a CUT of the first `slots` slots of a head as it was read. Their elements have `bytes`
 * bytes.
 */
spill_request_t spill_newest_cut_request(const spill_owner_t *owner, const spill_state_t *head,
                                         int64_t slots, int64_t bytes);

/*
 * Keep newest: the most bytes of a head after a spill that its size caused. The share of
 * head_bytes_max equals the share of elements that a spill by count leaves.
 */
int64_t spill_newest_bytes_target(const spill_bounds_t *bounds);

/* Keep newest: must any client spill this head now? */
bool spill_newest_is_due(const spill_owner_t *owner, const spill_state_t *head);

/*
 * Spill the head until it is no longer due. Another client may have spilled it. If `head` shows a
 * read, begin with that.
 */
spill_code_t spill_newest_spill_due(spill_owner_t *owner, spill_response_t *head,
                                    spill_error_t *error);

/* Most bytes of elements that are moved at a time, unless one page has more. */
#define SPILL_MOVE_BYTES (8 * 1024 * 1024)

/* What a step moved: the first `live` elements of a head, to pages from `page` on. */
typedef struct spill_moved {
    int64_t page, pages; /* pages is 0 if nothing was moved */
    size_t live;
    int64_t bytes;
} spill_moved_t;

/*
 * Make one try to move the oldest elements of a long head to full pages. `head` holds them in its
 * run. *finished: nothing is left to move. Otherwise read the head again: another client has
 * changed it, or it is still too long.
 */
spill_code_t spill_newest_move(const spill_owner_t *owner, spill_response_t *head,
                               spill_moved_t *moved, bool *finished, spill_error_t *error);

#endif
