/*
 * Slices (include/spillway/array.h): elements for a caller, and what they borrow from, in one block
 * of memory.
 */
#ifndef SPILL_STORE_SLICE_H
#define SPILL_STORE_SLICE_H

#include "store/content.h"

/*
 * A slice with memory for `count` elements and `bytes` bytes of their values, which begin at
 * *values. The elements are not initialized; slice->count is 0. One allocation.
 */
spill_slice_t *spill_slice_new(size_t count, size_t bytes, uint8_t **values);

/* A slice of the first `count` elements of the run. The run becomes the slice's. O(count). */
spill_slice_t *spill_slice_of(spill_run_t *run, size_t count);

#endif
