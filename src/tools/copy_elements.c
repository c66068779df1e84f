/*
 * Appending what the target has not yet.
 *
 * A batch is one atomic append. Its operation id is made of its first number alone, so of all
 * batches that were ever sent to begin at a number, by this copy, an earlier one that was killed
 * with a request under way, or another that runs at the same time, at most one is applied. The base
 * is read before the target's next number: an operation that begins at that number has not been
 * applied then.
 */
#include "tools/copy_owner.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>

#define BATCH_BYTES (1024 * 1024)

typedef struct batch {
    int64_t first; /* number of its first element */
    size_t count;
    size_t placeholders;
    spill_buffer_t bytes;
    spill_value_t values[SPILL_COPY_BATCH];
    size_t offsets[SPILL_COPY_BATCH]; /* of the values' bytes */
} batch_t;

static const spill_value_t PLACEHOLDER = {.data = (const uint8_t *)"", .type = BSON_TYPE_MINKEY};

bool spill_copy_is_placeholder(const spill_value_t *value)
{
    return value->type == BSON_TYPE_MINKEY;
}

spill_code_t spill_copy_remove(const spill_copy_owner_t *owner, int64_t seq, spill_error_t *error)
{
    const spill_copy_side_t *target = &owner->copy->target;
    spill_code_t code = spill_array_remove(target->array, owner->target.value, seq, error);
    return code == SPILL_NOT_FOUND ? SPILL_OK : spill_copy_failed(target, code, error);
}

/* ---- batches --------------------------------------------------------------------------------- */

static bool has_room(const spill_copy_owner_t *owner, const batch_t *batch,
                     const spill_value_t *value)
{
    size_t bytes = batch->bytes.size + value->size_bytes;
    return batch->count == 0 || (batch->count < SPILL_COPY_BATCH && bytes <= BATCH_BYTES &&
                                 spill_part_fits(&owner->target, (int64_t)batch->count + 1,
                                                 (int64_t)bytes));
}

static void add(batch_t *batch, const spill_value_t *value, bool placeholder)
{
    batch->offsets[batch->count] = batch->bytes.size;
    batch->values[batch->count] = *value;
    spill_buffer_append(&batch->bytes, value->data, value->size_bytes);
    batch->count++;
    batch->placeholders += placeholder;
}

/* Append the batch: all of it or nothing, and at most once. */
static spill_code_t append(spill_copy_owner_t *owner, batch_t *batch, spill_error_t *error)
{
    const spill_copy_side_t *target = &owner->copy->target;
    char id[SPILL_OP_ID_MAX];
    spill_op_t op = {.id = id, .base = owner->base};
    op.id_bytes = (size_t)snprintf(id, sizeof id, "spillway-copy:%" PRId64, batch->first);
    spill_append_options_t options;
    spill_append_options_init(&options);
    options.op = &op;
    for (size_t i = 0; i < batch->count; i++) {
        batch->values[i].data = batch->bytes.data + batch->offsets[i];
    }
    spill_append_result_t result;
    spill_code_t code = spill_array_append(target->array, owner->target.value, batch->values,
                                           batch->count, &options, &result, error);
    if (code != SPILL_OK) {
        return spill_copy_failed(target, code, error);
    }
    if (result.first != batch->first) {
        spill_fail(error, SPILL_REFUSED,
                   "element %" PRId64 " of the source was given the number %" PRId64
                   ": someone else appends to this owner; drop it in the target, see to it that "
                   "nobody does, and copy again",
                   batch->first, result.first);
        spill_owner_name(&owner->target, SPILL_REFUSED, error);
        return spill_copy_failed(target, SPILL_REFUSED, error);
    }
    owner->base = result.op_base;
    return SPILL_OK;
}

/* Numbers that no element of the source has any more. A run at the array's start is trimmed. */
static spill_code_t remove_placeholders(const spill_copy_owner_t *owner, const batch_t *batch,
                                        const bool *gaps, spill_error_t *error)
{
    const spill_copy_side_t *target = &owner->copy->target;
    int64_t end = batch->first + (int64_t)batch->count;
    if (batch->placeholders == batch->count && owner->live == 0) {
        spill_code_t code = spill_array_trim(target->array, owner->target.value, end, error);
        return spill_copy_failed(target, code, error);
    }
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; code == SPILL_OK && batch->placeholders > 0 && i < batch->count; i++) {
        if (gaps[i]) {
            code = spill_copy_remove(owner, batch->first + (int64_t)i, error);
        }
    }
    return code;
}
