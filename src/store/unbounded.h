/*
 * An array without Spillway, for comparisons: an application keeps all of it in one document {_id,
 * <array>} of a server's collection and appends with $push. Only the server's limit bounds it.
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

/* Is the store a server? The functions below need one. */
bool spill_unbounded_serves(const spill_store_t *store);

/* Make the document with these elements (an array); replace an existing one. */
spill_code_t spill_unbounded_put(const spill_unbounded_t *unbounded, const bson_t *elements,
                                 spill_error_t *error);

/* $push, with upsert. One command. */
spill_code_t spill_unbounded_push(const spill_unbounded_t *unbounded, const spill_value_t *element,
                                  spill_error_t *error);

/* Read the last `limit` elements; *count is how many there were. One command, with $slice. */
spill_code_t spill_unbounded_newest(const spill_unbounded_t *unbounded, int64_t limit,
                                    int64_t *count, spill_error_t *error);

/* The number of elements and the bytes of the document, computed by the server. One command. */
spill_code_t spill_unbounded_measure(const spill_unbounded_t *unbounded, int64_t *elements,
                                     int64_t *size_bytes, spill_error_t *error);

#endif
