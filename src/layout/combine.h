/*
 * Appends of several threads to one owner, as one. While a command is under way others come to
 * wait; the next command carries all of them. On a server the time of a command to a hot document
 * is what limits it, and a command with ten elements takes hardly longer than one with one.
 */
#ifndef SPILL_LAYOUT_COMBINE_H
#define SPILL_LAYOUT_COMBINE_H

#include "layout/outlier.h"

typedef struct spill_combine spill_combine_t;

spill_combine_t *spill_combine_new(void);
void spill_combine_free(spill_combine_t *combine); /* NULL is allowed */

/*
 * Append a part without updates, together with what other threads have for the same owner. Appends
 * of a thread keep their order, and each has its own numbers and its own operation. Blocks until it
 * is done. Any thread.
 */
spill_code_t spill_combine_append(spill_combine_t *combine, spill_owner_t *owner,
                                  const spill_part_t *part, spill_append_result_t *result,
                                  spill_error_t *error);

#endif
