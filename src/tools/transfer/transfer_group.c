/* Small owners of a transfer, many at a time. */
#include "tools/transfer/transfer_group.h"

#include "bson/value.h"
#include "core/array.h"
#include "definition/schema.h"
#include "layout/layout.h"
#include "layout/referenced.h"
#include "tools/transfer/transfer_parts.h"
#include "tools/transfer/transfer_whole.h"
#include "util/error.h"

#include <string.h>

/* One owner of the listing. */
typedef struct member {
    size_t index; /* in the listing */
    spill_value_t value;
    spill_whole_t source, target;
    bson_t *update; /* the other fields that the target lacks */
    spill_value_t *elements;
    int64_t *seqs; /* their numbers, if these do not follow from 0 on; or NULL */
    bool made;  /* the head was missing; this call tries to make it */
    bool alone; /* left to spill_transfer_one */
} member_t;

typedef struct members {
    member_t *all;
    size_t count;
    const spill_transfer_group_t *group;
} members_t;

/* The id of the append that begins at number 0; see append_at in writer.c. */
static const char FIRST_ID[] = SPILL_TRANSFER_OP_PREFIX "0";
static const spill_op_t FIRST_OP = {.id = FIRST_ID, .id_bytes = sizeof FIRST_ID - 1, .base = 0};

void spill_transfer_group_init(spill_transfer_group_t *group, const spill_transfer_t *transfer)
{
    *group = (spill_transfer_group_t){.transfer = transfer, .makes = true};
    group->is_possible = !transfer->joins_windows && !transfer->makes_windows &&
                         !transfer->source.store->options.partial;
}

static void release_member(member_t *member)
{
    spill_whole_release(&member->source);
    spill_whole_release(&member->target);
    bson_destroy(member->update);
    bson_free(member->elements);
    bson_free(member->seqs);
    *member = (member_t){0};
}

static void release_members(members_t *members)
{
    for (size_t i = 0; i < members->count; i++)
        release_member(&members->all[i]);
    bson_free(members->all);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static bool copies_fields(const spill_transfer_t *transfer)
{
    return !transfer->options->building;
}

static spill_code_t init_member(const spill_transfer_t *transfer, member_t *member)
{
    spill_error_t ignored;
    member->update = bson_new();
    SPILL_TRY(
        spill_owner_init(&member->source.owner, transfer->source.array, &member->value, &ignored));
    return spill_owner_init(&member->target.owner, transfer->target.array, &member->value,
                            &ignored);
}

/* Read the arrays of the source. Keep the owners that are small. */
static void read_sources(members_t *members, const spill_listing_t *owners)
{
    const spill_transfer_t *transfer = members->group->transfer;
    spill_error_t ignored;
    int64_t bytes = 0;
    members->all = bson_malloc0((owners->count + 1) * sizeof *members->all);
    for (size_t i = 0; i < owners->count && bytes < SPILL_TRANSFER_GROUP_BYTES; i++) {
        member_t *member = &members->all[members->count++];
        spill_whole_t *source = &member->source;
        member->index = i;
        member->value = spill_listing_item(owners, i).owner;
        bool read =
            init_member(transfer, member) == SPILL_OK &&
            spill_whole_read(source, copies_fields(transfer), false, &ignored) == SPILL_OK;
        bytes += spill_run_bytes(spill_whole_run(source));
        bytes += source->head.fields ? (int64_t)source->head.fields->len : 0;
        if (!read || !source->complete)
            release_member(&members->all[--members->count]);
    }
}

/* Read the arrays of the target; only of those that were made, if `made`. */
static void read_targets(members_t *members, bool made)
{
    const spill_transfer_t *transfer = members->group->transfer;
    const spill_transfer_side_t *target = &transfer->target;
    spill_error_t ignored;
    SPILL_SCOPED(spill_listing_release) spill_listing_t owners = SPILL_LISTING_INIT;
    for (size_t i = 0; i < members->count; i++)
        if (!made || members->all[i].made)
            spill_listing_add_owner(&owners, &members->all[i].value);
    if (target->store->ops->expect)
        target->store->ops->expect(target->store, &target->array->definition, &owners);
    for (size_t i = 0; i < members->count; i++) {
        member_t *member = &members->all[i];
        if (made && !member->made)
            continue;
        spill_code_t code =
            spill_whole_read(&member->target, copies_fields(transfer), !made, &ignored);
        if (code != SPILL_OK)
            spill_whole_clear(&member->target);
        if (code != SPILL_OK && !made)
            member->alone = true;
    }
}

/* ---- missing heads --------------------------------------------------------------------------- */

/*
 * Make the update of the other fields. False: the fields differ in a way that this function cannot
 * repair; spill_transfer_one handles the owner.
 */
static bool compare_fields(const members_t *members, member_t *member, bool *equal)
{
    const spill_transfer_t *transfer = members->group->transfer;
    spill_transfer_owner_t owner = {.transfer = transfer};
    spill_error_t ignored;
    *equal = true;
    if (!copies_fields(transfer))
        return true;
    bson_reinit(member->update);
    *equal = !spill_transfer_fields_update(&owner, member->source.head.fields,
                                           member->target.head.fields, member->update);
    return owner.difference.count == 0 &&
           (*equal ||
            spill_array_check_update(transfer->target.array, member->update, &ignored) == SPILL_OK);
}

/*
 * May one append make a head of these elements, with the numbers up to `end`? A cap drops what it
 * does not keep.
 */
static bool fits_head(const spill_owner_t *target, const spill_run_t *run, int64_t end)
{
    enum { GAPS_MAX = 1000 };
    const spill_definition_t *definition = &target->array->definition;
    const spill_schema_t *schema = spill_schema_of(definition);
    int64_t count = (int64_t)run->count, bytes = spill_run_bytes(run);
    if (count == 0)
        return false;
    int64_t slots = end - run->entries[0].seq;
    if (schema->is_capped)
        return bytes <= definition->bounds.head_bytes_max / 2 &&
               (schema->keeps_top_n || slots - count <= GAPS_MAX);
    int64_t most = schema->has_referenced_elements ? definition->bounds.page_capacity
                                                   : definition->bounds.threshold;
    return slots <= most && spill_part_fits(target, slots, bytes);
}

/* Can the target store each element? */
static bool is_storable(const member_t *member)
{
    const spill_run_t *run = spill_whole_run(&member->source);
    spill_error_t ignored;
    if (!spill_storable_may_refuse(&member->target.owner.array->definition))
        return true;
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        if (spill_storable_check(&member->target.owner, &member->source.owner, &element,
                                 &ignored) != SPILL_OK)
            return false;
    }
    return true;
}

/* May its whole array be the first append to the target? */
static bool is_missing(const members_t *members, member_t *member)
{
    const spill_run_t *run = spill_whole_run(&member->source);
    int64_t end = spill_state_end(&member->source.head.state);
    bool windows = spill_schema_of(spill_transfer_target(members->group->transfer))->has_windows;
    bool equal;
    return !member->alone && !member->target.head.state.present &&
           fits_head(&member->target.owner, run, end) &&
           is_storable(member) && compare_fields(members, member, &equal) && (equal || !windows);
}

static spill_part_t make_part(member_t *member)
{
    const spill_run_t *run = spill_whole_run(&member->source);
    int64_t end = spill_state_end(&member->source.head.state);
    member->elements = bson_malloc(run->count * sizeof *member->elements);
    if ((int64_t)run->count < end)
        member->seqs = bson_malloc(run->count * sizeof *member->seqs);
    for (size_t i = 0; i < run->count; i++) {
        member->elements[i] = spill_run_element(run, i).value;
        if (member->seqs)
            member->seqs[i] = run->entries[i].seq;
    }
    bson_iter_t iter;
    bool fields = bson_iter_init_find(&iter, member->update, "$set");
    return (spill_part_t){.elements = member->elements,
                          .count = run->count,
                          .bytes = spill_run_bytes(run),
                          .seqs = member->seqs,
                          .end = end,
                          .op = &FIRST_OP,
                          .update = fields ? member->update : NULL};
}

/*
 * Referenced elements: write out the journals of the new heads, as the append does that makes a
 * head alone. Returns whether something may have been written.
 */
static bool write_out(const members_t *members)
{
    const spill_definition_t *to = spill_transfer_target(members->group->transfer);
    spill_error_t ignored;
    size_t count = 0;
    if (!spill_schema_of(to)->has_referenced_elements)
        return false;
    spill_owner_t *owners = bson_malloc0((members->count + 1) * sizeof *owners);
    spill_response_t *heads = bson_malloc0((members->count + 1) * sizeof *heads);
    for (size_t i = 0; i < members->count; i++) {
        const member_t *member = &members->all[i];
        if (!member->made || !member->target.complete)
            continue;
        owners[count] = member->target.owner;
        heads[count++] = member->target.head;
    }
    if (count > 0)
        spill_referenced_write_out_all(owners, heads, count, &ignored);
    bson_free(owners);
    bson_free(heads);
    return count > 0;
}

/* Make the missing heads. Whether that has succeeded shows when they are read. */
static spill_code_t make_heads(members_t *members, spill_error_t *error)
{
    const spill_transfer_t *transfer = members->group->transfer;
    spill_owner_t *owners = bson_malloc0((members->count + 1) * sizeof *owners);
    spill_part_t *parts = bson_malloc0((members->count + 1) * sizeof *parts);
    size_t count = 0;
    int64_t elements = 0;
    spill_error_t ignored;
    for (size_t i = 0; i < members->count; i++) {
        member_t *member = &members->all[i];
        if (!is_missing(members, member))
            continue;
        member->made = true;
        owners[count] = member->target.owner;
        parts[count] = make_part(member);
        elements += (int64_t)parts[count++].count;
    }
    spill_code_t code = SPILL_OK;
    if (count > 0)
        code = spill_transfer_wait(transfer, elements, error);
    if (count > 0 && code == SPILL_OK) {
        spill_layout_make_heads(owners, parts, count, &ignored);
        read_targets(members, true);
        if (write_out(members))
            read_targets(members, true);
    }
    bson_free(owners);
    bson_free(parts);
    return code;
}

/* ---- comparison ------------------------------------------------------------------------------ */

/* The lowest of the target's elements by rank; the run is not empty. */
static spill_top_entry_t lowest_of(const spill_definition_t *definition, const spill_run_t *run)
{
    spill_top_entry_t lowest = {0};
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        spill_top_entry_t entry = spill_top_entry_of(definition, element.seq, &element.value);
        if (i == 0 || spill_top_compare(&lowest, &entry) > 0)
            lowest = entry;
    }
    return lowest;
}

/*
 * Does a target with this run rightly lack an element of the source? A full cap drops what is older
 * than its elements, or ranks below all of them.
 */
static bool is_dropped(const spill_definition_t *to, const spill_run_t *target,
                       const spill_top_entry_t *lowest, const spill_element_t *element)
{
    const spill_schema_t *schema = spill_schema_of(to);
    if (!schema->is_capped || (int64_t)target->count < to->bounds.threshold)
        return false;
    if (!schema->keeps_top_n)
        return element->seq < target->entries[0].seq;
    spill_top_entry_t entry = spill_top_entry_of(to, element->seq, &element->value);
    return spill_top_compare(&entry, lowest) <= 0;
}

static bool same_elements(const member_t *member, uint64_t *hash)
{
    const spill_definition_t *to = &member->target.owner.array->definition;
    const spill_run_t *source = spill_whole_run(&member->source);
    const spill_run_t *target = spill_whole_run(&member->target);
    spill_top_entry_t lowest = {0};
    if (spill_schema_of(to)->keeps_top_n)
        lowest = lowest_of(to, target);
    size_t at = 0;
    *hash = 0;
    for (size_t i = 0; i < source->count; i++) {
        spill_element_t left = spill_run_element(source, i);
        bool there = at < target->count && target->entries[at].seq == left.seq;
        if (!there && !is_dropped(to, target, &lowest, &left))
            return false;
        if (!there)
            continue;
        spill_element_t right = spill_run_element(target, at++);
        if (!spill_value_equal(&left.value, &right.value))
            return false;
        spill_value_add_hash(&left.value, hash);
    }
    return at == target->count;
}

/* If the owner is equal on both sides, it is done. */
static void compare(spill_transfer_group_t *group, const members_t *members, member_t *member)
{
    spill_copy_result_t *result = group->transfer->result;
    int64_t has = (int64_t)spill_whole_run(&member->source)->count;
    int64_t count = (int64_t)spill_whole_run(&member->target)->count;
    uint64_t hash;
    bool equal = false;
    if (member->alone || !member->target.complete ||
        spill_state_end(&member->source.head.state) !=
            spill_state_end(&member->target.head.state) ||
        !compare_fields(members, member, &equal) || !equal || !same_elements(member, &hash))
        return;
    bool compares = !group->transfer->options->unverified;
    group->done[member->index] = true;
    group->transferred[member->index] =
        (spill_transferred_t){.difference.definition = spill_transfer_source(group->transfer)->name,
                              .elements = has,
                              .hash = compares ? hash : 0};
    result->verified += compares ? count : 0;
    result->dropped += has - count;
    if (member->made)
        result->elements += spill_transfer_keeps_top_n(group->transfer) ? has : count;
    else
        result->before += count;
}

spill_code_t spill_transfer_group_try(spill_transfer_group_t *group, const spill_listing_t *owners,
                                      spill_error_t *error)
{
    SPILL_SCOPED(release_members) members_t members = {.group = group};
    group->count = owners->count;
    memset(group->done, 0, sizeof group->done);
    if (!group->is_possible || owners->count > SPILL_TRANSFER_GROUP)
        return SPILL_OK;
    read_sources(&members, owners);
    if (members.count == 0)
        return SPILL_OK;
    read_targets(&members, false);
    if (group->makes)
        SPILL_TRY(make_heads(&members, error));
    for (size_t i = 0; i < members.count; i++)
        compare(group, &members, &members.all[i]);
    return SPILL_OK;
}
