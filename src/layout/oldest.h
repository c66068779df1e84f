/*
 * Keep oldest: appends go to the last document, the tail, which is sealed when it is full. newest.h
 * has the picture.
 */
#ifndef SPILL_LAYOUT_OLDEST_H
#define SPILL_LAYOUT_OLDEST_H

#include "layout/owner.h"

/*
 * Keep oldest: did a drop close the tail and not yet delete the head? All elements still exist, and
 * any client that reads the tail may finish the drop. False for other layouts. Cost: two reads.
 */
spill_code_t spill_outlier_drop_has_begun(const spill_owner_t *owner, bool *begun,
                                          spill_error_t *error);

/*
 * Create the page after the sealed document `page`. `response` is the answer to a READ of that
 * document with want_ops, unless the store keeps the window itself. SPILL_OK also if another client
 * created the page or dropped the owner.
 */
spill_code_t spill_oldest_grow(spill_owner_t *owner, int64_t page, spill_response_t *response,
                               spill_error_t *error);

#endif
