/*
 * Appending the elements that the target does not have yet.
 *
 * A batch is one atomic append, or with keep oldest one append for each document that it fills. The
 * operation id of an append consists of its first number alone. So of all appends that begin at a
 * number, at most one is applied: of this copy, of an earlier one that was killed while a request
 * was in progress, or of a concurrent one. The base is read before the target's next number, so no
 * operation that begins at that number was applied at that time.
 */
#include "tools/copy_owner.h"

#include "core/array.h"
#include "definition/fields.h"
#include "definition/schema.h"
#include "layout/layout.h"
#include "tools/storable.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>

#define BATCH_BYTES (1024 * 1024)
#define TRIES_MAX 5        /* without progress */
#define SKIPPED_MAX 100000 /* numbers in one append; a capped target stores few of them */

/* {placeholder: MinKey}, for layouts that store only documents. */
static const uint8_t PLACEHOLDER_DOCUMENT[] = "\x12\0\0\0\xffplaceholder\0";
static const spill_value_t PLACEHOLDERS[] = {
    {.data = (const uint8_t *)"", .type = BSON_TYPE_MINKEY},
    {.data = PLACEHOLDER_DOCUMENT,
     .size_bytes = sizeof PLACEHOLDER_DOCUMENT,
     .type = BSON_TYPE_DOCUMENT},
};

bool spill_copy_is_placeholder(const spill_value_t *value)
{
    return spill_value_equal(value, &PLACEHOLDERS[0]) || spill_value_equal(value, &PLACEHOLDERS[1]);
}

spill_code_t spill_copy_remove(const spill_copy_owner_t *owner, int64_t seq, spill_error_t *error)
{
    const spill_copy_side_t *target = &owner->copy->target;
    spill_code_t code = spill_array_remove(target->array, owner->target.value, seq, error);
    return code == SPILL_NOT_FOUND ? SPILL_OK : spill_copy_failed(target, code, error);
}

/* ---- batches --------------------------------------------------------------------------------- */

/*
 * In a capped target no placeholder may push out an element. It is removed before the next batch,
 * so that the target then has the same room as the source.
 */
static bool drops_none(const spill_copy_owner_t *owner, const spill_copy_batch_t *batch)
{
    const spill_definition_t *definition = spill_array_get_definition(owner->copy->target.array);
    return !spill_schema_of(definition)->is_capped || spill_schema_of(definition)->keeps_top_n ||
           (owner->live == 0 && batch->placeholders == batch->count) ||
           owner->live + (int64_t)batch->count < definition->bounds.threshold;
}

static bool has_room(const spill_copy_owner_t *owner, const spill_copy_batch_t *batch,
                     const spill_value_t *value)
{
    size_t bytes = batch->bytes.size + value->size_bytes;
    return batch->count == 0 ||
           (spill_copy_batch_is_short(batch, value) && drops_none(owner, batch) &&
            spill_part_fits(&owner->target, (int64_t)batch->count + 1, (int64_t)bytes));
}

spill_copy_batch_t *spill_copy_batch_new(int64_t first)
{
    spill_copy_batch_t *batch = bson_malloc0(sizeof *batch);
    batch->first = first;
    return batch;
}

void spill_copy_batch_free(spill_copy_batch_t *batch)
{
    spill_buffer_release(&batch->bytes);
    bson_free(batch);
}

bool spill_copy_batch_is_short(const spill_copy_batch_t *batch, const spill_value_t *value)
{
    return batch->count == 0 || (batch->count < SPILL_COPY_BATCH &&
                                 batch->bytes.size + value->size_bytes <= BATCH_BYTES);
}

void spill_copy_batch_finish(spill_copy_batch_t *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        batch->values[i].data = batch->bytes.data + batch->offsets[i];
}

void spill_copy_batch_add(spill_copy_batch_t *batch, const spill_value_t *value, bool gap)
{
    batch->offsets[batch->count] = batch->bytes.size;
    batch->values[batch->count] = *value;
    spill_buffer_append(&batch->bytes, value->data, value->size_bytes);
    batch->gaps[batch->count++] = gap;
    batch->placeholders += gap;
}

/* The batch from index `at` on as one atomic append; with keep oldest, as much as fills a document.
 */
static spill_part_t make_part(const spill_copy_owner_t *owner, const spill_copy_batch_t *batch,
                              size_t at)
{
    const spill_definition_t *definition = spill_array_get_definition(owner->copy->target.array);
    return (spill_part_t){
        .elements = batch->values + at,
        .count = batch->count - at,
        .bytes = batch->count > 0 ? (int64_t)(batch->bytes.size - batch->offsets[at]) : 0,
        .skip = at == 0 ? batch->skip : 0,
        .fill = !spill_schema_of(definition)->appends_to_head};
}

/* An element that fits a document of the source may be too large with the target's bookkeeping. */
static spill_code_t check_size(const spill_copy_owner_t *owner, const spill_part_t *part,
                               int64_t seq, spill_error_t *error)
{
    const spill_definition_t *definition = spill_array_get_definition(owner->copy->target.array);
    bool head = spill_schema_of(definition)->appends_to_head;
    if (part->count > 1 ||
        spill_part_bytes_alone(&owner->target, head, 1, part->bytes) <= SPILL_DOCUMENT_BYTES_MAX)
        return SPILL_OK;
    return spill_fail(error, SPILL_TOO_BIG,
                      "element %" PRId64 " has %" PRId64 " bytes: it fits no document", seq,
                      part->bytes);
}

static spill_code_t fail_misplaced(const spill_copy_owner_t *owner, int64_t seq, int64_t got,
                                   spill_error_t *error)
{
    spill_fail(
        error, SPILL_REFUSED,
        "element %" PRId64 " of the source was given the number %" PRId64
        ": another client appends to this owner; make sure that none does. If nothing that only "
        "the target has is needed, drop the owner there, and copy again",
        seq, got);
    return spill_owner_name(&owner->target, SPILL_REFUSED, error);
}

/* Append a part that begins at a number, at most once; set *count to its appended elements. */
static spill_code_t append_at(spill_copy_owner_t *owner, const spill_part_t *elements, int64_t seq,
                              int64_t *count, spill_error_t *error)
{
    spill_part_t part = *elements;
    char id[SPILL_OP_ID_MAX];
    spill_op_t op = {.id = id, .base = owner->base};
    op.id_bytes = (size_t)snprintf(id, sizeof id, "spillway-copy:%" PRId64, seq);
    part.op = &op;
    *count = 0;
    spill_append_result_t result;
    spill_code_t code = spill_layout_append(&owner->target, &part, &result, error);
    if (code == SPILL_OK && result.first != seq)
        code = fail_misplaced(owner, seq, result.first, error);
    if (code == SPILL_OK) {
        owner->base = result.op_base;
        *count = result.count;
    }
    return spill_copy_failed(&owner->copy->target, code, error);
}

/* Append the next part of the batch; advance *at. */
static spill_code_t append_part(spill_copy_owner_t *owner, const spill_copy_batch_t *batch,
                                size_t *at, spill_error_t *error)
{
    spill_part_t part = make_part(owner, batch, *at);
    int64_t seq = batch->first + (*at > 0 ? batch->skip : 0) + (int64_t)*at;
    int64_t count = 0;
    spill_code_t code =
        spill_copy_failed(&owner->copy->target, check_size(owner, &part, seq, error), error);
    if (code == SPILL_OK)
        code = append_at(owner, &part, seq, &count, error);
    if (code == SPILL_OK)
        *at += (size_t)(count - part.skip);
    return code;
}

spill_code_t spill_copy_skip(spill_copy_owner_t *owner, int64_t to, spill_error_t *error)
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
    return code;
}

static spill_code_t append_batch(spill_copy_owner_t *owner, spill_copy_batch_t *batch,
                                 spill_error_t *error)
{
    spill_copy_batch_finish(batch);
    spill_code_t code;
    size_t at = 0;
    do
        code = append_part(owner, batch, &at, error);
    while (code == SPILL_OK && at < batch->count);
    return code;
}

/* Remove the batch's placeholders. If they are at the array's start, trim them. */
static spill_code_t remove_placeholders(const spill_copy_owner_t *owner,
                                        const spill_copy_batch_t *batch, spill_error_t *error)
{
    const spill_copy_side_t *target = &owner->copy->target;
    int64_t end = batch->first + (int64_t)batch->count;
    bool trims = !spill_schema_of(spill_array_get_definition(target->array))->has_windows;
    if (trims && batch->placeholders == batch->count && owner->live == 0) {
        spill_code_t code = spill_array_trim(target->array, owner->target.value, end, error);
        return spill_copy_failed(target, code, error);
    }
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; code == SPILL_OK && batch->placeholders > 0 && i < batch->count; i++)
        if (batch->gaps[i])
            code = spill_copy_remove(owner, batch->first + (int64_t)i, error);
    return code;
}

spill_code_t spill_copy_flush(spill_copy_owner_t *owner, spill_copy_batch_t *batch,
                              spill_error_t *error)
{
    if (batch->count == 0 && batch->skip == 0)
        return SPILL_OK;
    const spill_copy_options_t *options = owner->copy->options;
    spill_code_t code = SPILL_OK;
    if (options->turn)
        code = options->turn(options->context, batch->count > 0 ? (int64_t)batch->count : 1, error);
    if (code == SPILL_OK)
        code = append_batch(owner, batch, error);
    if (code == SPILL_OK)
        code = remove_placeholders(owner, batch, error);
    if (code != SPILL_OK)
        return code;
    int64_t elements = (int64_t)(batch->count - batch->placeholders);
    owner->live += elements;
    owner->next = batch->first + batch->skip + (int64_t)batch->count;
    owner->copy->result->elements += elements;
    spill_copy_progress(owner->copy);
    batch->first = owner->next;
    batch->skip = 0;
    batch->count = 0;
    batch->placeholders = 0;
    spill_buffer_clear(&batch->bytes);
    return SPILL_OK;
}

static const spill_value_t *placeholder_of(const spill_copy_side_t *target)
{
    return &PLACEHOLDERS[spill_schema_of(spill_array_get_definition(target->array))
                             ->has_referenced_elements];
}

/* Check that the target can store the element. A top-N target also bounds its bytes. */
static spill_code_t check_element(const spill_copy_owner_t *owner, const spill_element_t *element,
                                  spill_error_t *error)
{
    const spill_definition_t *definition = spill_array_get_definition(owner->copy->target.array);
    spill_code_t code = spill_storable_check(definition, &owner->source, element, error);
    if (code != SPILL_OK || !spill_schema_of(definition)->keeps_top_n)
        return code;
    code = spill_array_check_top_n(&owner->target, &element->value, error);
    if (code == SPILL_OK)
        return SPILL_OK;
    spill_fail_prefix(error, code, "element %" PRId64, element->seq);
    return spill_owner_name(&owner->source, code, error);
}

spill_code_t spill_copy_push(spill_copy_owner_t *owner, spill_copy_batch_t *batch,
                             const spill_value_t *value, bool gap, spill_error_t *error)
{
    bool leading =
        !gap && owner->live == 0 && batch->placeholders > 0 && batch->placeholders == batch->count;
    spill_code_t code = SPILL_OK;
    if (leading || !has_room(owner, batch, value))
        code = spill_copy_flush(owner, batch, error);
    if (code == SPILL_OK)
        spill_copy_batch_add(batch, value, gap);
    return code;
}

/* ---- one owner ------------------------------------------------------------------------------- */

/* Append placeholders, or skip the numbers, up to `end`: the source has no elements there. */
static spill_code_t fill_gap(spill_copy_owner_t *owner, spill_copy_batch_t *batch, int64_t next,
                             int64_t end, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    if (next < end && spill_copy_keeps_top_n(owner->copy)) {
        code = spill_copy_flush(owner, batch, error);
        batch->skip = end - next;
        return code;
    }
    for (; code == SPILL_OK && next < end; next++)
        code = spill_copy_push(owner, batch, placeholder_of(&owner->copy->target), true, error);
    return code;
}

static spill_code_t append_from(spill_copy_owner_t *owner, spill_copy_cursor_t *cursor,
                                spill_copy_batch_t *batch, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    int64_t next = owner->next;
    while (code == SPILL_OK && next < owner->end) {
        spill_element_t element = {0};
        code = spill_copy_cursor_get(cursor, &element, error);
        int64_t end = cursor->ended ? owner->end : element.seq;
        if (code == SPILL_OK)
            code = fill_gap(owner, batch, next, end, error);
        next = next < end ? end : next;
        if (code == SPILL_OK && !cursor->ended)
            code = check_element(owner, &element, error);
        if (code == SPILL_OK && !cursor->ended) {
            code = spill_copy_push(owner, batch, &element.value, false, error);
            cursor->at++;
            next++;
        }
    }
    return code == SPILL_OK ? spill_copy_flush(owner, batch, error) : code;
}

/*
 * Refuse an owner with an element that the target cannot store, before any element is appended.
 * Cost: reads all missing elements, if the target may refuse any.
 */
static spill_code_t check_missing(const spill_copy_owner_t *owner, spill_error_t *error)
{
    const spill_definition_t *from = spill_array_get_definition(owner->copy->source.array);
    const spill_definition_t *to = spill_array_get_definition(owner->copy->target.array);
    spill_copy_cursor_t cursor;
    spill_code_t code = SPILL_OK;
    if (!spill_storable_differs(from, to))
        return SPILL_OK;
    spill_copy_cursor_source(&cursor, owner, owner->next, owner->end);
    while (code == SPILL_OK && !cursor.ended) {
        spill_element_t element = {0};
        code = spill_copy_cursor_get(&cursor, &element, error);
        if (code == SPILL_OK && !cursor.ended) {
            code = check_element(owner, &element, error);
            cursor.at++;
        }
    }
    spill_copy_cursor_release(&cursor);
    return code;
}

static spill_code_t append_missing(spill_copy_owner_t *owner, spill_error_t *error)
{
    spill_copy_cursor_t cursor;
    spill_code_t code = check_missing(owner, error);
    if (code != SPILL_OK)
        return code;
    spill_copy_batch_t *batch = spill_copy_batch_new(owner->next);
    spill_copy_cursor_source(&cursor, owner, owner->next, owner->end);
    code = append_from(owner, &cursor, batch, error);
    spill_copy_cursor_release(&cursor);
    spill_copy_batch_free(batch);
    return code;
}

spill_code_t spill_copy_read_source(spill_copy_owner_t *owner, spill_error_t *error)
{
    const spill_copy_side_t *source = &owner->copy->source;
    spill_count_t here = {0};
    spill_code_t code;
    if (owner->copy->joins_windows) {
        code = spill_copy_join_count(source, &owner->source, &here.count, error);
        here.next = here.count;
    } else {
        code = spill_copy_failed(
            source, spill_array_count(source->array, owner->source.value, &here, error), error);
    }
    owner->begin = 0;
    owner->end = here.next;
    owner->has = here.count;
    return code;
}

spill_code_t spill_copy_read_target(spill_copy_owner_t *owner, spill_error_t *error)
{
    const spill_copy_side_t *target = &owner->copy->target;
    const spill_value_t *value = owner->target.value;
    spill_count_t there = {0};
    spill_code_t code = spill_array_op_base(target->array, value, &owner->base, error);
    if (code == SPILL_OK)
        code = spill_array_count(target->array, value, &there, error);
    owner->next = there.next;
    owner->live = there.count;
    return spill_copy_failed(target, code, error);
}

/* Read the base, then the target, then the source, which is therefore never behind the target. */
static spill_code_t read_both(spill_copy_owner_t *owner, spill_error_t *error)
{
    spill_code_t code = spill_copy_read_target(owner, error);
    if (code == SPILL_OK)
        code = spill_copy_read_source(owner, error);
    if (code == SPILL_OK && owner->copy->drops_windows && owner->next > owner->end) {
        owner->begin = owner->next - owner->end;
        owner->end = owner->next;
    }
    return code == SPILL_OK && spill_copy_is_capped(owner->copy) ? spill_copy_cap_read(owner, error)
                                                                 : code;
}

/* Compare the end of the target, from which the copy continues, and count differences. */
static spill_code_t check_tail(spill_copy_owner_t *owner, spill_error_t *error)
{
    int64_t from = owner->next < SPILL_COPY_BATCH ? 0 : owner->next - SPILL_COPY_BATCH;
    from = from < owner->begin ? owner->begin : from;
    if (spill_copy_is_capped(owner->copy) && from < owner->cap_low)
        from = owner->cap_low;
    return spill_copy_compare(owner, from, owner->next, NULL, error);
}

/* Try once to copy what is missing now. */
static spill_code_t try_elements(spill_copy_owner_t *owner, spill_error_t *error)
{
    spill_code_t code = read_both(owner, error);
    bool missing = owner->next < owner->end;
    bool capped = spill_copy_is_capped(owner->copy);
    owner->cap_begins = capped;
    if (code == SPILL_OK && (missing || owner->copy->options->unverified))
        code = check_tail(owner, error);
    owner->cap_begins = false;
    bool same = code == SPILL_OK && owner->difference.count == 0;
    if (same && missing && capped)
        code = spill_copy_cap_begin(owner, error);
    return same && missing && code == SPILL_OK ? append_missing(owner, error) : code;
}

spill_code_t spill_copy_elements(spill_copy_owner_t *owner, spill_error_t *error)
{
    spill_code_t code;
    int64_t next;
    int tries = 0;
    do {
        next = owner->next;
        code = try_elements(owner, error);
        tries = owner->next > next ? 0 : tries + 1;
    } while ((code == SPILL_UNKNOWN || code == SPILL_CONFLICT) && tries < TRIES_MAX);
    return code;
}
