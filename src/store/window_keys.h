/* Owner keys of one owner's windows (layout bucket). See definition/window.h for their names. */
#ifndef SPILL_STORE_WINDOW_KEYS_H
#define SPILL_STORE_WINDOW_KEYS_H

#include "store/listing.h"

/* The range of owner keys that a query selects, for stores that keep owners in key order. */
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
