/* Compare both sides of one owner, element by element. */
#include "tools/transfer/transfer_parts.h"

#include "bson/value.h"
#include "definition/schema.h"
#include "util/error.h"

typedef struct comparison {
    spill_transfer_owner_t *owner;
    spill_transfer_reader_t source;
    spill_transfer_reader_t target;
    int64_t *equal;
    /* For a target that keeps the top N: */
    bool top_n;
    spill_top_entry_t lowest;          /* of the target's elements, if it has any */
    bool misses;                       /* the target misses elements that rank below `lowest` */
    spill_top_entry_t highest_missing; /* the highest of these */
} comparison_t;

static void release_comparison(comparison_t *comparison)
{
    spill_transfer_reader_release(&comparison->source);
    spill_transfer_reader_release(&comparison->target);
}

/* ---- a target that keeps the top N ----------------------------------------------------------- */

static spill_top_entry_t rank_of(const comparison_t *comparison, const spill_element_t *element)
{
    return spill_top_entry_of(spill_transfer_target(comparison->owner->transfer), element->seq,
                              &element->value);
}

/* Read the target at one moment, and find its lowest rank. */
static spill_code_t read_top_n(comparison_t *comparison, spill_error_t *error)
{
    SPILL_TRY(spill_transfer_reader_fetch_head(&comparison->target, error));
    const spill_run_t *run = comparison->target.stretch.run;
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        spill_top_entry_t entry = rank_of(comparison, &element);
        if (i == 0 || spill_top_compare(&comparison->lowest, &entry) > 0)
            comparison->lowest = entry;
    }
    return SPILL_OK;
}

bool spill_transfer_holds_one_more(const spill_transfer_owner_t *owner, const spill_state_t *head,
                                   int64_t room, int64_t bytes)
{
    const spill_definition_t *definition = spill_transfer_target(owner->transfer);
    int64_t all = spill_state_document_bytes(definition, owner->target.value, true, head,
                                             head->live + 1, head->live_bytes + bytes);
    /* leave room for the operation that a batch records when it is appended */
    return head->live < room && all + SPILL_OP_BYTES_MAX <= definition->bounds.head_bytes_max;
}

/* Count the highest-ranked missing element as a difference if the target has room for it. */
static void check_room(const comparison_t *comparison)
{
    spill_transfer_owner_t *owner = comparison->owner;
    const spill_state_t *head = &comparison->target.stretch.head.state;
    const spill_top_entry_t *missing = &comparison->highest_missing;
    int64_t room = spill_transfer_target(owner->transfer)->bounds.threshold;
    if (comparison->misses && spill_transfer_holds_one_more(owner, head, room, missing->size_bytes))
        spill_transfer_differs(owner, missing->seq, "the target does not have this element");
}

/* ---- one number ------------------------------------------------------------------------------ */

/*
 * Report whether a trim that took effect after cap_low was read has deleted this element, which the
 * cap does not keep. It may be a lost trim of this transfer, or a trim of another transfer.
 */
static bool is_trimmed(const comparison_t *comparison, int64_t seq)
{
    const spill_transfer_owner_t *owner = comparison->owner;
    return owner->cap_begins && seq < owner->cap_from &&
           seq < comparison->target.stretch.head.state.watermark;
}

/* Count an element that only the source has. The top N may lack it if it ranks below all of them.
 */
static void count_missing(comparison_t *comparison, const spill_element_t *element)
{
    if (is_trimmed(comparison, element->seq))
        return;
    if (comparison->top_n && comparison->target.stretch.run->count > 0) {
        spill_top_entry_t entry = rank_of(comparison, element);
        if (spill_top_compare(&entry, &comparison->lowest) <= 0) {
            if (!comparison->misses || spill_top_compare(&entry, &comparison->highest_missing) > 0)
                comparison->highest_missing = entry;
            comparison->misses = true;
            return;
        }
    }
    spill_transfer_differs(comparison->owner, element->seq,
                           "the target does not have this element");
}

/*
 * Report whether a capped source has dropped the element since it was copied. A top-N source drops
 * any of its elements. Such an element looks like one that was removed.
 */
static bool was_dropped(const comparison_t *comparison, int64_t seq)
{
    const spill_schema_t *schema =
        spill_schema_of(spill_transfer_source(comparison->owner->transfer));
    const spill_state_t *head = &comparison->source.stretch.head.state;
    if (schema->keeps_top_n)
        return head->present && seq < spill_state_end(head);
    return schema->is_capped && seq < head->watermark;
}

/* Remove an element that only the target has, if the transfer has caused that; or count it. */
static spill_code_t handle_surplus(comparison_t *comparison, const spill_element_t *element,
                                   spill_error_t *error)
{
    spill_transfer_owner_t *owner = comparison->owner;
    if (spill_transfer_is_placeholder(&element->value) || was_dropped(comparison, element->seq)) {
        owner->live--;
        return spill_transfer_remove(owner, element->seq, error);
    }
    spill_transfer_differs_ahead(owner, element->seq,
                                 "the target has an element that the source does not have");
    return SPILL_OK;
}

static void compare_values(comparison_t *comparison, const spill_element_t *here,
                           const spill_element_t *there)
{
    spill_transfer_owner_t *owner = comparison->owner;
    int64_t *equal = comparison->equal;
    if (!spill_value_equal(&here->value, &there->value)) {
        spill_transfer_differs(owner, here->seq, "the target has another element of this number");
    } else if (equal) {
        ++*equal;
        spill_value_add_hash(&here->value, &owner->hash);
        if (*equal % SPILL_TRANSFER_BATCH == 0)
            spill_transfer_progress(owner->transfer);
    }
}

/* A capped target may have placeholders for numbers whose elements its cap does not keep. */
static bool is_below_cap(const spill_transfer_owner_t *owner, const spill_element_t *there)
{
    return owner->cap_begins && there->seq < owner->cap_from &&
           spill_transfer_is_placeholder(&there->value);
}

/* One step of the merge: handle the lower number of the two, or the number that both have. */
static spill_code_t compare_next(comparison_t *comparison, spill_error_t *error)
{
    spill_transfer_reader_t *source = &comparison->source, *target = &comparison->target;
    spill_element_t here = {0}, there = {0};
    SPILL_TRY(spill_transfer_reader_get(source, &here, error));
    SPILL_TRY(spill_transfer_reader_get(target, &there, error));
    if (source->ended && target->ended)
        return SPILL_OK;
    if (target->ended || (!source->ended && here.seq < there.seq)) {
        count_missing(comparison, &here);
        source->at++;
        return SPILL_OK;
    }
    bool both = !source->ended && here.seq == there.seq;
    target->at++;
    source->at += both;
    if (is_below_cap(comparison->owner, &there))
        return SPILL_OK;
    if (!both)
        return handle_surplus(comparison, &there, error);
    compare_values(comparison, &here, &there);
    return SPILL_OK;
}

/* One more than there are: a shorter answer shows the end. */
static int64_t first_limit(const spill_run_t *kept)
{
    enum { MOST = 4 * SPILL_REFERENCED_RUN };
    return kept->count < MOST ? (int64_t)kept->count + 1 : MOST;
}

spill_code_t spill_transfer_compare(spill_transfer_owner_t *owner, int64_t from, int64_t to,
                                    int64_t *equal, spill_error_t *error)
{
    SPILL_SCOPED(release_comparison)
    comparison_t comparison = {.owner = owner,
                               .source = spill_transfer_reader_of_source(owner, from, to),
                               .target = spill_transfer_reader_of_target(owner, from, to),
                               .equal = equal,
                               .top_n = spill_transfer_keeps_top_n(owner->transfer)};
    if (comparison.top_n)
        SPILL_TRY(read_top_n(&comparison, error));
    if (comparison.source.kept) /* as many elements of a known size: by one read */
        comparison.target.stretch.referenced.limit = first_limit(comparison.source.kept);
    while (!(comparison.source.ended && comparison.target.ended))
        SPILL_TRY(compare_next(&comparison, error));
    if (comparison.top_n)
        check_room(&comparison);
    return SPILL_OK;
}
