/* Compare states of documents field by field. The first difference fails the test. */
#ifndef TESTS_SUPPORT_STATE_H
#define TESTS_SUPPORT_STATE_H

#include "store/state.h"

/* Compare the numbers of the documents, which the answer to an append has. */
void assert_same_numbers(const spill_state_t *left, const spill_state_t *right);

/* Compare all fields. If both documents are absent, compare nothing else. */
void assert_same_state(const spill_state_t *left, const spill_state_t *right);

#endif
