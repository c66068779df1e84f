/*
 * Layout subset: what the steps of transition.h do to the top of a summary. In other layouts, which
 * have no top, these functions do nothing.
 */
#ifndef SPILL_STORE_STEP_TOP_H
#define SPILL_STORE_STEP_TOP_H

#include "store/transition.h"

/* REMOVE, EDIT, PREPARE, COMPLETE, TRIM: does the step remove or change element `seq`? */
bool spill_step_affects(const spill_request_t *request, int64_t seq);

/* Has the step a refill, or is none needed because it removes no element from the top? */
bool spill_step_allows_top(const spill_request_t *request, const spill_state_t *state);

/* Add the elements of an APPEND, with numbers from `end` on, to the top. */
void spill_step_appends_to_top(const spill_request_t *request, const spill_facts_t *facts,
                               int64_t end, spill_state_t *state);

/*
 * If the step has a refill, remove the affected elements and add the refill's and the journal's.
 * Then add the new value of the element, `edited`, unless it is NULL.
 */
void spill_step_changes_top(const spill_request_t *request, const spill_facts_t *facts,
                            const spill_value_t *edited, spill_state_t *state);

/* RECOUNT: replace the top by request->recount.refill; show the leading elements that refill_run
 * has. */
void spill_step_replaces_top(const spill_request_t *request, spill_state_t *state);

#endif
