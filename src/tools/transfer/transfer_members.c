/* The small owners of a group: read the source, and split it into what the target is to have. */
#include "tools/transfer/transfer_members.h"

#include "core/array.h"
#include "definition/schema.h"
#include "tools/transfer/transfer_group.h"
#include "tools/transfer/transfer_parts.h"
#include "util/error.h"

#include <spillway/bucket.h>

#include <string.h>

enum { WINDOWS_MAX = 64 }; /* an owner with more is left alone */

/* ---- release --------------------------------------------------------------------------------- */

static void release_piece(spill_piece_t *piece)
{
    spill_whole_release(&piece->there);
    spill_run_release(&piece->own);
    bson_destroy(piece->storage);
    bson_free(piece->elements);
    bson_free(piece->seqs);
}

static void release_member(spill_group_member_t *member)
{
    for (size_t i = 0; i < member->source_count; i++)
        spill_whole_release(&member->sources[i]);
    for (size_t i = 0; i < member->piece_count; i++)
        release_piece(&member->pieces[i]);
    bson_free(member->sources);
    bson_free(member->pieces);
    spill_run_release(&member->joined);
    bson_destroy(member->update);
    *member = (spill_group_member_t){0};
}

void spill_members_release(spill_group_members_t *members)
{
    for (size_t i = 0; i < members->count; i++)
        release_member(&members->all[i]);
    bson_free(members->all);
    members->all = NULL;
    members->count = 0;
}

/* ---- the source ------------------------------------------------------------------------------ */

static spill_group_member_t *add_member(spill_group_members_t *members, size_t index,
                                        const spill_value_t *value)
{
    spill_group_member_t *member = &members->all[members->count++];
    member->index = index;
    member->value = *value;
    member->update = bson_new();
    return member;
}

/* Read an array, or one window, and return its size in bytes. */
static int64_t read_source(const spill_group_members_t *members, spill_group_member_t *member,
                           const spill_value_t *name)
{
    const spill_transfer_t *transfer = members->transfer;
    bool fields = spill_transfer_copies_fields(transfer);
    spill_error_t ignored;
    member->sources =
        bson_realloc(member->sources, (member->source_count + 1) * sizeof *member->sources);
    spill_whole_t *whole = &member->sources[member->source_count++];
    *whole = (spill_whole_t){0};
    if (spill_owner_init(&whole->owner, transfer->source.array, name, &ignored) != SPILL_OK ||
        spill_whole_read(whole, fields, false, &ignored) != SPILL_OK || !whole->complete)
        member->alone = true;
    whole->owner.value = &member->value; /* the name may end before */
    return spill_run_bytes(spill_whole_run(whole)) +
           (whole->head.fields ? (int64_t)whole->head.fields->len : 0);
}

static void read_arrays(spill_group_members_t *members, const spill_listing_t *owners)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < owners->count && bytes < SPILL_TRANSFER_GROUP_BYTES; i++) {
        spill_value_t value = spill_listing_item(owners, i).owner;
        spill_group_member_t *member = add_member(members, i, &value);
        bytes += read_source(members, member, &member->value);
    }
}

/* ---- ... its windows as one array ------------------------------------------------------------ */

/* Did the listing before end with the owner? */
static bool is_last(const spill_group_members_t *members, const spill_value_t *owner)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, members->last, ""))
        return false;
    spill_value_t last = spill_value_from_iter(&iter);
    return spill_value_same_owner(owner, &last);
}

/* Read the windows of the listing's last owner that the listing does not have. */
static void read_rest(spill_group_members_t *members, spill_group_member_t *member,
                      const char *from, int64_t bytes)
{
    spill_array_t *source = members->transfer->source.array;
    spill_error_t ignored;
    SPILL_SCOPED(spill_listing_release) spill_listing_t names = SPILL_LISTING_INIT;
    SPILL_SCOPED(spill_cursor_release)
    spill_cursor_t cursor = {.store = source->store,
                             .definition = &source->definition,
                             .binding = &source->binding,
                             .query = {.list = SPILL_LIST_WINDOWS,
                                       .limit = WINDOWS_MAX,
                                       .windows = {.owner = &member->value, .from = from}}};
    const spill_item_t *item;
    do {
        if (names.count > WINDOWS_MAX || spill_cursor_next(&cursor, &item, &ignored) != SPILL_OK) {
            member->alone = true;
            return;
        }
        if (item && strcmp(item->text, from) != 0) {
            SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
            spill_value_t name = spill_bucket_name(&storage, &member->value, item->text);
            spill_listing_add_owner(&names, &name);
        }
    } while (item);
    if (names.count > 0 && source->store->ops->expect)
        source->store->ops->expect(source->store, &source->definition, &names);
    for (size_t i = 0; i < names.count && !member->alone; i++) {
        spill_value_t name = spill_listing_item(&names, i).owner;
        member->alone = bytes >= SPILL_TRANSFER_GROUP_BYTES;
        if (!member->alone)
            bytes += read_source(members, member, &name);
    }
}

static void join(spill_group_member_t *member)
{
    int64_t seq = 0;
    for (size_t i = 0; i < member->source_count; i++) {
        const spill_run_t *run = spill_whole_run(&member->sources[i]);
        for (size_t k = 0; k < run->count; k++) {
            spill_element_t element = spill_run_element(run, k);
            spill_run_add(&member->joined, seq++, &element.value);
        }
    }
    member->alone = seq == 0;
}

/* The owner whose windows may continue in the next listing. */
static void remember_last(spill_group_members_t *members, const spill_listing_t *windows)
{
    spill_value_t owner, name = spill_listing_item(windows, windows->count - 1).owner;
    const char *text;
    bson_reinit(members->last);
    if (spill_window_split(&name, &owner, &text))
        spill_value_append(&owner, members->last, "");
}

static void read_joined(spill_group_members_t *members, const spill_listing_t *windows)
{
    spill_group_member_t *member = NULL;
    spill_value_t name, owner;
    const char *text = "";
    int64_t bytes = 0;
    for (size_t i = 0; i < windows->count && bytes < SPILL_TRANSFER_GROUP_BYTES; i++) {
        name = spill_listing_item(windows, i).owner;
        if (!spill_window_split(&name, &owner, &text) || is_last(members, &owner))
            continue;
        if (!member || !spill_value_same_owner(&member->value, &owner))
            member = add_member(members, i, &owner);
        bytes += read_source(members, member, &name);
    }
    if (member)
        read_rest(members, member, text, bytes);
    remember_last(members, windows);
    for (size_t i = 0; i < members->count; i++)
        if (!members->all[i].alone)
            join(&members->all[i]);
}

void spill_members_read(spill_group_members_t *members, const spill_listing_t *owners)
{
    members->all = bson_malloc0((owners->count + 1) * sizeof *members->all);
    if (members->transfer->joins_windows)
        read_joined(members, owners);
    else
        read_arrays(members, owners);
}

/* ---- the target ------------------------------------------------------------------------------ */

static spill_piece_t *add_piece(spill_group_member_t *member)
{
    member->pieces =
        bson_realloc(member->pieces, (member->piece_count + 1) * sizeof *member->pieces);
    spill_piece_t *piece = &member->pieces[member->piece_count++];
    *piece = (spill_piece_t){.storage = bson_new()};
    return piece;
}

/* The piece of a window; a new one, if there is none. */
static spill_piece_t *piece_of(spill_group_member_t *member, const char *window)
{
    spill_value_t owner;
    const char *text;
    for (size_t i = 0; i < member->piece_count; i++) {
        bson_iter_t iter;
        if (!bson_iter_init_find(&iter, member->pieces[i].storage, ""))
            continue;
        spill_value_t name = spill_value_from_iter(&iter);
        if (spill_window_split(&name, &owner, &text) && strcmp(text, window) == 0)
            return &member->pieces[i];
    }
    spill_piece_t *piece = add_piece(member);
    SPILL_SCOPED(bson_destroy) bson_t memory = BSON_INITIALIZER;
    spill_value_t name = spill_bucket_name(&memory, &member->value, window);
    spill_value_append(&name, piece->storage, "");
    return piece;
}

static void split_windows(const spill_transfer_t *transfer, spill_group_member_t *member)
{
    const spill_definition_t *to = spill_array_get_definition(transfer->target.array);
    const spill_run_t *run = spill_member_run(member);
    spill_error_t ignored;
    member->alone = run->count == 0;
    for (size_t i = 0; i < run->count && !member->alone; i++) {
        char window[SPILL_WINDOW_SIZE];
        spill_element_t element = spill_run_element(run, i);
        member->alone = spill_bucket_window_of(to, &element.value, window, &ignored) != SPILL_OK ||
                        member->piece_count > WINDOWS_MAX;
        if (member->alone)
            break;
        spill_piece_t *piece = piece_of(member, window);
        spill_run_add(&piece->own, (int64_t)piece->own.count, &element.value);
    }
}

/* The pieces have their places: their names and owners may borrow. */
static void name_pieces(const spill_transfer_t *transfer, spill_group_member_t *member)
{
    spill_error_t ignored;
    for (size_t i = 0; i < member->piece_count; i++) {
        spill_piece_t *piece = &member->pieces[i];
        bson_iter_t iter;
        piece->name = member->value;
        if (bson_iter_init_find(&iter, piece->storage, ""))
            piece->name = spill_value_from_iter(&iter);
        if (spill_owner_init(&piece->there.owner, transfer->target.array, &piece->name, &ignored) !=
            SPILL_OK)
            member->alone = true;
    }
}

void spill_members_split(spill_group_members_t *members)
{
    for (size_t i = 0; i < members->count; i++) {
        spill_group_member_t *member = &members->all[i];
        if (member->alone)
            continue;
        if (members->transfer->makes_windows)
            split_windows(members->transfer, member);
        else
            add_piece(member);
        name_pieces(members->transfer, member);
    }
}

/* ---- elements -------------------------------------------------------------------------------- */

const spill_run_t *spill_member_run(const spill_group_member_t *member)
{
    return member->joined.count > 0 ? &member->joined : spill_whole_run(&member->sources[0]);
}

int64_t spill_member_end(const spill_group_member_t *member)
{
    return member->joined.count > 0 ? (int64_t)member->joined.count
                                    : spill_state_end(&member->sources[0].head.state);
}

const spill_run_t *spill_piece_run(const spill_group_member_t *member, const spill_piece_t *piece)
{
    return piece->own.count > 0 ? &piece->own : spill_member_run(member);
}

int64_t spill_piece_end(const spill_group_member_t *member, const spill_piece_t *piece)
{
    return piece->own.count > 0 ? (int64_t)piece->own.count : spill_member_end(member);
}
