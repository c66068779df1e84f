/*
 * One record of the engine's log: a batch of changes.
 *
 *   sequence (8 bytes) | count of changes (4) | changes
 *   change   tag (1 byte), key, and for a put or a range a second text; each text with its length
 *
 * Numbers are little-endian, lengths are varints. A batch of a store has puts, deletes and deleted
 * ranges; other changes do not occur and make the batch malformed.
 */
#ifndef SPILL_EMBEDDED_LOG_BATCH_H
#define SPILL_EMBEDDED_LOG_BATCH_H

#include "store/embedded/batch.h"

/* A batch that is read. */
typedef struct spill_log_batch {
    uint64_t sequence; /* of its first change */
    uint32_t count;    /* of its changes */
    spill_reader_t at;
} spill_log_batch_t;

/* A change; the texts are those of the record. Of a range, `value` is the first key behind it. */
typedef struct spill_log_change {
    spill_change_kind_t kind;
    const uint8_t *key;
    size_t key_bytes;
    const uint8_t *value;
    size_t value_bytes;
} spill_log_change_t;

/* Read the head of a batch. False: it is shorter than that. The bytes stay the caller's. */
bool spill_log_batch_open(spill_log_batch_t *batch, const uint8_t *record, size_t bytes);

/* The next change. False: there is none, or (batch->at.bad) the batch is malformed. */
bool spill_log_batch_next(spill_log_batch_t *batch, spill_log_change_t *change);

#endif
