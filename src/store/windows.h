/* Listing one owner's windows (layout bucket). See definition/window.h for how they are named. */
#ifndef SPILL_STORE_WINDOWS_H
#define SPILL_STORE_WINDOWS_H

#include "util/buffer.h"

#include <spillway/bucket.h>

/* Which windows of an owner. Texts may be NULL: no bound. */
typedef struct spill_window_query {
    const spill_value_t *owner;
    const char *from; /* the lowest text, included */
    const char *to;   /* the highest, included */
    const char *last; /* only windows behind this one in the query's order; between from and to */
    bool newest_first;
    size_t limit; /* 1..1000 */
    /*
     * Not NULL: only windows that an index lists for this id, the oldest first. Some of them may no
     * longer have such an element. The definition must have an id_field.
     */
    const spill_value_t *id;
} spill_window_query_t;

/* The range of owner keys that a query selects, for stores that keep owners in key order. */
typedef struct spill_window_keys {
    spill_buffer_t prefix; /* of all windows of the owner */
    spill_buffer_t low;    /* included */
    spill_buffer_t high;   /* not included */
} spill_window_keys_t;

/* Release it in every case. SPILL_INVALID: the value cannot be an owner. */
spill_code_t spill_window_keys_init(spill_window_keys_t *keys, const spill_window_query_t *query,
                                    spill_error_t *error);
void spill_window_keys_release(spill_window_keys_t *keys);

/* Is the key between low and high? */
bool spill_window_keys_hold(const spill_window_keys_t *keys, const uint8_t *key, size_t key_bytes);

/* Append the text of the window that has this key, which is between low and high, to an array. */
void spill_window_keys_list(const spill_window_keys_t *keys, const uint8_t *key, size_t key_bytes,
                            uint32_t position, bson_t *texts);

#endif
