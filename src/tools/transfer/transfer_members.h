/*
 * The small owners of a group (transfer_group.h): what the source has, and what the target is to
 * have. An array of the target is a piece. An owner has one, or in a target with windows one for
 * each window that its elements lie in.
 */
#ifndef SPILL_TOOLS_TRANSFER_TRANSFER_MEMBERS_H
#define SPILL_TOOLS_TRANSFER_TRANSFER_MEMBERS_H

#include "tools/transfer/transfer.h"
#include "tools/transfer/transfer_whole.h"

typedef struct spill_piece {
    bson_t *storage;     /* of a window's name; a bson_t itself must not move */
    spill_value_t name;  /* the owner there, or the window */
    spill_run_t own;     /* a window: its elements, numbered from 0 */
    spill_whole_t there; /* the target */
    spill_value_t *elements;
    int64_t *seqs; /* their numbers, if these do not follow from 0 on; or NULL */
    bool made;     /* the head was missing; the group tries to make it */
} spill_piece_t;

/* One owner. */
typedef struct spill_group_member {
    size_t index; /* in the listing; of its first window there */
    spill_value_t value;
    spill_whole_t *sources; /* its array, or each of its windows in turn */
    size_t source_count;
    spill_run_t joined; /* the elements of all windows, numbered from 0 */
    spill_piece_t *pieces;
    size_t piece_count;
    bson_t *update; /* the other fields that the target lacks */
    bool alone;     /* left to spill_transfer_one */
} spill_group_member_t;

typedef struct spill_group_members {
    const spill_transfer_t *transfer;
    spill_group_member_t *all;
    size_t count;
    bson_t *last; /* joined windows: the owner that the listing before ended with, under "" */
} spill_group_members_t;

/*
 * Read the arrays of the source, of the owners of a listing of it. Larger owners, and those that
 * cannot be read, are `alone` or left out. The windows of an owner that begins in the listing are
 * all read. members->transfer and members->last are set; the rest is zero. *members->last becomes
 * the owner that this listing ends with.
 */
void spill_members_read(spill_group_members_t *members, const spill_listing_t *owners);

/*
 * Make the pieces of each member. An element without a window leaves its owner alone.
 */
void spill_members_split(spill_group_members_t *members);

/* The source's elements, ascending, and the number behind the last. */
const spill_run_t *spill_member_run(const spill_group_member_t *member);
int64_t spill_member_end(const spill_group_member_t *member);
/* What a piece is to have. */
const spill_run_t *spill_piece_run(const spill_group_member_t *member, const spill_piece_t *piece);
int64_t spill_piece_end(const spill_group_member_t *member, const spill_piece_t *piece);

void spill_members_release(spill_group_members_t *members);

#endif
