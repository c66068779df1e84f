/*
 * One pass over the bytes of a BSON document: find its arrays and sub-documents, and add them to a
 * table of paths. Every byte is checked before it is used: lengths, terminators, types, texts. No
 * memory is allocated per field. A damaged document leaves no trace in the table.
 */
#ifndef SPILL_TOOLS_SCAN_WALK_H
#define SPILL_TOOLS_SCAN_WALK_H

#include "tools/scan/paths.h"

typedef struct spill_walker spill_walker_t;

/* One thread's. NULL may be freed. */
spill_walker_t *spill_walker_new(void);
void spill_walker_free(spill_walker_t *walker);

typedef struct spill_walk {
    spill_value_t id; /* the _id; data NULL: it has none. Borrows from the document. */

    /* The damage, if the document is not BSON, and its offset. NULL: it is BSON. */
    const char *damage;
    size_t damage_at;

    /* A flaw in valid BSON: a bad text, or too deep nesting. The document counts all the same.
     * NULL: none. */
    const char *flaw;
    size_t flaw_at; /* of the first flaw */
} spill_walk_t;

/*
 * Walk the document of `size` bytes at `data`, which may be any bytes, and add it to the table if
 * it is not damaged. `place` is its place in the input. O(size).
 */
void spill_walk(spill_walker_t *walker, spill_paths_t *paths, const uint8_t *data, size_t size,
                int64_t place, spill_walk_t *result);

/* Report whether these bytes are exactly one document. Needs no table. O(size). */
bool spill_walk_check(const uint8_t *data, size_t size);

#endif
