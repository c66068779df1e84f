/*
 * Elements that have numbers before they are appended, as the lines of an export have them. They go
 * to one owner, each at most once and each with its number. A number without an element is given to
 * a placeholder, which is removed at once, as in a copy (docs/internals/copy.md).
 *
 * The owner's next number shows what is appended already. So the caller needs no operation ids: it
 * remembers the owner's next number before its first try (`began`), and calls again with it.
 */
#ifndef SPILL_TOOLS_TRANSFER_NUMBERED_H
#define SPILL_TOOLS_TRANSFER_NUMBERED_H

#include <spillway/array.h>

/* What became of the elements of a call. Their sum is the number of elements. */
typedef struct spill_numbered_counts {
    int64_t appended;
    int64_t repeated; /* the owner had them, equal, before the call */
    int64_t dropped;  /* the owner does not keep them: a cap dropped them, or they are trimmed */
} spill_numbered_counts_t;

/*
 * Return the owner's next number, and compare the elements below it with the owner's. Change
 * nothing. `elements`: ascending numbers. SPILL_REFUSED: the owner has another element of a number,
 * or has used and removed it; the message names the number. A set: an element that is to be
 * appended has an id that another one or the owner has. Cost: two reads, and a read of the elements
 * in question; a set: one more for each element.
 */
spill_code_t spill_numbered_check(spill_array_t *array, const spill_value_t *owner,
                                  const spill_element_t *elements, size_t count, int64_t *next,
                                  spill_error_t *error);

/*
 * Append the elements that the owner does not have. `began`: what spill_numbered_check returned
 * before the first try. Call it again, with the same arguments, after any interruption.
 * SPILL_REFUSED: another client appends to this owner, or the owner was dropped. The array's
 * `retains` should be false. Memory: a batch and a document of the store.
 */
spill_code_t spill_numbered_append(spill_array_t *array, const spill_value_t *owner,
                                   const spill_element_t *elements, size_t count, int64_t began,
                                   spill_numbered_counts_t *counts, spill_error_t *error);

#endif
