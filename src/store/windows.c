#include "store/windows.h"

#include "bson/key.h"

#include <string.h>

/* The bytes after a text in a key: the ends of the string and of the document. */
enum { KEY_TAIL = 3 };

static spill_code_t key_of(const spill_value_t *owner, const char *text, spill_buffer_t *key,
                           spill_error_t *error)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_bucket_name(&storage, owner, text);
    spill_code_t code = spill_owner_key(&name, key, error);
    bson_destroy(&storage);
    return code;
}

spill_code_t spill_window_keys_init(spill_window_keys_t *keys, const spill_window_query_t *query,
                                    spill_error_t *error)
{
    *keys = (spill_window_keys_t){SPILL_BUFFER_INIT, SPILL_BUFFER_INIT, SPILL_BUFFER_INIT};
    const char *low = query->newest_first || !query->last ? query->from : query->last;
    const char *high = query->newest_first && query->last ? query->last : query->to;
    bool after_low = !query->newest_first && query->last;
    bool before_high = query->newest_first && query->last;
    spill_code_t code = key_of(query->owner, "", &keys->prefix, error);
    if (code != SPILL_OK)
        return code;
    keys->prefix.size -= KEY_TAIL;
    if (low)
        code = key_of(query->owner, low, &keys->low, error);
    else
        spill_buffer_append(&keys->low, keys->prefix.data, keys->prefix.size);
    if (code == SPILL_OK && high)
        code = key_of(query->owner, high, &keys->high, error);
    else if (code == SPILL_OK)
        spill_buffer_append(&keys->high, keys->prefix.data, keys->prefix.size);
    /* A key with a zero appended is the next higher key. No text begins with 0xff. */
    if (after_low)
        spill_buffer_append_byte(&keys->low, 0);
    if (!high)
        spill_buffer_append_byte(&keys->high, 0xff);
    else if (!before_high)
        spill_buffer_append_byte(&keys->high, 0);
    return code;
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
                            uint32_t position, bson_t *texts)
{
    char buffer[16];
    const char *index;
    bson_uint32_to_string(position, &index, buffer, sizeof buffer);
    bson_append_utf8(texts, index, -1, (const char *)key + keys->prefix.size,
                     (int)(key_bytes - keys->prefix.size - KEY_TAIL));
}
