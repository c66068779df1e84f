/*
 * Combine the appends of several threads to one owner. While the store executes an append, later
 * ones wait, and the next request has the elements of all that wait. A server executes the commands
 * for one document one after another, and a command with ten elements takes about as long as with
 * one. Appends of one thread keep their order, and each has its own numbers and its own operation.
 */
#ifndef SPILL_LAYOUT_APPEND_COMBINER_H
#define SPILL_LAYOUT_APPEND_COMBINER_H

#include "layout/append.h"

/* Each id of a part is compared with those of the others. A part with more ids is not combined. */
enum { SPILL_COMBINED_IDS_MAX = 16 };

typedef struct spill_append_combiner spill_append_combiner_t;

/* An array has one, or NULL if its appends are not combined (spill_array_t.combiner). */
spill_append_combiner_t *spill_append_combiner_new(void);
void spill_append_combiner_free(spill_append_combiner_t *combiner); /* NULL is allowed */

/*
 * Append a part together with the parts of other threads that wait for the same owner, by
 * spill_layout_append_alone. The owner's array has a combiner. Returns when the part was appended
 * or has failed. If a group is refused, its halves are appended, down to single parts. If the
 * outcome of a group is unknown, each part gets SPILL_UNKNOWN.
 */
spill_code_t spill_append_combined(spill_owner_t *owner, const spill_part_t *part,
                                   spill_append_result_t *result, spill_error_t *error);

#endif
