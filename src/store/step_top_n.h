/* What an APPEND leaves of a capped head that keeps the best: for the transition, and no others. */
#ifndef SPILL_STORE_STEP_TOP_N_H
#define SPILL_STORE_STEP_TOP_N_H

#include "store/transition.h"

/* Are facts->journal all of the state's elements? Not where a record could not be read. */
bool spill_step_knows_all(const spill_facts_t *facts, const spill_state_t *state);

/*
 * The new elements, with the numbers from `end` on, were added to the state. Of these and those
 * that were there the highest ranking stay that are within cap and bound in bytes, one at least
 * where a document holds it; the numbers of the others are gone. Returns how many of those that
 * were there went for the bytes alone.
 */
int64_t spill_step_keeps_top_n(const spill_request_t *request, const spill_facts_t *facts,
                               int64_t end, spill_state_t *state);

#endif
