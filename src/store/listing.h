/*
 * Listings: what a store finds among all owners of an array, or among all windows of an owner. A
 * store returns the items in batches (spill_store_ops_t.list); a cursor walks over the batches.
 */
#ifndef SPILL_STORE_LISTING_H
#define SPILL_STORE_LISTING_H

#include "util/buffer.h"

#include <spillway/store.h>
#include <spillway/value.h>

struct spill_binding;

/* ---- queries --------------------------------------------------------------------------------- */

typedef enum spill_list {
    /*
     * Owners that have a head, in the store's order. If one cannot be read, the batch ends before
     * it, and the next batch is the error. With owners.unmanaged, a store with other writers also
     * lists owners of unmanaged arrays that are not empty, in the same order.
     */
    SPILL_LIST_OWNERS,
    /*
     * Owners whose head needs a reshape: unmanaged arrays that are not empty, and managed ones for
     * which a condition of the query holds. In the order of SPILL_LIST_OWNERS.
     */
    SPILL_LIST_OVERSIZED,
    /*
     * Incarnations that have pages and no head, in an order of the store. Those of one owner are
     * adjacent, ascending, and all in one batch. The store reads pages first, then heads.
     */
    SPILL_LIST_ORPHANS,
    /*
     * Layout bucket: an owner's windows that have a head, in the query's order. Dropped windows
     * that still have parts may be among them.
     */
    SPILL_LIST_WINDOWS,
    SPILL_LISTS
} spill_list_t;

/* Which items. All pointers are borrowed during the call. */
typedef struct spill_list_query {
    spill_list_t list;
    /*
     * Only items behind this position, which an earlier batch left in listing.last (no bytes: from
     * the start). Of windows it is the text of one, between `from` and `to`, zero-terminated.
     */
    const uint8_t *after;
    size_t after_bytes;
    size_t limit; /* 1..1000: of items; SPILL_LIST_ORPHANS: of owners */
    union {
        struct { /* SPILL_LIST_OWNERS */
            bool unmanaged;
        } owners;
        struct {            /* SPILL_LIST_OVERSIZED */
            int64_t slots;  /* condition: at least this many slots (deleted numbers count) */
            int64_t bytes;  /* condition: a document of at least this many bytes */
            int64_t full;   /* a document of at least this many bytes is full; 0: none is */
            bool miscounts; /* condition: a count field in the document is wrong */
        } oversized;
        struct {                        /* SPILL_LIST_ORPHANS */
            const spill_value_t *owner; /* only this owner, in one batch; NULL: all */
        } orphans;
        struct { /* SPILL_LIST_WINDOWS */
            const spill_value_t *owner;
            const char *from; /* the lowest text, included; NULL: no bound */
            const char *to;   /* the highest, included; NULL: no bound */
            bool newest_first;
            /*
             * Not NULL: only windows that an index lists for this id, the oldest first. Some of
             * them may no longer have such an element. The definition must have an id_field.
             */
            const spill_value_t *id;
        } windows;
    };
} spill_list_query_t;

/* SPILL_LIST_WINDOWS: the text of `after`, or NULL. */
const char *spill_list_after_window(const spill_list_query_t *query);

/* ---- items ----------------------------------------------------------------------------------- */

/* Why an unmanaged array cannot be adopted. */
typedef enum spill_obstacle {
    SPILL_OBSTACLE_NONE,
    SPILL_OBSTACLE_ROOM,   /* even with only its newest element, the document has no room */
    SPILL_OBSTACLE_ELEMENT /* an older element needs a page above the size limit */
} spill_obstacle_t;

typedef struct spill_oversized {
    spill_value_t owner; /* borrowed */
    int64_t elements;
    int64_t bytes;          /* of the array */
    int64_t document_bytes; /* of the whole document, if the array is unmanaged */
    bool managed;           /* the array is managed: it has Spillway's bookkeeping */
    bool full;              /* it is unmanaged, and its document has hardly room for bookkeeping */
    spill_obstacle_t obstacle;
} spill_oversized_t;

/* What a server has in the place of the head of pages without a head. */
typedef enum spill_orphan_owner {
    SPILL_ORPHAN_UNKNOWN,     /* the store does not say it */
    SPILL_ORPHAN_NO_DOCUMENT, /* no document has the owner's _id: it was deleted */
    SPILL_ORPHAN_PLAIN,       /* a document without the array's bookkeeping */
    SPILL_ORPHAN_MANAGED      /* a head of a later incarnation */
} spill_orphan_owner_t;

typedef struct spill_orphan {
    spill_value_t owner; /* borrowed */
    int64_t incarnation; /* of the pages: the owner has no head, or one of a later incarnation */
    int64_t pages;       /* at least one; with keep oldest only pages that have elements */
    /*
     * The owner is known to be dropped: pages of this and of earlier incarnations may be deleted.
     * Otherwise (on a server without a note of the drop) another program may have deleted or
     * replaced the head's document, and the pages have the only copy of their elements.
     */
    bool dropped;
    spill_orphan_owner_t now;
    /*
     * Not 0: this number of documents has the fields of a page, but not its _id, and `example` is
     * the _id of one as JSON. They have no head, incarnation or pages, and if all owners are
     * listed, no owner.
     */
    int64_t strays;
    char example[80];
} spill_orphan_t;

/* One item. The kind of the list says which member it has. */
typedef union spill_item {
    spill_value_t owner;         /* SPILL_LIST_OWNERS: the _id, as it is stored */
    spill_oversized_t oversized; /* SPILL_LIST_OVERSIZED */
    spill_orphan_t orphan;       /* SPILL_LIST_ORPHANS */
    const char *text;            /* SPILL_LIST_WINDOWS; also the name of a catalog entry */
} spill_item_t;

/* ---- a batch of items ------------------------------------------------------------------------ */

/*
 * An entry has an offset into the arena, because the arena moves when the listing grows;
 * spill_listing_item resolves it.
 */
typedef struct spill_listing_entry {
    spill_item_t item;
    size_t offset; /* of the owner's bytes, or of the text */
    bool is_text;
} spill_listing_entry_t;

/*
 * Items of one kind, with copies of their owners or texts. The caller owns it: start with
 * SPILL_LISTING_INIT, and release it after the last use.
 */
typedef struct spill_listing {
    spill_listing_entry_t *entries;
    size_t count;
    size_t capacity;
    spill_buffer_t arena;
    spill_buffer_t last; /* the position behind which the next batch begins */
} spill_listing_t;

#define SPILL_LISTING_INIT                                                                         \
    {                                                                                              \
        0                                                                                          \
    }

/* For stores: add a copy of an item. Of texts, also set `last`. */
void spill_listing_add_owner(spill_listing_t *listing, const spill_value_t *owner);
void spill_listing_add_oversized(spill_listing_t *listing, const spill_oversized_t *oversized);
void spill_listing_add_orphan(spill_listing_t *listing, const spill_orphan_t *orphan);
void spill_listing_add_text(spill_listing_t *listing, const char *text, size_t text_bytes);
void spill_listing_set_last(spill_listing_t *listing, const void *position, size_t bytes);

/* The item with that index. It borrows from the listing, until that changes. */
spill_item_t spill_listing_item(const spill_listing_t *listing, size_t index);

void spill_listing_clear(spill_listing_t *listing);   /* empty, memory kept */
void spill_listing_release(spill_listing_t *listing); /* zero and free */

/*
 * List the next batch: up to `limit` items. The listing is cleared first. It is empty if there are
 * no items behind query->after, and after an error. Memory: O(limit).
 */
spill_code_t spill_store_list(spill_store_t *store, const spill_definition_t *definition,
                              const struct spill_binding *binding, const spill_list_query_t *query,
                              spill_listing_t *listing, spill_error_t *error);

/* ---- a walk over all batches ----------------------------------------------------------------- */

/*
 * A cursor holds one batch, and nothing of the store between two calls. The store, the definition,
 * the binding and what the query points to must outlive it. One thread at a time may use it.
 */
typedef struct spill_cursor {
    spill_store_t *store;
    const spill_definition_t *definition;
    const struct spill_binding *binding;
    spill_list_query_t query; /* `after` is the cursor's own; each batch has up to `limit` items */
    size_t limit_max;         /* if above query.limit, each batch may have four times as many */
    spill_listing_t listing;  /* the batch */
    size_t next;              /* the index in the batch of the next item */
    spill_buffer_t after;     /* the bytes of query.after */
    spill_item_t item;
    bool ended; /* no items are left behind the batch */
} spill_cursor_t;

/*
 * Move to the next item; *item = NULL at the end, and after an error. The item and what it borrows
 * are valid until the next call. Cost: for each batch, one call of the store.
 */
spill_code_t spill_cursor_next(spill_cursor_t *cursor, const spill_item_t **item,
                               spill_error_t *error);

/* Is it known that no item follows? Only a cursor over windows can know that before the end. */
bool spill_cursor_at_end(const spill_cursor_t *cursor);

void spill_cursor_release(spill_cursor_t *cursor);

/* ---- keys of windows ------------------------------------------------------------------------- */

/*
 * The range of owner keys of one owner's windows (layout bucket) that a query selects, for stores
 * that keep owners in key order. See definition/schema.h for the names of windows.
 */
typedef struct spill_window_keys {
    spill_buffer_t prefix; /* of all windows of the owner */
    spill_buffer_t low;    /* included */
    spill_buffer_t high;   /* not included */
} spill_window_keys_t;

/* Release it in every case. SPILL_INVALID: the value cannot be an owner. */
spill_code_t spill_window_keys_init(spill_window_keys_t *keys, const spill_list_query_t *query,
                                    spill_error_t *error);
void spill_window_keys_release(spill_window_keys_t *keys);

/* Is the key between low and high? */
bool spill_window_keys_hold(const spill_window_keys_t *keys, const uint8_t *key, size_t key_bytes);

/* Add the text of the window that has this key, which is between low and high. */
void spill_window_keys_list(const spill_window_keys_t *keys, const uint8_t *key, size_t key_bytes,
                            spill_listing_t *listing);

#endif
