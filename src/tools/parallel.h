/* Parallel: the same work on many items, by several threads. */
#ifndef SPILL_TOOLS_PARALLEL_H
#define SPILL_TOOLS_PARALLEL_H

#include <spillway/error.h>

#include <stddef.h>

#define SPILL_PARALLEL_MAX 64 /* threads */

/* The next item, or NULL: there is none; asked again after that. In no two threads at a time. */
typedef spill_code_t (*spill_parallel_next_fn)(void *context, void **item, spill_error_t *error);

/* Work on the item, which is the callee's from then on. Any thread. */
typedef spill_code_t (*spill_parallel_fn)(void *context, void *item, spill_error_t *error);

/*
 * Call `work` for each item that `next` gives, about in this order, by up to `threads` threads at a
 * time, the caller's among them; with 0 or 1, and where no other can be started, by the caller's
 * alone. While one thread gets an item the others go on with theirs. After an error no item is
 * got; the first error is returned, once all that were begun are done.
 */
spill_code_t spill_parallel(size_t threads, spill_parallel_next_fn next, spill_parallel_fn work,
                            void *context, spill_error_t *error);

#endif
