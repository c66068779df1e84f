/* Comparing an owner's arrays, element by element, and the cursors that do it. */
#include "bson/value_hash.h"
#include "definition/fields.h"
#include "definition/schema.h"
#include "tools/copy_owner.h"

void spill_copy_cursor_source(spill_copy_cursor_t *cursor, const spill_copy_owner_t *owner,
                              int64_t from, int64_t to)
{
    *cursor = (spill_copy_cursor_t){.side = &owner->copy->source,
                                    .owner = &owner->source,
                                    .to = to,
                                    .stretch.next = from,
                                    .ended = from >= to,
                                    .joins = owner->copy->joins_windows,
                                    .first = owner->begin};
}

void spill_copy_cursor_target(spill_copy_cursor_t *cursor, const spill_copy_owner_t *owner,
                              int64_t from, int64_t to)
{
    *cursor = (spill_copy_cursor_t){.side = &owner->copy->target,
                                    .owner = &owner->target,
                                    .to = to,
                                    .stretch.next = from,
                                    .ended = from >= to};
}

void spill_copy_cursor_release(spill_copy_cursor_t *cursor)
{
    spill_stretch_release(&cursor->stretch);
    spill_bucket_slice_free(cursor->slice);
}

spill_code_t spill_copy_cursor_get(spill_copy_cursor_t *cursor, spill_element_t *element,
                                   spill_error_t *error)
{
    spill_stretch_t *stretch = &cursor->stretch;
    if (cursor->joins)
        return spill_copy_cursor_join(cursor, element, error);
    while (!cursor->ended && (!stretch->run || cursor->at == stretch->run->count)) {
        cursor->ended = stretch->last || stretch->next >= cursor->to;
        if (cursor->ended)
            break;
        spill_code_t code = spill_stretch_read(cursor->owner, stretch, error);
        if (code != SPILL_OK)
            return spill_copy_failed(cursor->side, code, error);
        cursor->at = 0;
    }
    if (!cursor->ended) {
        *element = spill_run_element(stretch->run, cursor->at);
        cursor->ended = element->seq >= cursor->to;
    }
    return SPILL_OK;
}

/*
 * Report whether a capped source has dropped the element since it was copied. A top-N source drops
 * elements of any number, which then look as if they had been removed.
 */
static bool fell_off(const spill_copy_owner_t *owner, const spill_copy_cursor_t *source,
                     int64_t seq)
{
    const spill_definition_t *definition = spill_array_get_definition(owner->copy->source.array);
    const spill_state_t *head = &source->stretch.head.state;
    if (spill_schema_of(definition)->keeps_top_n)
        return head->present && seq < spill_state_end(head);
    return spill_schema_of(definition)->is_capped && seq < head->watermark;
}

spill_code_t spill_copy_surplus(spill_copy_owner_t *owner, const spill_copy_cursor_t *source,
                                const spill_element_t *element, spill_error_t *error)
{
    if (spill_copy_is_placeholder(&element->value) || fell_off(owner, source, element->seq)) {
        owner->live--;
        return spill_copy_remove(owner, element->seq, error);
    }
    spill_copy_differs_ahead(owner, element->seq,
                             "the target has an element that the source does not have");
    return SPILL_OK;
}

void spill_copy_count_equal(spill_copy_owner_t *owner, const spill_value_t *value, int64_t *equal)
{
    if (!equal)
        return;
    ++*equal;
    spill_value_add_hash(value, &owner->hash);
    if (*equal % SPILL_COPY_BATCH == 0)
        spill_copy_progress(owner->copy);
}

/* One step of the merge: handle the lower number of the two, or the number that both have. */
static spill_code_t compare_next(spill_copy_owner_t *owner, spill_copy_cursor_t *source,
                                 spill_copy_cursor_t *target, int64_t *equal, spill_error_t *error)
{
    spill_element_t here = {0}, there = {0};
    spill_code_t code = spill_copy_cursor_get(source, &here, error);
    if (code == SPILL_OK)
        code = spill_copy_cursor_get(target, &there, error);
    if (code != SPILL_OK || (source->ended && target->ended))
        return code;
    if (target->ended || (!source->ended && here.seq < there.seq)) {
        spill_copy_differs(owner, here.seq, "the target does not have this element");
        source->at++;
        return SPILL_OK;
    }
    target->at++;
    if (owner->cap_begins && there.seq < owner->cap_from &&
        spill_copy_is_placeholder(&there.value)) {
        source->at += !source->ended && here.seq == there.seq;
        return SPILL_OK;
    }
    if (source->ended || there.seq < here.seq)
        return spill_copy_surplus(owner, source, &there, error);
    source->at++;
    if (!spill_value_equal(&here.value, &there.value)) {
        spill_copy_differs(owner, here.seq, "the target has another element of this number");
    } else {
        spill_copy_count_equal(owner, &here.value, equal);
    }
    return SPILL_OK;
}

spill_code_t spill_copy_compare(spill_copy_owner_t *owner, int64_t from, int64_t to, int64_t *equal,
                                spill_error_t *error)
{
    if (spill_copy_keeps_top_n(owner->copy))
        return spill_copy_compare_top_n(owner, from, to, equal, error);
    spill_copy_cursor_t source, target;
    spill_copy_cursor_source(&source, owner, from, to);
    spill_copy_cursor_target(&target, owner, from, to);
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && !(source.ended && target.ended))
        code = compare_next(owner, &source, &target, equal, error);
    spill_copy_cursor_release(&source);
    spill_copy_cursor_release(&target);
    return code;
}
