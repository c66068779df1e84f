/*
 * Drop an owner: its head, its pages, and what ended incarnations left. Also the lease of page 0,
 * which an adoption gets.
 */
#ifndef SPILL_LAYOUT_DROP_H
#define SPILL_LAYOUT_DROP_H

#include "layout/owner.h"

/* spill_layout_ops.drop of each layout. */
spill_code_t spill_newest_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                               spill_error_t *error);
spill_code_t spill_capped_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                               spill_error_t *error);
spill_code_t spill_referenced_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                                   spill_error_t *error);

/*
 * Find a page of an ended incarnation up to `incarnation`; `page` is absent if there is none. The
 * second function deletes all such pages; *any becomes true if there was one.
 */
spill_code_t spill_outlier_find_left_over(const spill_owner_t *owner, int64_t incarnation,
                                          spill_response_t *page, spill_error_t *error);
spill_code_t spill_outlier_drop_left_over(const spill_owner_t *owner, int64_t incarnation,
                                          bool *any, spill_error_t *error);

/*
 * Up to which incarnation does a note say that the owner was dropped (store/drop_note.h)? 0: there
 * is no note, or the head lives, or it lived on after the note.
 */
spill_code_t spill_outlier_find_dropped(const spill_owner_t *owner, int64_t *incarnation,
                                        spill_error_t *error);
/* Finish the drop that such a note announces or reports, if there is one. */
spill_code_t spill_outlier_finish_noted(const spill_owner_t *owner, spill_error_t *error);
/*
 * The same, and forget the note, which has stayed for its time, even if it is not believed by now.
 * Cost: about five small requests.
 */
spill_code_t spill_outlier_finish_old(const spill_owner_t *owner, spill_error_t *error);

/*
 * Read a page's state and the store's time (want_now). The second function says whether that page's
 * lease has not ended yet.
 */
spill_code_t spill_outlier_read_leased(const spill_owner_t *owner, int64_t number,
                                       spill_response_t *page, spill_error_t *error);
bool spill_page_is_leased(const spill_response_t *page);

/*
 * SPILL_CONFLICT if page 0 exists and its lease has not ended. The incarnation must not end before
 * the lease, because the update that created this incarnation, or that creates another one, may
 * still arrive. Cost: one small read if there are pages or other programs write to the store.
 */
spill_code_t spill_outlier_may_end(const spill_owner_t *owner, const spill_state_t *head,
                                   spill_error_t *error);

/* Without a head: find the incarnations that have ended, and delete their pages. */
spill_code_t spill_outlier_finish_drop(const spill_owner_t *owner, bool *any, spill_error_t *error);

/* Read the head's state. An unmanaged array (SPILL_REFUSED) counts as an absent head. */
spill_code_t spill_drop_read_head(const spill_owner_t *owner, spill_response_t *head,
                                  spill_error_t *error);

/*
 * DROP_HEAD. If the store did it (*done), delete the pages count - 1 .. from, then all others that
 * ended incarnations left. A store with notes of drops gets one.
 */
spill_code_t spill_drop_documents(const spill_owner_t *owner, const spill_state_t *head,
                                  int64_t from, int64_t count, bool *done, spill_error_t *error);

/* Keep oldest: finish the drop of an incarnation that has a closed tail. */
spill_code_t spill_outlier_drop_closed(spill_owner_t *owner, int64_t incarnation, int64_t pages,
                                       spill_error_t *error);

#endif
