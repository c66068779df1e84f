/* Comparison of a transfer: both sides of one owner, element by element. */
#ifndef SPILL_TOOLS_TRANSFER_COMPARISON_H
#define SPILL_TOOLS_TRANSFER_COMPARISON_H

#include "tools/transfer/transfer.h"

/*
 * Compare the numbers in [from, to). Remove placeholders that an unfinished transfer has left in
 * the target, and elements that a capped source has dropped since they were copied. Add the number
 * of equal elements to *equal (may be NULL). If the target keeps the top N, a missing element is a
 * difference only if it ranks above an element of the target or if the target has room for it.
 */
spill_code_t spill_transfer_compare(spill_transfer_owner_t *owner, int64_t from, int64_t to,
                                    int64_t *equal, spill_error_t *error);

/* Would the target's head, which keeps at most `room` elements, keep one more of this size? */
bool spill_transfer_holds_one_more(const spill_transfer_owner_t *owner, const spill_state_t *head,
                                   int64_t room, int64_t bytes);

#endif
