/* What an APPEND to a top-N capped head keeps. For transition.c only. */
#ifndef SPILL_STORE_STEP_TOP_N_H
#define SPILL_STORE_STEP_TOP_N_H

#include "store/transition.h"

/* Has facts->journal all of the state's elements? Not if a record could not be read. */
bool spill_step_knows_all(const spill_facts_t *facts, const spill_state_t *state);

/*
 * After the new elements, with numbers from `end` on, were added to the state: keep the
 * highest-ranked elements, old and new, within slots_max and bytes_max, but at least one if a
 * document can hold it. Add the numbers of the rest to `deleted`. Return how many old elements were
 * dropped only because of the bytes.
 */
int64_t spill_step_keeps_top_n(const spill_request_t *request, const spill_facts_t *facts,
                               int64_t end, spill_state_t *state);

#endif
