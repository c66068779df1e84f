/*
 * Appends of batches: checks, and parts with their operations.
 *
 *   append.c        a batch of one owner
 *   append_many.c   first tries of batches of several owners
 */
#ifndef SPILL_CORE_APPEND_PARTS_H
#define SPILL_CORE_APPEND_PARTS_H

#include "core/array.h"
#include "layout/layout.h"

spill_code_t spill_append_check_elements(const spill_owner_t *owner, const spill_value_t *elements,
                                         size_t count, spill_error_t *error);
spill_code_t spill_append_check_op(const spill_op_t *op, spill_error_t *error);

/* The longest part that starts with the first of these elements. */
spill_part_t spill_append_next_part(const spill_owner_t *owner, const spill_value_t *elements,
                                    size_t count);

/*
 * The parts of a split batch have the ids "ID", "ID\0K", ...: K is how many elements are in the
 * parts before. Each part that was applied has raised n by one, so base + i was a value of n before
 * the first try of the i-th.
 */
typedef struct spill_part_op {
    spill_op_t op;
    char id[SPILL_OP_ID_MAX + 24];
} spill_part_op_t;

spill_code_t spill_part_op_init(spill_part_op_t *part, const spill_op_t *whole, size_t at,
                                int64_t index, spill_error_t *error);

/* ---- append_many.c --------------------------------------------------------------------------- */

enum { SPILL_BATCHES_MAX = 64 };

/* A batch for one owner, with its operation. */
typedef struct spill_owner_batch {
    spill_value_t owner;
    const spill_value_t *elements;
    size_t count;
    spill_op_t op;
    bool done; /* it is appended, and `result` is filled */
    spill_append_result_t result;
} spill_owner_batch_t;

/*
 * Try to append each of at most SPILL_BATCHES_MAX batches, of different owners, to the owner's
 * head, in one atomic write. A batch that is not `done` needs an append of its own with the same
 * operation, also after an error: its head is full, it was appended before, something is wrong
 * with it, or store or layout cannot append in this way.
 */
spill_code_t spill_array_append_many(spill_array_t *array, spill_owner_batch_t *batches,
                                     size_t count, spill_error_t *error);

#endif
