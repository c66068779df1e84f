/* Incarnations of owners that have pages but no head. */
#ifndef SPILL_STORE_ORPHAN_H
#define SPILL_STORE_ORPHAN_H

#include <spillway/value.h>

#include <stddef.h>
#include <stdint.h>

typedef struct spill_orphan_query {
    const uint8_t *after;       /* a position that an earlier call left in `last` */
    size_t after_bytes;         /* 0: from the start */
    size_t limit;               /* of owners, <= 1000 */
    const spill_value_t *owner; /* only this owner; NULL: all */
} spill_orphan_query_t;

/* One such incarnation. */
typedef struct spill_orphan {
    spill_value_t owner; /* borrowed */
    int64_t incarnation; /* of the pages: the owner has no head, or one of a later incarnation */
    int64_t pages;       /* at least one; with keep oldest only pages that have elements */
    /*
     * The owner is known to be dropped: pages of this and of earlier incarnations may be deleted.
     * Otherwise (always on a server) another program may have deleted or replaced the head's
     * document, and the pages have the only copy of their elements.
     */
    bool dropped;
} spill_orphan_t;

/* Append an entry to the array document `found`, at `index`. */
void spill_orphan_append(const spill_orphan_t *orphan, uint32_t index, bson_t *found);

/* Read the entry at `iter`; return false if it is not valid. */
bool spill_orphan_read(const bson_iter_t *iter, spill_orphan_t *orphan);

#endif
