#include "store/window_keys.h"

#include "bson/key.h"
#include "util/error.h"

#include <spillway/bucket.h>

#include <string.h>

/* The bytes after a text in a key: the ends of the string and of the document. */
enum { KEY_TAIL = 3 };

static spill_code_t key_of(const spill_value_t *owner, const char *text, spill_buffer_t *key,
                           spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_bucket_name(&storage, owner, text);
    return spill_owner_key(&name, key, error);
}

/* The key of the window with that text; NULL: the bytes with which the keys of all windows begin.
 */
static spill_code_t bound_of(const spill_window_keys_t *keys, const spill_value_t *owner,
                             const char *text, spill_buffer_t *bound, spill_error_t *error)
{
    if (text)
        return key_of(owner, text, bound, error);
    spill_buffer_append(bound, keys->prefix.data, keys->prefix.size);
    return SPILL_OK;
}

spill_code_t spill_window_keys_init(spill_window_keys_t *keys, const spill_list_query_t *query,
                                    spill_error_t *error)
{
    *keys = (spill_window_keys_t){SPILL_BUFFER_INIT, SPILL_BUFFER_INIT, SPILL_BUFFER_INIT};
    const spill_value_t *owner = query->windows.owner;
    const char *after = spill_list_after_window(query);
    bool after_low = after && !query->windows.newest_first;
    bool before_high = after && query->windows.newest_first;
    const char *low = after_low ? after : query->windows.from;
    const char *high = before_high ? after : query->windows.to;
    SPILL_TRY(key_of(owner, "", &keys->prefix, error));
    keys->prefix.size -= KEY_TAIL;
    SPILL_TRY(bound_of(keys, owner, low, &keys->low, error));
    SPILL_TRY(bound_of(keys, owner, high, &keys->high, error));
    /* A key with a zero appended is the next higher key. No text begins with 0xff. */
    if (after_low)
        spill_buffer_append_byte(&keys->low, 0);
    if (!high)
        spill_buffer_append_byte(&keys->high, 0xff);
    else if (!before_high)
        spill_buffer_append_byte(&keys->high, 0);
    return SPILL_OK;
}

void spill_window_keys_release(spill_window_keys_t *keys)
{
    spill_buffer_release(&keys->prefix);
    spill_buffer_release(&keys->low);
    spill_buffer_release(&keys->high);
}

static int compare(const uint8_t *left, size_t left_bytes, const spill_buffer_t *right)
{
    size_t common = left_bytes < right->size ? left_bytes : right->size;
    int order = common > 0 ? memcmp(left, right->data, common) : 0;
    return order != 0 ? order : (left_bytes > right->size) - (left_bytes < right->size);
}

bool spill_window_keys_hold(const spill_window_keys_t *keys, const uint8_t *key, size_t key_bytes)
{
    return key_bytes > keys->prefix.size + KEY_TAIL &&
           memcmp(key, keys->prefix.data, keys->prefix.size) == 0 &&
           compare(key, key_bytes, &keys->low) >= 0 && compare(key, key_bytes, &keys->high) < 0;
}

void spill_window_keys_list(const spill_window_keys_t *keys, const uint8_t *key, size_t key_bytes,
                            spill_listing_t *listing)
{
    spill_listing_add_text(listing, (const char *)key + keys->prefix.size,
                           key_bytes - keys->prefix.size - KEY_TAIL);
}
