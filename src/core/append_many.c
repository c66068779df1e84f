/* First tries of appends to several owners, in one request to the store. */
#include "core/append_parts.h"
#include "definition/schema.h"
#include "layout/layout.h"
#include "util/error.h"

/* The batches that go into the request, in one array for each part of them. */
typedef struct group {
    spill_owner_t owners[SPILL_BATCHES_MAX];
    spill_part_t parts[SPILL_BATCHES_MAX];
    spill_part_op_t ops[SPILL_BATCHES_MAX];
    spill_append_result_t results[SPILL_BATCHES_MAX];
    spill_owner_batch_t *batches[SPILL_BATCHES_MAX];
    size_t count;
} group_t;

/* Check the batch, and make its only part. Its own append reports what is wrong with it. */
static bool add_batch(group_t *group, spill_array_t *array, spill_owner_batch_t *batch)
{
    spill_error_t error;
    size_t at = group->count;
    spill_owner_t *owner = &group->owners[at];
    if (spill_owner_init(owner, array, &batch->owner, &error) != SPILL_OK ||
        spill_append_check_elements(owner, batch->elements, batch->count, &error) != SPILL_OK ||
        spill_append_check_op(&batch->op, &error) != SPILL_OK) {
        spill_owner_release(owner);
        return false;
    }
    spill_part_t part = spill_append_next_part(owner, batch->elements, batch->count);
    if (part.count < batch->count ||
        spill_part_op_init(&group->ops[at], &batch->op, 0, 0, &error) != SPILL_OK) {
        spill_owner_release(owner);
        return false;
    }
    part.op = &group->ops[at].op;
    group->parts[at] = part;
    group->batches[at] = batch;
    group->count++;
    return true;
}

static void end_batch(spill_array_t *array, spill_owner_batch_t *batch,
                      const spill_append_result_t *result)
{
    batch->done = true;
    batch->result = *result;
    if (result->first == 0 && spill_schema_of(&array->definition)->has_windows)
        spill_windows_retain(array, &batch->owner);
}

spill_code_t spill_array_append_many(spill_array_t *array, spill_owner_batch_t *batches,
                                     size_t count, spill_error_t *error)
{
    group_t *group = bson_malloc(sizeof *group);
    group->count = 0;
    spill_code_t code = spill_array_check_built(array, error);
    for (size_t i = 0; i < count; i++) {
        batches[i].done = false;
        if (code == SPILL_OK)
            add_batch(group, array, &batches[i]);
    }
    if (code == SPILL_OK && group->count > 0)
        code = spill_layout_append_many(group->owners, group->parts, group->count, group->results,
                                        error);
    for (size_t i = 0; i < group->count; i++) {
        if (code == SPILL_OK && group->results[i].count > 0)
            end_batch(array, group->batches[i], &group->results[i]);
        spill_owner_release(&group->owners[i]);
    }
    bson_free(group);
    return code;
}
