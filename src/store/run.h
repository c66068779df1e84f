/* A run of elements with their sequence numbers, in ascending or descending order, in one arena. */
#ifndef SPILL_STORE_RUN_H
#define SPILL_STORE_RUN_H

#include "util/buffer.h"

#include <spillway/array.h>

/*
 * An entry has an offset into the arena, because the arena moves when the run grows;
 * spill_run_element resolves it. The run owns the bytes.
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

#endif
