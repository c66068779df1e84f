/* Parallel: the same work on many items, by several threads. */
#ifndef SPILL_TOOLS_PARALLEL_H
#define SPILL_TOOLS_PARALLEL_H

#include <spillway/error.h>

#include <stddef.h>

#define SPILL_PARALLEL_MAX 64 /* threads */

/* Work on item `index`. Any thread. */
typedef spill_code_t (*spill_parallel_fn)(void *context, size_t index, spill_error_t *error);

/*
 * Call `work` for items 0 .. count - 1, each once and about in this order, by up to `threads`
 * threads at a time, the caller's among them; with 0 or 1, and where no other can be started, by
 * the caller's alone. After an error no item is begun; the first error is returned, once all that
 * were begun are done.
 */
spill_code_t spill_parallel(size_t threads, size_t count, spill_parallel_fn work, void *context,
                            spill_error_t *error);

#endif
