/*
 * Layout reference: each element is a document of its own, in a collection of theirs, and the head
 * has a summary. It is keep newest with pages of one element, whose number is the element's; what
 * the head holds of the array is a journal of the newest elements, which are written out before the
 * journal grows. docs/internals/protocol.md tells why each step is safe.
 *
 *        APPEND                                       INTEND  (removal, edit)
 *         |  ^                                          |
 *         v  |                                          v
 *   [journal] --PUT_PAGE each--> [documents]      PULL or PUT_PAGE --> SETTLE
 *         ^                           |
 *         +------------CUT------------+
 *
 * Layout subset is the same, and its head has a top besides: the elements that rank highest.
 *
 * All functions as those of array.h and outlier.h.
 */
#ifndef SPILL_LAYOUT_REFERENCED_H
#define SPILL_LAYOUT_REFERENCED_H

#include "layout/outlier.h"

spill_code_t spill_referenced_edit(spill_owner_t *owner, spill_which_t *which,
                                   const spill_value_t *element, spill_error_t *error);
spill_code_t spill_referenced_remove(spill_owner_t *owner, spill_which_t *which,
                                     spill_error_t *error);
spill_code_t spill_referenced_trim(spill_owner_t *owner, const spill_trim_t *trim,
                                   int64_t *watermark, spill_error_t *error);

/* The documents with numbers in [*from, head->low) are left of a trim that died. One read each. */
spill_code_t spill_referenced_trimmed(const spill_owner_t *owner, const spill_state_t *head,
                                      int64_t *from, spill_error_t *error);

/* Finish the edit that the head's intent speaks of: as it was made, or as not made. */
spill_code_t spill_referenced_complete(const spill_owner_t *owner, const spill_state_t *head,
                                       spill_error_t *error);

/*
 * A run of elements in documents, as the head in `head` knows them: those with numbers in [low,
 * end), `limit` of them from `seq` in the direction of `want`, into response->run. One operation.
 */
spill_code_t spill_referenced_read(const spill_owner_t *owner, const spill_state_t *head,
                                   int64_t watermark, int64_t end, int64_t seq, spill_want_t want,
                                   int64_t limit, spill_response_t *response, spill_error_t *error);

/* A walk over elements in documents, forwards. Zero it, but for `next`, the number to begin at. */
typedef struct spill_referenced_walk {
    int64_t next;  /* the number to go on at; the end, when there are no more */
    int64_t limit; /* elements of the next read, by the size of those before */
} spill_referenced_walk_t;

/*
 * The next run, of elements with numbers below `end`: up to SPILL_REFERENCED_RUN elements, and few
 * beyond SPILL_REFERENCED_RUN_BYTES. It may be empty. One operation.
 */
enum { SPILL_REFERENCED_RUN = 1000, SPILL_REFERENCED_RUN_BYTES = 4 * 1024 * 1024 };
spill_code_t spill_referenced_walk(const spill_owner_t *owner, const spill_state_t *head,
                                   int64_t end, spill_referenced_walk_t *walk,
                                   spill_response_t *response, spill_error_t *error);

/* Layout subset: what a step needs that takes elements out of the top (spill_request.refill). */
typedef struct spill_refill {
    spill_top_t top;
    spill_run_t run;
} spill_refill_t;

/*
 * Fill *refill, which is zeroed, for a step on the head as it is in `head`, where the step takes an
 * element out of its top, and let the request borrow from it. Else nothing is done. Two operations,
 * and one for each element of the top that the head has no room to show. (referenced_top.c)
 */
spill_code_t spill_referenced_refill(const spill_owner_t *owner, const spill_state_t *head,
                                     spill_request_t *request, spill_refill_t *refill,
                                     spill_error_t *error);
void spill_refill_release(spill_refill_t *refill);

/*
 * What the head's summary is wrong in, and as what it is made anew. Zero it first, release it last.
 * `text`: of a finding; "" where there is nothing wrong, or where that cannot be told.
 */
typedef struct spill_recount {
    char text[160];
    spill_sum_t sum;
    spill_refill_t refill;           /* layout subset: the top, and the elements that it shows */
    int64_t rev, end;                /* of the head that was judged */
    struct spill_counting *counting; /* what was counted, of which the next count makes use */
} spill_recount_t;

/*
 * Count the elements, and judge the head's sum and top by them, at one moment: appends in between
 * are followed, but where elements change again and again it gives up, with a warning to the
 * store's log, as after 200 rounds of following. With a *recount that the head did not take, the
 * same count goes on, of the same owner. Cost: with a value field every element once, and where
 * only appends came since the last count those alone; the top's from an index. With `look_only` a
 * change that its client left half done is not finished, and nothing is told of the summary.
 * (referenced_recount.c)
 */
spill_code_t spill_referenced_count(const spill_owner_t *owner, bool look_only,
                                    spill_recount_t *recount, spill_error_t *error);
/* Write it to the head, if that is still as it was judged. */
spill_code_t spill_referenced_recount(const spill_owner_t *owner, const spill_recount_t *recount,
                                      bool *done, spill_error_t *error);
void spill_recount_release(spill_recount_t *recount);

#endif
