/*
 * One pass over the bytes of a document as BSON has it: finds its arrays and sub-documents, and
 * tells a table of paths. Every byte is checked before it is believed: lengths, terminators, types,
 * texts. No memory is asked for by field; a document that turns out damaged leaves no trace in the
 * table.
 */
#ifndef SPILL_TOOLS_SCAN_WALK_H
#define SPILL_TOOLS_SCAN_WALK_H

#include "tools/scan/paths.h"

typedef struct spill_walker spill_walker_t;

/* One thread's. NULL may be freed. */
spill_walker_t *spill_walker_new(void);
void spill_walker_free(spill_walker_t *walker);

typedef struct spill_walk {
    spill_value_t id; /* the _id; data NULL: there is none. Borrows from the document. */

    /* The document is not BSON: what, and how many bytes into it. NULL: it is. */
    const char *damage;
    size_t damage_at;

    /* It is, but something in it should not be: a text, nesting. It counts all the same. NULL: no.
     */
    const char *flaw;
    size_t flaw_at; /* of the first */
} spill_walk_t;

/*
 * Walk the document of `size` bytes at `data`, which may be anything. `place` says where it stands.
 * The table gets it where it is sound. O(size).
 */
void spill_walk(spill_walker_t *walker, spill_paths_t *paths, const uint8_t *data, size_t size,
                int64_t place, spill_walk_t *result);

/* Is there a document of just that size? Touches no table. O(size). */
bool spill_walk_check(const uint8_t *data, size_t size);

#endif
