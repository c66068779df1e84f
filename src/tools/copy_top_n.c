/*
 * A capped top-N target: it keeps the highest-ranked elements of the source, as many as its cap and
 * its bytes allow. All elements are appended in their order, and the store drops the others.
 * Numbers without an element in the source are skipped in the same step. So such a target needs no
 * placeholders, and its cost depends only on the source's elements.
 */
#include "tools/copy_owner.h"

#include "definition/fields.h"
#include "definition/schema.h"

bool spill_copy_keeps_top_n(const spill_copy_t *copy)
{
    return spill_schema_of(spill_array_get_definition(copy->target.array))->keeps_top_n;
}

/* One comparison with the target's elements, which were read at one moment. */
typedef struct comparison {
    spill_copy_owner_t *owner;
    spill_response_t head;
    spill_top_entry_t lowest;          /* of the target's elements, if it has any */
    bool misses;                       /* the target misses elements that rank below `lowest` */
    spill_top_entry_t highest_missing; /* the highest of these */
} comparison_t;

static const spill_definition_t *target_definition(const spill_copy_owner_t *owner)
{
    return spill_array_get_definition(owner->copy->target.array);
}

static spill_code_t read_target(comparison_t *comparison, spill_error_t *error)
{
    const spill_copy_owner_t *owner = comparison->owner;
    spill_request_t read = spill_owner_request(&owner->target, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    spill_code_t code = spill_owner_call(&owner->target, &read, &comparison->head, error);
    if (code != SPILL_OK)
        return spill_copy_failed(&owner->copy->target, code, error);
    const spill_run_t *run = &comparison->head.run;
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        spill_top_entry_t entry =
            spill_top_entry_of(target_definition(owner), element.seq, &element.value);
        if (i == 0 || spill_top_compare(&comparison->lowest, &entry) > 0)
            comparison->lowest = entry;
    }
    return SPILL_OK;
}

/* Count a missing element as a difference, unless it ranks below all elements of the target. */
static void count_missing(comparison_t *comparison, const spill_element_t *element)
{
    spill_top_entry_t entry =
        spill_top_entry_of(target_definition(comparison->owner), element->seq, &element->value);
    bool empty = comparison->head.run.count == 0;
    if (empty || spill_top_compare(&entry, &comparison->lowest) > 0) {
        spill_copy_differs(comparison->owner, element->seq,
                           "the target does not have this element");
    } else if (!comparison->misses || spill_top_compare(&entry, &comparison->highest_missing) > 0) {
        comparison->highest_missing = entry;
        comparison->misses = true;
    }
}

/* One step of the merge: handle the lower number of the two, or the number that both have. */
static spill_code_t compare_next(comparison_t *comparison, spill_copy_cursor_t *source, size_t *at,
                                 int64_t to, int64_t *equal, spill_error_t *error)
{
    spill_copy_owner_t *owner = comparison->owner;
    const spill_run_t *run = &comparison->head.run;
    spill_element_t here = {0}, there = {0};
    spill_code_t code = spill_copy_cursor_get(source, &here, error);
    if (code != SPILL_OK)
        return code;
    bool has = *at < run->count && run->entries[*at].seq < to;
    if (has)
        there = spill_run_element(run, *at);
    if (!has || (!source->ended && here.seq < there.seq)) {
        if (!source->ended)
            count_missing(comparison, &here);
        source->at++;
        return SPILL_OK;
    }
    ++*at;
    if (source->ended || there.seq < here.seq)
        return spill_copy_surplus(owner, source, &there, error);
    source->at++;
    if (spill_value_equal(&here.value, &there.value))
        spill_copy_count_equal(owner, &here.value, equal);
    else
        spill_copy_differs(owner, here.seq, "the target has another element of this number");
    return SPILL_OK;
}

spill_code_t spill_copy_compare_top_n(spill_copy_owner_t *owner, int64_t from, int64_t to,
                                      int64_t *equal, spill_error_t *error)
{
    comparison_t comparison = {.owner = owner, .head = SPILL_RESPONSE_INIT};
    spill_copy_cursor_t source;
    spill_code_t code = read_target(&comparison, error);
    const spill_run_t *run = &comparison.head.run;
    size_t at = 0;
    spill_copy_cursor_source(&source, owner, from, to);
    while (at < run->count && run->entries[at].seq < from)
        at++;
    while (code == SPILL_OK && !(source.ended && (at == run->count || run->entries[at].seq >= to)))
        code = compare_next(&comparison, &source, &at, to, equal, error);
    int64_t room = target_definition(owner)->bounds.threshold;
    if (code == SPILL_OK && comparison.misses &&
        spill_copy_holds_one_more(owner, &comparison.head.state, room,
                                  comparison.highest_missing.size_bytes))
        spill_copy_differs(owner, comparison.highest_missing.seq,
                           "the target does not have this element");
    spill_copy_cursor_release(&source);
    spill_response_release(&comparison.head);
    return code;
}

spill_code_t spill_copy_count_top_n(spill_copy_owner_t *owner, spill_error_t *error)
{
    spill_count_t count;
    const spill_copy_side_t *target = &owner->copy->target;
    spill_code_t code = spill_array_count(target->array, owner->target.value, &count, error);
    if (code != SPILL_OK)
        return spill_copy_failed(target, code, error);
    owner->live = count.count;
    if (owner->has > owner->live)
        owner->copy->result->dropped += owner->has - owner->live;
    return SPILL_OK;
}
