/* Several threads that share a sequence of items: get one, work on it, finish it in order. */
#ifndef SPILL_TOOLS_PARALLEL_H
#define SPILL_TOOLS_PARALLEL_H

#include <spillway/error.h>

#include <stdatomic.h>
#include <stddef.h>

#define SPILL_PARALLEL_MAX 64 /* threads */

/* Get the next item, or NULL if none is left, also when called again. One thread at a time. */
typedef spill_code_t (*spill_parallel_next_fn)(void *context, void **item, spill_error_t *error);

/* Work on the item, or finish it. */
typedef spill_code_t (*spill_parallel_fn)(void *context, void *item, spill_error_t *error);

typedef struct spill_parallel {
    size_t threads; /* 0: one */
    /* Borrowed, and may change meanwhile: how many threads work, at least one. NULL: `threads` */
    const atomic_int *allowed;
    spill_parallel_next_fn next;
    spill_parallel_fn work; /* any thread */
    /*
     * May be NULL. Called for each item in the order of `next`, after the work on this item and on
     * all earlier ones has succeeded. So a place that it saves says that everything before is done.
     * Never at the same time as `next` or another `finish`.
     */
    spill_parallel_fn finish;
    void (*free)(void *item);
    void *context;
} spill_parallel_t;

/*
 * Work on each item by up to `threads` threads including the caller's. If no thread can be started,
 * only the caller's thread works. While one thread gets or finishes an item, the others continue.
 * After an error no further item is requested; the first error is returned after all items in
 * progress are done. Memory: at most 1000 items that are not finished.
 */
spill_code_t spill_parallel(const spill_parallel_t *job, spill_error_t *error);

#endif
