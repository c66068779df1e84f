/* Small owners of a transfer, many at a time. */
#include "tools/transfer/transfer_group.h"
#include "layout/append.h"

#include "bson/value.h"
#include "core/array.h"
#include "definition/schema.h"
#include "layout/layout.h"
#include "layout/referenced.h"
#include "tools/transfer/transfer_members.h"
#include "tools/transfer/transfer_parts.h"
#include "util/error.h"

#include <string.h>

/* The id of the append that begins at number 0; see append_at in writer.c. */
static const char FIRST_ID[] = SPILL_TRANSFER_OP_PREFIX "0";
static const spill_op_t FIRST_OP = {.id = FIRST_ID, .id_bytes = sizeof FIRST_ID - 1, .base = 0};

void spill_transfer_group_init(spill_transfer_group_t *group, const spill_transfer_t *transfer)
{
    *group =
        (spill_transfer_group_t){.transfer = transfer, .makes = true, .last = BSON_INITIALIZER};
    group->is_possible = !transfer->drops_windows && !transfer->source.store->options.partial;
}

void spill_transfer_group_release(spill_transfer_group_t *group)
{
    if (group->transfer)
        bson_destroy(&group->last);
    group->transfer = NULL;
}

/* ---- the target ------------------------------------------------------------------------------ */

/* Read the arrays of the target; with `made`, only the ones that were made. */
static void read_targets(const spill_group_members_t *members, bool made)
{
    const spill_transfer_t *transfer = members->transfer;
    const spill_transfer_side_t *target = &transfer->target;
    spill_error_t ignored;
    SPILL_SCOPED(spill_listing_release) spill_listing_t owners = SPILL_LISTING_INIT;
    for (size_t i = 0; i < members->count; i++)
        for (size_t k = 0; !members->all[i].alone && k < members->all[i].piece_count; k++)
            if (!made || members->all[i].pieces[k].made)
                spill_listing_add_owner(&owners, &members->all[i].pieces[k].name);
    if (target->store->ops->expect)
        target->store->ops->expect(target->store, &target->array->definition, &owners);
    for (size_t i = 0; i < members->count; i++) {
        spill_group_member_t *member = &members->all[i];
        for (size_t k = 0; !member->alone && k < member->piece_count; k++) {
            spill_piece_t *piece = &member->pieces[k];
            if (made && !piece->made)
                continue;
            spill_code_t code = spill_whole_read(
                &piece->there, spill_transfer_copies_fields(transfer), !made, &ignored);
            if (code != SPILL_OK)
                spill_whole_clear(&piece->there);
            if (code != SPILL_OK && !made)
                member->alone = true;
        }
    }
}

/* ---- missing heads --------------------------------------------------------------------------- */

/*
 * Make the update of the other fields. False: the fields differ in a way that this function cannot
 * repair; spill_transfer_one handles the owner.
 */
static bool compare_fields(const spill_group_members_t *members, spill_group_member_t *member,
                           bool *equal)
{
    const spill_transfer_t *transfer = members->transfer;
    spill_transfer_owner_t owner = {.transfer = transfer};
    spill_error_t ignored;
    *equal = true;
    if (!spill_transfer_copies_fields(transfer))
        return true;
    bson_reinit(member->update);
    *equal = !spill_transfer_fields_update(&owner, member->sources[0].head.fields,
                                           member->pieces[0].there.head.fields, member->update);
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
    /* Without an element of the last number, a cap gets one fewer (transfer_capped.c). */
    bool ends = run->entries[count - 1].seq == end - 1 || count < definition->bounds.threshold;
    if (schema->is_capped)
        return bytes <= definition->bounds.head_bytes_max / 2 &&
               (schema->keeps_top_n || (ends && slots - count <= GAPS_MAX));
    int64_t most = schema->has_referenced_elements ? definition->bounds.page_capacity
                                                   : definition->bounds.threshold;
    return slots <= most && spill_part_fits(target, slots, bytes);
}

/* Can the target store the elements with numbers from `from` on? *checked: how many these are. */
static bool is_storable(const spill_transfer_t *transfer, const spill_group_member_t *member,
                        int64_t from, int64_t *checked)
{
    const spill_run_t *run = spill_member_run(member);
    const spill_owner_t source = {.array = transfer->source.array, .value = &member->value};
    const spill_owner_t target = {.array = transfer->target.array, .value = &member->value};
    spill_error_t ignored;
    *checked = 0;
    if (!spill_storable_may_refuse(&transfer->target.array->definition))
        return true;
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        if (element.seq < from)
            continue;
        if (spill_storable_check(&target, &source, &element, &ignored) != SPILL_OK)
            return false;
        ++*checked;
    }
    return true;
}

/* May the elements of the piece be the first append to the target? */
static bool is_missing(const spill_group_members_t *members, spill_group_member_t *member,
                       spill_piece_t *piece)
{
    bool windows = spill_schema_of(spill_transfer_target(members->transfer))->has_windows;
    int64_t checked;
    bool equal;
    return !piece->there.head.state.present &&
           fits_head(&piece->there.owner, spill_piece_run(member, piece),
                     spill_piece_end(member, piece)) &&
           is_storable(members->transfer, member, 0, &checked) &&
           compare_fields(members, member, &equal) && (equal || !windows);
}

static spill_part_t make_part(const spill_group_member_t *member, spill_piece_t *piece)
{
    const spill_run_t *run = spill_piece_run(member, piece);
    int64_t end = spill_piece_end(member, piece);
    piece->elements = bson_malloc(run->count * sizeof *piece->elements);
    if ((int64_t)run->count < end)
        piece->seqs = bson_malloc(run->count * sizeof *piece->seqs);
    for (size_t i = 0; i < run->count; i++) {
        piece->elements[i] = spill_run_element(run, i).value;
        if (piece->seqs)
            piece->seqs[i] = run->entries[i].seq;
    }
    bson_iter_t iter;
    bool fields = bson_iter_init_find(&iter, member->update, "$set");
    return (spill_part_t){.elements = piece->elements,
                          .count = run->count,
                          .bytes = spill_run_bytes(run),
                          .seqs = piece->seqs,
                          .end = end,
                          .op = &FIRST_OP,
                          .update = fields ? member->update : NULL};
}

/* The requests of a group. */
typedef struct making {
    spill_owner_t *owners;
    spill_part_t *parts;
    spill_response_t *heads;
    size_t count;
    int64_t elements;
} making_t;

static void making_init(making_t *making, const spill_group_members_t *members)
{
    size_t all = 1;
    for (size_t i = 0; i < members->count; i++)
        all += members->all[i].piece_count;
    *making = (making_t){.owners = bson_malloc0(all * sizeof(spill_owner_t)),
                         .parts = bson_malloc0(all * sizeof(spill_part_t)),
                         .heads = bson_malloc0(all * sizeof(spill_response_t))};
}

static void making_release(making_t *making)
{
    bson_free(making->owners);
    bson_free(making->parts);
    bson_free(making->heads);
}

/*
 * Referenced elements: write out the journals of the new heads, as the append does that makes a
 * head alone. Returns whether something may have been written.
 */
static bool write_out(const spill_group_members_t *members)
{
    SPILL_SCOPED(making_release) making_t making = {0};
    spill_error_t ignored;
    if (!spill_schema_of(spill_transfer_target(members->transfer))->has_referenced_elements)
        return false;
    making_init(&making, members);
    for (size_t i = 0; i < members->count; i++) {
        const spill_group_member_t *member = &members->all[i];
        if (member->alone || !member->pieces[0].made || !member->pieces[0].there.complete)
            continue;
        making.owners[making.count] = member->pieces[0].there.owner;
        making.heads[making.count++] = member->pieces[0].there.head;
    }
    if (making.count > 0)
        spill_referenced_write_out_all(making.owners, making.heads, making.count, &ignored);
    return making.count > 0;
}

static void plan_heads(const spill_group_members_t *members, making_t *making)
{
    for (size_t i = 0; i < members->count; i++) {
        spill_group_member_t *member = &members->all[i];
        for (size_t k = 0; !member->alone && k < member->piece_count; k++) {
            spill_piece_t *piece = &member->pieces[k];
            if (!is_missing(members, member, piece))
                continue;
            piece->made = true;
            making->owners[making->count] = piece->there.owner;
            making->parts[making->count] = make_part(member, piece);
            making->elements += (int64_t)making->parts[making->count++].count;
        }
    }
}

/* Make the missing heads. Whether that has succeeded shows when they are read. */
static spill_code_t make_heads(const spill_group_members_t *members, spill_error_t *error)
{
    SPILL_SCOPED(making_release) making_t making = {0};
    spill_error_t ignored;
    making_init(&making, members);
    plan_heads(members, &making);
    if (making.count == 0)
        return SPILL_OK;
    SPILL_TRY(spill_transfer_wait(members->transfer, making.elements, error));
    spill_layout_make_heads(making.owners, making.parts, making.count, &ignored);
    read_targets(members, true);
    if (write_out(members))
        read_targets(members, true);
    return SPILL_OK;
}

/* ---- windows that only the target has -------------------------------------------------------- */

enum { WINDOWS_LISTED = 64 * SPILL_TRANSFER_GROUP };

static bool has_piece(const spill_group_member_t *member, const spill_value_t *name)
{
    for (size_t i = 0; i < member->piece_count; i++)
        if (spill_value_equal(&member->pieces[i].name, name))
            return true;
    return false;
}

/* List the windows of the members in the target. False: there are too many, or it failed. */
static bool list_windows(const spill_group_members_t *members, const spill_listing_t *owners,
                         spill_listing_t *names)
{
    const spill_transfer_side_t *target = &members->transfer->target;
    const spill_item_t *item;
    spill_error_t ignored;
    bool all = false;
    if (target->store->ops->windows_of)
        return target->store->ops->windows_of(target->store, &target->array->definition, owners,
                                              WINDOWS_LISTED, names, &all, &ignored) == SPILL_OK &&
               all;
    for (size_t i = 0; i < owners->count; i++) {
        spill_value_t owner = spill_listing_item(owners, i).owner;
        SPILL_SCOPED(spill_cursor_release)
        spill_cursor_t cursor = {
            .store = target->store,
            .definition = &target->array->definition,
            .binding = &target->array->binding,
            .query = {.list = SPILL_LIST_WINDOWS, .limit = 64, .windows.owner = &owner}};
        do {
            if (spill_cursor_next(&cursor, &item, &ignored) != SPILL_OK)
                return false;
            SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
            spill_value_t name = {0};
            if (item) {
                name = spill_bucket_name(&storage, &owner, item->text);
                spill_listing_add_owner(names, &name);
            }
        } while (item);
    }
    return true;
}

/* An owner that has other windows in the target is compared alone. */
static void find_other_windows(const spill_group_members_t *members)
{
    SPILL_SCOPED(spill_listing_release) spill_listing_t owners = SPILL_LISTING_INIT;
    SPILL_SCOPED(spill_listing_release) spill_listing_t names = SPILL_LISTING_INIT;
    for (size_t i = 0; i < members->count; i++)
        if (!members->all[i].alone)
            spill_listing_add_owner(&owners, &members->all[i].value);
    bool listed = owners.count == 0 || list_windows(members, &owners, &names);
    for (size_t i = 0; i < members->count && !listed; i++)
        members->all[i].alone = true;
    for (size_t k = 0; k < names.count; k++) {
        spill_value_t owner, name = spill_listing_item(&names, k).owner;
        const char *window;
        if (!spill_window_split(&name, &owner, &window))
            continue;
        for (size_t i = 0; i < members->count; i++) {
            spill_group_member_t *member = &members->all[i];
            if (!member->alone && spill_value_same_owner(&member->value, &owner))
                member->alone = !has_piece(member, &name);
        }
    }
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

/* Compare one array of the target. *hash: of the equal elements. */
static bool same_elements(const spill_group_member_t *member, const spill_piece_t *piece,
                          uint64_t *hash)
{
    const spill_definition_t *to = &piece->there.owner.array->definition;
    const spill_run_t *source = spill_piece_run(member, piece);
    const spill_run_t *target = spill_whole_run(&piece->there);
    spill_top_entry_t lowest = {0};
    if (!piece->there.complete ||
        spill_piece_end(member, piece) != spill_state_end(&piece->there.head.state))
        return false;
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

/* Compare all pieces. *hash: of the elements, in the source's order. */
static bool same_pieces(const spill_transfer_t *transfer, const spill_group_member_t *member,
                        uint64_t *hash)
{
    bool same = member->piece_count > 0;
    for (size_t i = 0; same && i < member->piece_count; i++)
        same = same_elements(member, &member->pieces[i], hash);
    if (!same || !transfer->makes_windows)
        return same;
    const spill_run_t *run = spill_member_run(member);
    *hash = 0;
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        spill_value_add_hash(&element.value, hash);
    }
    return true;
}

/* If the owner is equal on both sides, it is done. */
static void compare(spill_transfer_group_t *group, const spill_group_members_t *members,
                    spill_group_member_t *member)
{
    const spill_transfer_t *transfer = group->transfer;
    spill_copy_result_t *result = transfer->result;
    int64_t has = (int64_t)spill_member_run(member)->count;
    uint64_t hash = 0;
    bool equal = false;
    if (member->alone || !compare_fields(members, member, &equal) || !equal ||
        !same_pieces(transfer, member, &hash))
        return;
    bool compares = !transfer->options->unverified;
    group->done[member->index] = true;
    group->transferred[member->index] =
        (spill_transferred_t){.difference.definition = spill_transfer_source(transfer)->name,
                              .elements = has,
                              .hash = compares ? hash : 0};
    int64_t all = 0;
    for (size_t i = 0; i < member->piece_count; i++) {
        const spill_piece_t *piece = &member->pieces[i];
        int64_t count = (int64_t)spill_whole_run(&piece->there)->count;
        all += count;
        if (piece->made)
            result->elements += spill_transfer_keeps_top_n(transfer) ? has : count;
        else
            result->before += count;
    }
    result->verified += compares ? all : 0;
    result->dropped += has - all;
}

spill_code_t spill_transfer_group_try(spill_transfer_group_t *group, const spill_listing_t *owners,
                                      spill_error_t *error)
{
    SPILL_SCOPED(spill_members_release)
    spill_group_members_t members = {.transfer = group->transfer, .last = &group->last};
    group->count = owners->count;
    memset(group->done, 0, sizeof group->done);
    if (!group->is_possible || owners->count == 0 || owners->count > SPILL_TRANSFER_GROUP)
        return SPILL_OK;
    spill_members_read(&members, owners);
    spill_members_split(&members);
    read_targets(&members, false);
    if (group->makes)
        SPILL_TRY(make_heads(&members, error));
    if (group->transfer->makes_windows)
        find_other_windows(&members);
    for (size_t i = 0; i < members.count; i++)
        compare(group, &members, &members.all[i]);
    return SPILL_OK;
}

/* ---- the check before a copy ----------------------------------------------------------------- */

void spill_transfer_group_check(spill_transfer_group_t *group, const spill_listing_t *owners,
                                bool unsaved)
{
    const spill_transfer_t *transfer = group->transfer;
    SPILL_SCOPED(spill_members_release)
    spill_group_members_t members = {.transfer = transfer, .last = &group->last};
    memset(group->done, 0, sizeof group->done);
    if (!group->is_possible || owners->count == 0 || owners->count > SPILL_TRANSFER_GROUP)
        return;
    spill_members_read(&members, owners);
    /* In windows, all elements count as missing. */
    bool reads = !unsaved && !transfer->makes_windows;
    if (reads) {
        spill_members_split(&members);
        read_targets(&members, false);
    }
    for (size_t i = 0; i < members.count; i++) {
        spill_group_member_t *member = &members.all[i];
        if (member->alone)
            continue;
        const spill_state_t *there = reads ? &member->pieces[0].there.head.state : NULL;
        bool counted = !there || !there->present || there->pages == 0 ||
                       spill_schema_of(spill_transfer_target(transfer))->appends_to_head;
        int64_t from = there && there->present ? spill_state_end(there) : 0, checked = 0;
        if (!counted || !is_storable(transfer, member, from, &checked))
            continue;
        group->done[member->index] = true;
        transfer->result->checked += checked;
    }
}
