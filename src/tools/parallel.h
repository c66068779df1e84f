/* Parallel: the same work on many items, by several threads. */
#ifndef SPILL_TOOLS_PARALLEL_H
#define SPILL_TOOLS_PARALLEL_H

#include <spillway/error.h>

#include <stddef.h>

#define SPILL_PARALLEL_MAX 64 /* threads */

/* Get the next item, or NULL if none is left, also when called again. One thread at a time. */
typedef spill_code_t (*spill_parallel_next_fn)(void *context, void **item, spill_error_t *error);

/* Work on the item; the callee owns it. Any thread. */
typedef spill_code_t (*spill_parallel_fn)(void *context, void *item, spill_error_t *error);

/*
 * Call `work` for each item that `next` returns, about in this order, by up to `threads` threads
 * including the caller's. If `threads` is 0 or 1, or no thread can be started, only the caller's
 * thread works. While one thread gets an item, the others continue. After an error no further item
 * is requested; the first error is returned after all items in progress are done.
 */
spill_code_t spill_parallel(size_t threads, spill_parallel_next_fn next, spill_parallel_fn work,
                            void *context, spill_error_t *error);

#endif
