/* Write to one owner of the target: batches, each appended at most once. */
#include "layout/append.h"
#include "tools/transfer/transfer_parts.h"

#include "core/array.h"
#include "definition/schema.h"
#include "layout/layout.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>

#define BATCH_BYTES (1024 * 1024)
#define SKIPPED_MAX 100000 /* numbers in one append; a capped target stores few of them */

/* {placeholder: MinKey}, for layouts that store only documents. */
static const uint8_t PLACEHOLDER_DOCUMENT[] = "\x12\0\0\0\xffplaceholder\0";
static const spill_value_t PLACEHOLDERS[] = {
    {.data = (const uint8_t *)"", .type = BSON_TYPE_MINKEY},
    {.data = PLACEHOLDER_DOCUMENT,
     .size_bytes = sizeof PLACEHOLDER_DOCUMENT,
     .type = BSON_TYPE_DOCUMENT},
};

bool spill_transfer_is_placeholder(const spill_value_t *value)
{
    return spill_value_equal(value, &PLACEHOLDERS[0]) || spill_value_equal(value, &PLACEHOLDERS[1]);
}

static const spill_value_t *placeholder_of(const spill_transfer_owner_t *owner)
{
    const spill_definition_t *definition = spill_transfer_target(owner->transfer);
    return &PLACEHOLDERS[spill_schema_of(definition)->has_referenced_elements];
}

spill_code_t spill_transfer_remove(const spill_transfer_owner_t *owner, int64_t seq,
                                   spill_error_t *error)
{
    const spill_transfer_side_t *target = &owner->transfer->target;
    spill_code_t code = spill_array_remove(target->array, owner->target.value, seq, error);
    return code == SPILL_NOT_FOUND ? SPILL_OK : spill_transfer_failed(target, code, error);
}

/* ---- batches --------------------------------------------------------------------------------- */

spill_transfer_batch_t *spill_transfer_batch_new(int64_t first)
{
    spill_transfer_batch_t *batch = bson_malloc0(sizeof *batch);
    batch->first = first;
    return batch;
}

void spill_transfer_batch_free(spill_transfer_batch_t **batch)
{
    spill_buffer_release(&(*batch)->bytes);
    bson_free(*batch);
    *batch = NULL;
}

bool spill_transfer_batch_is_short(const spill_transfer_batch_t *batch, const spill_value_t *value)
{
    return batch->count == 0 || (batch->count < SPILL_TRANSFER_BATCH &&
                                 batch->bytes.size + value->size_bytes <= BATCH_BYTES);
}

void spill_transfer_batch_finish(spill_transfer_batch_t *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        batch->values[i].data = batch->bytes.data + batch->offsets[i];
}

void spill_transfer_batch_add(spill_transfer_batch_t *batch, const spill_value_t *value, bool gap)
{
    batch->offsets[batch->count] = batch->bytes.size;
    batch->values[batch->count] = *value;
    spill_buffer_append(&batch->bytes, value->data, value->size_bytes);
    batch->gaps[batch->count++] = gap;
    batch->placeholders += gap;
}

/* Empty it; it then begins at the owner's next number. */
static void clear_batch(const spill_transfer_owner_t *owner, spill_transfer_batch_t *batch)
{
    batch->first = owner->next;
    batch->skip = 0;
    batch->count = 0;
    batch->placeholders = 0;
    spill_buffer_clear(&batch->bytes);
}

/*
 * In a capped target no placeholder may push out an element. It is removed before the next batch,
 * so that the target then has the same room as the source. A batch without placeholders may have
 * any length. `gap`: the next value is a placeholder.
 */
static bool drops_none(const spill_transfer_owner_t *owner, const spill_transfer_batch_t *batch,
                       bool gap)
{
    const spill_definition_t *definition = spill_transfer_target(owner->transfer);
    return !spill_schema_of(definition)->is_capped || spill_schema_of(definition)->keeps_top_n ||
           (owner->live == 0 && batch->placeholders == batch->count) ||
           (batch->placeholders == 0 && !gap) ||
           owner->live + (int64_t)batch->count < definition->bounds.threshold;
}

static bool has_room(const spill_transfer_owner_t *owner, const spill_transfer_batch_t *batch,
                     const spill_value_t *value, bool gap)
{
    size_t bytes = batch->bytes.size + value->size_bytes;
    return batch->count == 0 ||
           (spill_transfer_batch_is_short(batch, value) && drops_none(owner, batch, gap) &&
            spill_part_fits(&owner->target, (int64_t)batch->count + 1, (int64_t)bytes));
}

/* The batch from index `at` on as one atomic append; with keep oldest, as much as fills a document.
 */
static spill_part_t make_part(const spill_transfer_owner_t *owner,
                              const spill_transfer_batch_t *batch, size_t at)
{
    const spill_definition_t *definition = spill_transfer_target(owner->transfer);
    return (spill_part_t){
        .elements = batch->values + at,
        .count = batch->count - at,
        .bytes = batch->count > 0 ? (int64_t)(batch->bytes.size - batch->offsets[at]) : 0,
        .skip = at == 0 ? batch->skip : 0,
        .fill = !spill_schema_of(definition)->appends_to_head};
}

/* ---- appends --------------------------------------------------------------------------------- */

/* An element that fits a document of the source may be too large with the target's bookkeeping. */
static spill_code_t check_size(const spill_transfer_owner_t *owner, const spill_part_t *part,
                               int64_t seq, spill_error_t *error)
{
    const spill_definition_t *definition = spill_transfer_target(owner->transfer);
    bool head = spill_schema_of(definition)->appends_to_head;
    if (part->count > 1 ||
        spill_part_bytes_alone(&owner->target, head, 1, part->bytes) <= SPILL_DOCUMENT_BYTES_MAX)
        return SPILL_OK;
    return spill_fail(error, SPILL_TOO_BIG,
                      "element %" PRId64 " has %" PRId64 " bytes: it fits no document", seq,
                      part->bytes);
}

static spill_code_t fail_misplaced(const spill_transfer_owner_t *owner, int64_t seq, int64_t got,
                                   spill_error_t *error)
{
    spill_fail(
        error, SPILL_REFUSED,
        "element %" PRId64 " was given the number %" PRId64
        ": another client appends to this owner; make sure that none does. If nothing that only "
        "this array has is needed, drop the owner here, and start again",
        seq, got);
    return spill_owner_name(&owner->target, SPILL_REFUSED, error);
}

/* Append a part that begins at a number, at most once; set *count to its appended elements. */
static spill_code_t append_at(spill_transfer_owner_t *owner, const spill_part_t *elements,
                              int64_t seq, int64_t *count, spill_error_t *error)
{
    spill_part_t part = *elements;
    char id[SPILL_OP_ID_MAX];
    spill_op_t op = {.id = id, .base = owner->base};
    op.id_bytes = (size_t)snprintf(id, sizeof id, SPILL_TRANSFER_OP_PREFIX "%" PRId64, seq);
    part.op = &op;
    *count = 0;
    spill_append_result_t result;
    SPILL_TRY(spill_layout_append(&owner->target, &part, &result, error));
    if (result.first != seq)
        return fail_misplaced(owner, seq, result.first, error);
    owner->base = result.op_base;
    owner->evicted += result.dropped - part.skip; /* skipped numbers count as dropped */
    *count = result.count;
    return SPILL_OK;
}

/* Append the next part of the batch; advance *at. */
static spill_code_t append_part(spill_transfer_owner_t *owner, const spill_transfer_batch_t *batch,
                                size_t *at, spill_error_t *error)
{
    spill_part_t part = make_part(owner, batch, *at);
    int64_t seq = batch->first + (*at > 0 ? batch->skip : 0) + (int64_t)*at;
    int64_t count;
    SPILL_TRY(check_size(owner, &part, seq, error));
    SPILL_TRY(append_at(owner, &part, seq, &count, error));
    *at += (size_t)(count - part.skip);
    return SPILL_OK;
}

static spill_code_t append_batch(spill_transfer_owner_t *owner, spill_transfer_batch_t *batch,
                                 spill_error_t *error)
{
    size_t at = 0;
    spill_code_t code;
    spill_transfer_batch_finish(batch);
    do
        code = append_part(owner, batch, &at, error);
    while (code == SPILL_OK && at < batch->count);
    return spill_transfer_failed(&owner->transfer->target, code, error);
}

/* Remove the batch's placeholders. If they are at the array's start, trim them. */
static spill_code_t remove_placeholders(const spill_transfer_owner_t *owner,
                                        const spill_transfer_batch_t *batch, spill_error_t *error)
{
    const spill_transfer_side_t *target = &owner->transfer->target;
    int64_t end = batch->first + (int64_t)batch->count;
    bool trims = !spill_schema_of(spill_transfer_target(owner->transfer))->has_windows;
    if (trims && batch->placeholders == batch->count && owner->live == 0) {
        spill_code_t code = spill_array_trim(target->array, owner->target.value, end, error);
        return spill_transfer_failed(target, code, error);
    }
    for (size_t i = 0; batch->placeholders > 0 && i < batch->count; i++)
        if (batch->gaps[i])
            SPILL_TRY(spill_transfer_remove(owner, batch->first + (int64_t)i, error));
    return SPILL_OK;
}

spill_code_t spill_transfer_flush(spill_transfer_owner_t *owner, spill_transfer_batch_t *batch,
                                  spill_error_t *error)
{
    if (batch->count == 0 && batch->skip == 0)
        return SPILL_OK;
    SPILL_TRY(
        spill_transfer_wait(owner->transfer, batch->count > 0 ? (int64_t)batch->count : 1, error));
    SPILL_TRY(append_batch(owner, batch, error));
    SPILL_TRY(remove_placeholders(owner, batch, error));
    int64_t elements = (int64_t)(batch->count - batch->placeholders);
    owner->live += elements;
    owner->next = batch->first + batch->skip + (int64_t)batch->count;
    owner->transfer->result->elements += elements;
    spill_transfer_progress(owner->transfer);
    clear_batch(owner, batch);
    return SPILL_OK;
}

spill_code_t spill_transfer_push(spill_transfer_owner_t *owner, spill_transfer_batch_t *batch,
                                 const spill_value_t *value, bool gap, spill_error_t *error)
{
    bool leading =
        !gap && owner->live == 0 && batch->placeholders > 0 && batch->placeholders == batch->count;
    if (leading || !has_room(owner, batch, value, gap))
        SPILL_TRY(spill_transfer_flush(owner, batch, error));
    spill_transfer_batch_add(batch, value, gap);
    return SPILL_OK;
}

spill_code_t spill_transfer_push_gap(spill_transfer_owner_t *owner, spill_transfer_batch_t *batch,
                                     int64_t next, int64_t end, spill_error_t *error)
{
    if (next < end && spill_transfer_keeps_top_n(owner->transfer)) {
        spill_code_t code = spill_transfer_flush(owner, batch, error);
        batch->skip = end - next;
        return code;
    }
    for (; next < end; next++)
        SPILL_TRY(spill_transfer_push(owner, batch, placeholder_of(owner), true, error));
    return SPILL_OK;
}

spill_code_t spill_transfer_skip(spill_transfer_owner_t *owner, int64_t to, spill_error_t *error)
{
    int64_t count = to - owner->next < SKIPPED_MAX ? to - owner->next : SKIPPED_MAX;
    spill_value_t *values = bson_malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = PLACEHOLDERS[0];
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && owner->next < to) {
        int64_t left = to - owner->next, appended;
        spill_part_t part = {.elements = values, .count = (size_t)(left < count ? left : count)};
        code = append_at(owner, &part, owner->next, &appended, error);
        if (code == SPILL_OK)
            owner->next += appended;
    }
    bson_free(values);
    return spill_transfer_failed(&owner->transfer->target, code, error);
}
