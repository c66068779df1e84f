/*
 * Small owners of a transfer, many at a time. If both sides have layout outlier and an owner has no
 * pages, its head is the whole array. Then a few requests transfer up to SPILL_TRANSFER_GROUP
 * owners: the source's heads, the target's heads, one that makes the missing ones, and the target's
 * heads again, to compare.
 *
 * It is a first try. The head that it makes carries the operation that spill_transfer_one would
 * append first, so an owner is appended at most once, whatever is lost or arrives late. An owner
 * that is not equal afterwards, for any reason, needs spill_transfer_one.
 */
#ifndef SPILL_TOOLS_TRANSFER_TRANSFER_GROUP_H
#define SPILL_TOOLS_TRANSFER_TRANSFER_GROUP_H

#include "tools/transfer/transfer.h"

enum {
    SPILL_TRANSFER_GROUP = 128,              /* owners */
    SPILL_TRANSFER_GROUP_BYTES = 1024 * 1024 /* of their heads; the rest is left to single calls */
};

/* Call spill_transfer_group_init, then try for each listing of owners. */
typedef struct spill_transfer_group {
    const spill_transfer_t *transfer;
    bool is_possible; /* the definitions allow it, and the source is complete */
    bool makes;       /* it may make heads in the target; else it only compares */
    size_t count;
    bool done[SPILL_TRANSFER_GROUP]; /* of the owners of the listing: nothing is left to do */
    spill_transferred_t transferred[SPILL_TRANSFER_GROUP];
} spill_transfer_group_t;

/* The transfer has begun. */
void spill_transfer_group_init(spill_transfer_group_t *group, const spill_transfer_t *transfer);

/*
 * Try the owners of a listing of the source, at most SPILL_TRANSFER_GROUP. Adds those that are done
 * to the transfer's result. An error: options->turn has ended the transfer. Memory: the heads, at
 * most SPILL_TRANSFER_GROUP_BYTES and one head more of each side, about three times. Cost: about
 * six requests to stores on a server.
 */
spill_code_t spill_transfer_group_try(spill_transfer_group_t *group, const spill_listing_t *owners,
                                      spill_error_t *error);

#endif
