/* Stores in a child of the process that opened them. */
#ifndef TESTS_SUPPORT_FORKED_H
#define TESTS_SUPPORT_FORKED_H

#include <spillway/spillway.h>

/*
 * Fork. The child calls every function of the store and of its arrays, which must be refused with
 * the parent's process id, and closes all three. `array` is of layout outlier, `bucket` of layout
 * bucket. Fails the test if a call in the child is not refused, or if the child does not end.
 */
void forked_calls_are_refused(spill_store_t *store, spill_array_t *array, spill_array_t *bucket);

/*
 * Fork, and let the child run `run`, which returns its exit status, and then leave with exit().
 * Returns that status. Fails the test if the child does not end within 60 seconds.
 */
int forked_exit(int (*run)(void *context), void *context);

#endif
