/*
 * A list of changes to write in one atomic step. While a caller adds to it, it can look up earlier
 * changes of a key (read your writes).
 */
#ifndef SPILL_STORE_EMBEDDED_BATCH_H
#define SPILL_STORE_EMBEDDED_BATCH_H

#include "util/buffer.h"

#include <stdbool.h>

typedef enum spill_change_kind {
    SPILL_CHANGE_PUT,
    SPILL_CHANGE_DELETE,
    SPILL_CHANGE_DELETE_RANGE /* keys in [key, value) */
} spill_change_kind_t;

/* Keys and values lie in the batch's bytes. */
typedef struct spill_change {
    spill_change_kind_t kind;
    uint32_t key_bytes;
    uint32_t value_bytes;
    size_t key;
    size_t value;
    uint64_t tag; /* the key's last bytes, to detect other keys quickly */
} spill_change_t;

typedef struct spill_batch {
    spill_change_t *changes;
    size_t count;
    size_t capacity;
    spill_buffer_t bytes;
} spill_batch_t;

#define SPILL_BATCH_INIT                                                                           \
    {                                                                                              \
        NULL, 0, 0, SPILL_BUFFER_INIT                                                              \
    }

void spill_batch_put(spill_batch_t *batch, const uint8_t *key, size_t key_bytes, const void *value,
                     size_t value_bytes);

/* Put a value of `value_bytes`. The caller fills in the result before it adds another change. */
uint8_t *spill_batch_put_place(spill_batch_t *batch, const uint8_t *key, size_t key_bytes,
                               size_t value_bytes);

/*
 * Put a value of unknown size: append it to the buffer that `open` returns, then call `close`. Add
 * no other change in between.
 */
spill_buffer_t *spill_batch_put_open(spill_batch_t *batch, const uint8_t *key, size_t key_bytes);
void spill_batch_put_close(spill_batch_t *batch);

void spill_batch_delete(spill_batch_t *batch, const uint8_t *key, size_t key_bytes);
void spill_batch_delete_range(spill_batch_t *batch, const uint8_t *from, size_t from_bytes,
                              const uint8_t *to, size_t to_bytes);

/* The newest PUT or DELETE of a key, or NULL. Ranges are ignored. O(changes). */
const spill_change_t *spill_batch_find(const spill_batch_t *batch, const uint8_t *key,
                                       size_t key_bytes);

const uint8_t *spill_batch_key(const spill_batch_t *batch, const spill_change_t *change);
const uint8_t *spill_batch_value(const spill_batch_t *batch, const spill_change_t *change);

/* A position to which the batch can be rolled back. */
typedef struct spill_batch_savepoint {
    size_t count;
    size_t bytes;
} spill_batch_savepoint_t;

spill_batch_savepoint_t spill_batch_savepoint(const spill_batch_t *batch);
void spill_batch_rewind(spill_batch_t *batch, spill_batch_savepoint_t mark);

void spill_batch_clear(spill_batch_t *batch); /* keeps its memory, unless it is very large */
void spill_batch_release(spill_batch_t *batch);

#endif
