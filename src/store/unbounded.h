/*
 * An array as applications keep it that do nothing about its length: all of it in one document
 * {_id, <array>} of a server's collection, to which they $push. For comparisons: no definition is
 * of it, and nothing bounds it but the server's own limit.
 *
 * Threads: as store.h.
 */
#ifndef SPILL_STORE_UNBOUNDED_H
#define SPILL_STORE_UNBOUNDED_H

#include <spillway/store.h>
#include <spillway/value.h>

/* One such document. Borrows. */
typedef struct spill_unbounded {
    spill_store_t *store;
    const char *collection;
    const char *array; /* the field */
    const char *id;    /* the document's _id, a string */
} spill_unbounded_t;

/* Has the store documents of its own, as a server has? The functions below are for one that has. */
bool spill_unbounded_serves(const spill_store_t *store);

/* Make the document with these elements (an array), in the place of what is there. */
spill_code_t spill_unbounded_put(const spill_unbounded_t *unbounded, const bson_t *elements,
                                 spill_error_t *error);

/* $push, with upsert. One command. */
spill_code_t spill_unbounded_push(const spill_unbounded_t *unbounded, const spill_value_t *element,
                                  spill_error_t *error);

/* Read the last `limit` elements; *count is how many came. One command, with $slice. */
spill_code_t spill_unbounded_newest(const spill_unbounded_t *unbounded, int64_t limit,
                                    int64_t *count, spill_error_t *error);

/* How many elements the document has, and its bytes, as the server tells. One command. */
spill_code_t spill_unbounded_measure(const spill_unbounded_t *unbounded, int64_t *elements,
                                     int64_t *size_bytes, spill_error_t *error);

#endif
