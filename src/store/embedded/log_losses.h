/* What a cut in a log would drop: the readable records behind it, by owner. */
#ifndef SPILL_EMBEDDED_LOG_LOSSES_H
#define SPILL_EMBEDDED_LOG_LOSSES_H

#include "store/embedded/log_batch.h"

/* Of one owner in one array. */
typedef struct spill_log_owner {
    uint32_t array_id;
    size_t key; /* the owner's key, in the losses' bytes */
    size_t key_bytes;
    int64_t elements; /* element records that are written: by appends, edits */
    int64_t deleted;  /* element records that are deleted, one by one or as a range */
} spill_log_owner_t;

typedef struct spill_log_losses {
    int64_t records; /* batches whose checksum holds */
    int64_t bad;     /* of which so many are malformed */
    spill_log_owner_t *owners;
    size_t count;
    size_t capacity;
    uint32_t *slots; /* a hash table: 0, or an index into `owners` plus 1 */
    size_t slot_count;
    spill_buffer_t bytes;
} spill_log_losses_t;

#define SPILL_LOG_LOSSES_INIT                                                                      \
    {                                                                                              \
        .records = 0                                                                               \
    }

/* Add one record of a log. Any bytes are allowed. Cost: linear in the record. */
void spill_log_losses_add(spill_log_losses_t *losses, const uint8_t *record, size_t bytes);

void spill_log_losses_release(spill_log_losses_t *losses);

#endif
