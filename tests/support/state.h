/* States of documents, compared field by field; the first that differs fails the test. */
#ifndef TESTS_SUPPORT_STATE_H
#define TESTS_SUPPORT_STATE_H

#include "store/state.h"

/* What an append tells of its document: its numbers. */
void assert_same_numbers(const spill_state_t *left, const spill_state_t *right);

/* All of it. Of documents that are not there nothing else is compared. */
void assert_same_state(const spill_state_t *left, const spill_state_t *right);

#endif
