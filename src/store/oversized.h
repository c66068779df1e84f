/* Which heads have grown past what they are meant to hold, or are not laid out at all. */
#ifndef SPILL_STORE_OVERSIZED_H
#define SPILL_STORE_OVERSIZED_H

#include <spillway/value.h>

#include <stddef.h>
#include <stdint.h>

/* The array is of others and not empty; or it is ours, and one of these holds. */
typedef struct spill_oversized_query {
    const uint8_t *after; /* a place that an earlier call left in `last`; */
    size_t after_bytes;   /* 0: from the start */
    size_t limit;         /* <= 1000 */
    int64_t slots;        /* it has at least so many (removed numbers in it count), */
    int64_t bytes;        /* or its document so many bytes, */
    bool counts;          /* or a count that the document shows is not that of the array */
    int64_t full;         /* a document of at least so many bytes is full; 0: none is */
} spill_oversized_query_t;

/* Why an unmanaged array cannot be adopted. */
typedef enum spill_obstacle {
    SPILL_OBSTACLE_NONE,
    SPILL_OBSTACLE_ROOM,   /* with only its newest element the document has no room for more */
    SPILL_OBSTACLE_ELEMENT /* an element but the newest needs a page that passes the size limit */
} spill_obstacle_t;

/* One of the owners that were found. */
typedef struct spill_oversized {
    spill_value_t owner; /* borrowed */
    int64_t elements;
    int64_t bytes; /* of the array */
    bool ours;     /* it has Spillway's bookkeeping */
    bool full;     /* it is not ours, and its document has hardly room for bookkeeping */
    spill_obstacle_t obstacle;
} spill_oversized_t;

/* Append one to an array document, at place `index`. */
void spill_oversized_append(const spill_oversized_t *oversized, uint32_t index, bson_t *found);

/*
 * Read the one that `iter` stands at. False: it is none. An entry without an obstacle is from a
 * store without the server's limit: there a full document with one element has no room.
 */
bool spill_oversized_read(const bson_iter_t *iter, spill_oversized_t *oversized);

#endif
