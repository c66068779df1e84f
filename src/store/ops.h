/* The window of the last operations that an owner has seen, oldest first. */
#ifndef SPILL_STORE_OPS_H
#define SPILL_STORE_OPS_H

#include <spillway/array.h>

typedef struct spill_op_entry {
    int64_t ordinal; /* the owner's op_count before this operation */
    int64_t seq;     /* its first sequence number */
    int64_t count;   /* its elements */
    uint8_t id_bytes;
    uint8_t id[SPILL_OP_ID_MAX];
} spill_op_entry_t;

typedef struct spill_ops {
    spill_op_entry_t *entries;
    size_t count;
    size_t capacity;
} spill_ops_t;

/* Is it the entry of the operation with this id? */
bool spill_op_entry_is(const spill_op_entry_t *entry, const void *id, size_t id_bytes);

/* NULL if the id is not in the window. O(window). */
const spill_op_entry_t *spill_ops_find(const spill_ops_t *ops, const void *id, size_t id_bytes);

/* Add the newest entry and drop all but the newest `window` entries. */
void spill_ops_push(spill_ops_t *ops, const spill_op_entry_t *entry, size_t window);
void spill_ops_copy(const spill_ops_t *from, spill_ops_t *to); /* `to` is empty or zeroed */
void spill_ops_release(spill_ops_t *ops);

#endif
