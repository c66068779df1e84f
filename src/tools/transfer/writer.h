/*
 * Writer of a transfer: appends elements to one owner of the target, each at most once, and gives
 * every element the number that it has in the source.
 *
 * A batch is one atomic append, or with keep oldest one append for each document that it fills. The
 * operation id of an append consists of its first number alone. So of all appends that begin at a
 * number, at most one is applied: of this transfer, of an earlier one that was killed while a
 * request was in progress, or of a concurrent one. The base is read before the target's next
 * number, so no operation that begins at that number was applied at that time.
 *
 * A number without an element in the source gets a placeholder, which is removed before the next
 * batch.
 */
#ifndef SPILL_TOOLS_TRANSFER_WRITER_H
#define SPILL_TOOLS_TRANSFER_WRITER_H

#include "tools/transfer/transfer.h"
#include "util/buffer.h"

/* Most elements of a batch. An unfinished transfer leaves placeholders only among the last numbers,
 * at most this many. */
#define SPILL_TRANSFER_BATCH 1000

typedef struct spill_transfer_batch {
    int64_t first; /* the first number that it gives in the target */
    int64_t skip;  /* top-N target: numbers to skip before its first element */
    size_t count;
    size_t placeholders;
    spill_buffer_t bytes;
    spill_value_t values[SPILL_TRANSFER_BATCH];
    size_t offsets[SPILL_TRANSFER_BATCH]; /* of the values in `bytes` */
    bool gaps[SPILL_TRANSFER_BATCH];      /* true for placeholders */
} spill_transfer_batch_t;

/* A batch that begins at a number of the target. Free it with spill_transfer_batch_free. */
spill_transfer_batch_t *spill_transfer_batch_new(int64_t first);
void spill_transfer_batch_free(spill_transfer_batch_t **batch);

/* Report whether one more value fits, for any target. */
bool spill_transfer_batch_is_short(const spill_transfer_batch_t *batch, const spill_value_t *value);
/* Copies the value's bytes. */
void spill_transfer_batch_add(spill_transfer_batch_t *batch, const spill_value_t *value, bool gap);
/* Make the values point to their bytes; call it after the last add. */
void spill_transfer_batch_finish(spill_transfer_batch_t *batch);

/* Add a value to the batch. If it does not fit, append the batch first. */
spill_code_t spill_transfer_push(spill_transfer_owner_t *owner, spill_transfer_batch_t *batch,
                                 const spill_value_t *value, bool gap, spill_error_t *error);

/* Append placeholders, or with a top-N target skip the numbers, from `next` up to `end`. */
spill_code_t spill_transfer_push_gap(spill_transfer_owner_t *owner, spill_transfer_batch_t *batch,
                                     int64_t next, int64_t end, spill_error_t *error);

/* Append the batch, at most once; the empty batch then begins behind it. */
spill_code_t spill_transfer_flush(spill_transfer_owner_t *owner, spill_transfer_batch_t *batch,
                                  spill_error_t *error);

/* Capped target without elements: give the numbers from its next one up to `to`. */
spill_code_t spill_transfer_skip(spill_transfer_owner_t *owner, int64_t to, spill_error_t *error);

/* A placeholder is MinKey, a type that applications do not store, or a document with it. */
bool spill_transfer_is_placeholder(const spill_value_t *value);

/* Remove a placeholder, if it was not removed already. */
spill_code_t spill_transfer_remove(const spill_transfer_owner_t *owner, int64_t seq,
                                   spill_error_t *error);

#endif
