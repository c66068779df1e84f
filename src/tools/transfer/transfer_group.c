/* Small owners of a transfer, many at a time. */
#include "tools/transfer/transfer_group.h"

#include "bson/value.h"
#include "core/array.h"
#include "definition/schema.h"
#include "layout/layout.h"
#include "tools/transfer/transfer_parts.h"
#include "util/error.h"

#include <string.h>

/* One owner of the listing. */
typedef struct member {
    size_t index; /* in the listing */
    spill_value_t value;
    spill_owner_t source, target;
    spill_response_t source_head, target_head;
    bson_t *update; /* the other fields that the target lacks */
    spill_value_t *elements;
    bool made; /* the head was missing; this call tries to make it */
} member_t;

typedef struct members {
    member_t *all;
    size_t count;
    const spill_transfer_group_t *group;
} members_t;

/* The id of the append that begins at number 0; see append_at in writer.c. */
static const char FIRST_ID[] = SPILL_TRANSFER_OP_PREFIX "0";
static const spill_op_t FIRST_OP = {.id = FIRST_ID, .id_bytes = sizeof FIRST_ID - 1, .base = 0};

/* Is a short array one document, with nothing that depends on earlier elements? */
static bool has_plain_heads(const spill_definition_t *definition)
{
    const spill_schema_t *schema = spill_schema_of(definition);
    return schema->has_pages && !schema->has_referenced_elements && !schema->has_windows;
}

void spill_transfer_group_init(spill_transfer_group_t *group, const spill_transfer_t *transfer)
{
    *group = (spill_transfer_group_t){.transfer = transfer, .makes = true};
    group->is_possible = has_plain_heads(spill_transfer_source(transfer)) &&
                         has_plain_heads(spill_transfer_target(transfer)) &&
                         !transfer->source.store->options.partial;
}

static void release_member(member_t *member)
{
    spill_owner_release(&member->source);
    spill_owner_release(&member->target);
    spill_response_release(&member->source_head);
    spill_response_release(&member->target_head);
    bson_destroy(member->update);
    bson_free(member->elements);
    *member = (member_t){0};
}

static void release_members(members_t *members)
{
    for (size_t i = 0; i < members->count; i++)
        release_member(&members->all[i]);
    bson_free(members->all);
}

/* ---- heads ----------------------------------------------------------------------------------- */

/* Are the head's elements the whole array? */
static bool is_whole(const spill_response_t *head)
{
    const spill_state_t *state = &head->state;
    return state->present && state->pages == 0 && !state->intent && !state->closed &&
           (int64_t)head->run.count == state->live;
}

static bool copies_fields(const spill_transfer_t *transfer)
{
    return !transfer->options->building;
}

static spill_code_t read_head(const spill_transfer_t *transfer, spill_owner_t *owner,
                              bool append_follows, spill_response_t *head)
{
    spill_error_t ignored;
    owner->walked = true;
    spill_request_t read = spill_owner_whole_request(owner, SPILL_HEAD);
    read.read.want_fields = copies_fields(transfer);
    read.read.append_follows = append_follows;
    return spill_owner_call(owner, &read, head, &ignored);
}

static spill_code_t init_member(const spill_transfer_t *transfer, member_t *member)
{
    spill_error_t ignored;
    member->update = bson_new();
    SPILL_TRY(spill_owner_init(&member->source, transfer->source.array, &member->value, &ignored));
    return spill_owner_init(&member->target, transfer->target.array, &member->value, &ignored);
}

/* Read the heads of the source. Keep the owners that have no pages. */
static void read_sources(members_t *members, const spill_listing_t *owners)
{
    const spill_transfer_t *transfer = members->group->transfer;
    int64_t bytes = 0;
    members->all = bson_malloc0((owners->count + 1) * sizeof *members->all);
    for (size_t i = 0; i < owners->count && bytes < SPILL_TRANSFER_GROUP_BYTES; i++) {
        member_t *member = &members->all[members->count++];
        member->index = i;
        member->value = spill_listing_item(owners, i).owner;
        bool read = init_member(transfer, member) == SPILL_OK &&
                    read_head(transfer, &member->source, false, &member->source_head) == SPILL_OK;
        bytes += spill_run_bytes(&member->source_head.run);
        bytes += member->source_head.fields ? (int64_t)member->source_head.fields->len : 0;
        if (!read || !is_whole(&member->source_head))
            release_member(&members->all[--members->count]);
    }
}

/* Read the heads of the target; only of those that were made, if `made`. */
static void read_targets(members_t *members, bool made)
{
    const spill_transfer_side_t *target = &members->group->transfer->target;
    SPILL_SCOPED(spill_listing_release) spill_listing_t owners = SPILL_LISTING_INIT;
    for (size_t i = 0; i < members->count; i++)
        if (!made || members->all[i].made)
            spill_listing_add_owner(&owners, &members->all[i].value);
    if (target->store->ops->expect)
        target->store->ops->expect(target->store, &target->array->definition, &owners);
    for (size_t i = 0; i < members->count; i++) {
        member_t *member = &members->all[i];
        bool wanted = !made || member->made;
        spill_code_t code = SPILL_OK;
        if (wanted)
            code =
                read_head(members->group->transfer, &member->target, !made, &member->target_head);
        if (code != SPILL_OK)
            spill_response_clear(&member->target_head);
        if (code != SPILL_OK && !made)
            member->source_head.state.present = false; /* left to spill_transfer_one */
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
    *equal = !spill_transfer_fields_update(&owner, member->source_head.fields,
                                           member->target_head.fields, member->update);
    return owner.difference.count == 0 &&
           (*equal ||
            spill_array_check_update(transfer->target.array, member->update, &ignored) == SPILL_OK);
}

/* May its whole array be the first append to the target? */
static bool is_missing(const members_t *members, member_t *member)
{
    const spill_state_t *source = &member->source_head.state;
    const spill_definition_t *to = spill_transfer_target(members->group->transfer);
    int64_t bytes = spill_run_bytes(&member->source_head.run), end = spill_state_end(source);
    bool equal;
    return source->present && !member->target_head.state.present && end > 0 &&
           source->live == end && end <= to->bounds.threshold &&
           spill_part_fits(&member->target, end, bytes) && compare_fields(members, member, &equal);
}

static spill_part_t make_part(member_t *member)
{
    const spill_run_t *run = &member->source_head.run;
    member->elements = bson_malloc(run->count * sizeof *member->elements);
    for (size_t i = 0; i < run->count; i++)
        member->elements[i] = spill_run_element(run, i).value;
    bson_iter_t iter;
    bool fields = bson_iter_init_find(&iter, member->update, "$set");
    return (spill_part_t){.elements = member->elements,
                          .count = run->count,
                          .bytes = spill_run_bytes(run),
                          .op = &FIRST_OP,
                          .update = fields ? member->update : NULL};
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
        owners[count] = member->target;
        parts[count] = make_part(member);
        elements += (int64_t)parts[count++].count;
    }
    spill_code_t code = SPILL_OK;
    if (count > 0)
        code = spill_transfer_wait(transfer, elements, error);
    if (count > 0 && code == SPILL_OK)
        spill_layout_make_heads(owners, parts, count, &ignored);
    if (count > 0 && code == SPILL_OK)
        read_targets(members, true);
    bson_free(owners);
    bson_free(parts);
    return code;
}

/* ---- comparison ------------------------------------------------------------------------------ */

static bool same_elements(const member_t *member, uint64_t *hash)
{
    const spill_run_t *source = &member->source_head.run, *target = &member->target_head.run;
    *hash = 0;
    if (source->count != target->count)
        return false;
    for (size_t i = 0; i < source->count; i++) {
        spill_element_t left = spill_run_element(source, i), right = spill_run_element(target, i);
        if (left.seq != right.seq || !spill_value_equal(&left.value, &right.value))
            return false;
        spill_value_add_hash(&left.value, hash);
    }
    return true;
}

/* If the owner is equal on both sides, it is done. */
static void compare(spill_transfer_group_t *group, const members_t *members, member_t *member)
{
    spill_copy_result_t *result = group->transfer->result;
    int64_t count = (int64_t)member->source_head.run.count;
    uint64_t hash;
    bool equal = false;
    if (!is_whole(&member->source_head) || !is_whole(&member->target_head) ||
        spill_state_end(&member->source_head.state) !=
            spill_state_end(&member->target_head.state) ||
        !compare_fields(members, member, &equal) || !equal || !same_elements(member, &hash))
        return;
    bool compares = !group->transfer->options->unverified;
    group->done[member->index] = true;
    group->transferred[member->index] =
        (spill_transferred_t){.difference.definition = spill_transfer_source(group->transfer)->name,
                              .elements = count,
                              .hash = compares ? hash : 0};
    result->verified += compares ? count : 0;
    if (member->made)
        result->elements += count;
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
