/*
 * Layout subset: what the steps of transition.h do to the top of a summary. Nothing here has an
 * effect on other layouts, which have none.
 */
#ifndef SPILL_STORE_STEP_TOP_H
#define SPILL_STORE_STEP_TOP_H

#include "store/transition.h"

/* REMOVE, EDIT, PREPARE, COMPLETE, TRIM: is this an element that the step takes, or changes? */
bool spill_step_affects(const spill_request_t *request, int64_t seq);

/* Where the step takes an element out of the top, what ranks next has to be known: a refill. */
bool spill_step_allows_top(const spill_request_t *request, const spill_state_t *state);

/* Put in the elements of an APPEND, which have the numbers from `end` on. */
void spill_step_appends_to_top(const spill_request_t *request, const spill_facts_t *facts,
                               int64_t end, spill_state_t *state);

/*
 * Take out what goes, where the step brings what ranks next, and put in what the element becomes:
 * `edited`, or NULL.
 */
void spill_step_changes_top(const spill_request_t *request, const spill_facts_t *facts,
                            const spill_value_t *edited, spill_state_t *state);

/* RECOUNT: the top as it was found, shown as far as its elements were brought. */
void spill_step_replaces_top(const spill_request_t *request, spill_state_t *state);

#endif
