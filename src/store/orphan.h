/* Incarnations of owners that have pages, and no head. */
#ifndef SPILL_STORE_ORPHAN_H
#define SPILL_STORE_ORPHAN_H

#include <spillway/value.h>

#include <stddef.h>
#include <stdint.h>

typedef struct spill_orphan_query {
    const uint8_t *after;       /* a place that an earlier call left in `last`; */
    size_t after_bytes;         /* 0: from the start */
    size_t limit;               /* of owners, <= 1000 */
    const spill_value_t *owner; /* of this one alone; NULL: of all */
} spill_orphan_query_t;

/* One of them. */
typedef struct spill_orphan {
    spill_value_t owner; /* borrowed */
    int64_t incarnation; /* its own: the owner has no head, or one of a later incarnation */
    int64_t pages;       /* at least one; with keep oldest those that hold elements */
    /*
     * It is known that the owner was dropped: pages of this and of earlier incarnations may go.
     * Else (always on a server) another program may have deleted or replaced the head's document,
     * and what is in the pages is nowhere else.
     */
    bool dropped;
} spill_orphan_t;

/* Append one to an array document, at place `index`. */
void spill_orphan_append(const spill_orphan_t *orphan, uint32_t index, bson_t *found);

/* Read the one that `iter` stands at. False: it is none. */
bool spill_orphan_read(const bson_iter_t *iter, spill_orphan_t *orphan);

#endif
