/* Heads that hold more than they are meant to, and unmanaged arrays. */
#ifndef SPILL_STORE_OVERSIZED_H
#define SPILL_STORE_OVERSIZED_H

#include <spillway/value.h>

#include <stddef.h>
#include <stdint.h>

/* Find unmanaged arrays that are not empty, and managed ones for which a condition holds. */
typedef struct spill_oversized_query {
    const uint8_t *after; /* a position that an earlier call left in `last` */
    size_t after_bytes;   /* 0: from the start */
    size_t limit;         /* <= 1000 */
    int64_t slots;        /* condition: at least this many slots (deleted numbers count) */
    int64_t bytes;        /* condition: a document of at least this many bytes */
    bool counts;          /* condition: a count field in the document is wrong */
    int64_t full;         /* a document of at least this many bytes is full; 0: none is */
} spill_oversized_query_t;

/* Why an unmanaged array cannot be adopted. */
typedef enum spill_obstacle {
    SPILL_OBSTACLE_NONE,
    SPILL_OBSTACLE_ROOM,   /* even with only its newest element, the document has no room */
    SPILL_OBSTACLE_ELEMENT /* an older element needs a page above the size limit */
} spill_obstacle_t;

/* One owner that was found. */
typedef struct spill_oversized {
    spill_value_t owner; /* borrowed */
    int64_t elements;
    int64_t bytes; /* of the array */
    bool ours;     /* the array is managed: it has Spillway's bookkeeping */
    bool full;     /* it is unmanaged, and its document has hardly room for bookkeeping */
    spill_obstacle_t obstacle;
} spill_oversized_t;

/* Append an entry to the array document `found`, at `index`. */
void spill_oversized_append(const spill_oversized_t *oversized, uint32_t index, bson_t *found);

/*
 * Read the entry at `iter`; return false if it is not valid. An entry without an obstacle field is
 * from a store without the server's limit: there a full document with one element has no room.
 */
bool spill_oversized_read(const bson_iter_t *iter, spill_oversized_t *oversized);

#endif
