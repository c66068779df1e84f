/*
 * Small owners of a transfer, many at a time. If the whole array of an owner is one document, or a
 * head and a few referenced elements, or one document for each window, then a few requests transfer
 * up to SPILL_TRANSFER_GROUP owners: the source's documents, the target's, one request that makes
 * the missing heads, two that write out journals, and the target's documents again, to compare.
 *
 * It is a first try. A head that it makes carries the operation that spill_transfer_one would
 * append first, so an owner is appended at most once, whatever is lost or arrives late. An owner
 * that is not equal afterwards, for any reason, needs spill_transfer_one.
 */
#ifndef SPILL_TOOLS_TRANSFER_TRANSFER_GROUP_H
#define SPILL_TOOLS_TRANSFER_TRANSFER_GROUP_H

#include "tools/transfer/transfer.h"

enum {
    SPILL_TRANSFER_GROUP = 128,              /* owners, or joined windows */
    SPILL_TRANSFER_GROUP_BYTES = 1024 * 1024 /* of their arrays; the rest is left to single calls */
};

/* Call spill_transfer_group_init, then try for each listing of owners. */
typedef struct spill_transfer_group {
    const spill_transfer_t *transfer;
    bool is_possible; /* the definitions allow it, and the source is complete */
    bool makes;       /* it may make heads in the target; else it only compares */
    size_t count;
    bson_t last; /* joined windows: the owner that the last listing ended with, under "" */
    bool done[SPILL_TRANSFER_GROUP]; /* of the owners of the listing: nothing is left to do */
    spill_transferred_t transferred[SPILL_TRANSFER_GROUP];
} spill_transfer_group_t;

/* The transfer has begun. */
void spill_transfer_group_init(spill_transfer_group_t *group, const spill_transfer_t *transfer);
void spill_transfer_group_release(spill_transfer_group_t *group); /* also if it is only zeroed */

/*
 * Try the owners of a listing of the source, at most SPILL_TRANSFER_GROUP. If windows are joined,
 * it lists windows, and an owner's first one stands for it. Adds those that are done to the
 * transfer's result. An error: options->turn has ended the transfer. Memory: the arrays, at most
 * SPILL_TRANSFER_GROUP_BYTES and one more of each side, about three times. Cost: about ten requests
 * to stores on a server.
 */
spill_code_t spill_transfer_group_try(spill_transfer_group_t *group, const spill_listing_t *owners,
                                      spill_error_t *error);

/*
 * For the check before a copy: `done` becomes true of each owner if the target can store the
 * elements that it lacks. Changes nothing. `unsaved`: the target is not defined yet.
 */
void spill_transfer_group_check(spill_transfer_group_t *group, const spill_listing_t *owners,
                                bool unsaved);

#endif
