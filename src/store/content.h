/*
 * What a document holds besides its state: a run of elements, and the window of the last
 * operations. And the limits at which it is full.
 */
#ifndef SPILL_STORE_CONTENT_H
#define SPILL_STORE_CONTENT_H

#include "util/buffer.h"

#include <spillway/array.h>

#include <stdbool.h>
#include <stdint.h>

/*
 * A run of elements with their sequence numbers, in ascending or descending order, in one arena. An
 * entry has an offset into the arena, because the arena moves when the run grows; spill_run_element
 * resolves it. The run owns the bytes.
 */
typedef struct spill_run_entry {
    int64_t seq;
    size_t offset;
    uint32_t size_bytes;
    uint8_t type;
} spill_run_entry_t;

typedef struct spill_run {
    spill_run_entry_t *entries;
    size_t count;
    size_t capacity;
    spill_buffer_t arena;
} spill_run_t;

/*
 * How many elements to request next, so that they have about `bytes_most` bytes. The estimate comes
 * from the last request: it asked for `limit` elements and got `count` with `bytes` bytes. The
 * result is at most 8 * limit, and at most `most`.
 */
int64_t spill_run_next_limit(int64_t limit, int64_t most, int64_t bytes_most, int64_t count,
                             int64_t bytes);

/* Reserve the memory of so many more elements with together `bytes` bytes. */
void spill_run_reserve(spill_run_t *run, size_t count, size_t bytes);

void spill_run_add(spill_run_t *run, int64_t seq, const spill_value_t *value);
/* Append the elements of `from` with numbers >= watermark. */
void spill_run_add_from(const spill_run_t *from, int64_t watermark, spill_run_t *run);
/* Does the run begin with the elements of `first`? Their numbers may differ. */
bool spill_run_begins_with(const spill_run_t *run, const spill_run_t *first);
spill_element_t spill_run_element(const spill_run_t *run, size_t index);
int64_t spill_run_bytes(const spill_run_t *run);               /* sum of the values' sizes */
void spill_run_copy(const spill_run_t *from, spill_run_t *to); /* `to` is empty or zeroed */
void spill_run_clear(spill_run_t *run);                        /* empty, memory kept */
void spill_run_release(spill_run_t *run);                      /* zero and free */

/* ---- operations ------------------------------------------------------------------------------ */

/* One entry of the window of the last operations that an owner has seen, oldest first. */
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

/* ---- limits ---------------------------------------------------------------------------------- */

/* The size that each of the document databases accepts for a document, bookkeeping included. */
#define SPILL_DOCUMENT_BYTES_MAX (16 * 1024 * 1024)

/*
 * When is a document full? Appends, spills, edits and the verifier use one function, in each
 * layout. A document is bounded in slots (live elements and deleted numbers) and in bytes.
 */
typedef struct spill_limits {
    int64_t slots_max; /* live elements and deleted numbers */
    int64_t bytes_max; /* of the rendered document */
} spill_limits_t;

/*
 * May a document have `slots` slots, `live` elements and `bytes` bytes? A document with a single
 * element (live == 1) may have up to SPILL_DOCUMENT_BYTES_MAX bytes.
 */
bool spill_limits_fit(const spill_limits_t *limits, int64_t slots, int64_t live, int64_t bytes);

#endif
