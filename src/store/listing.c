#include "store/listing.h"

#include "bson/key.h"
#include "store/timed.h"
#include "util/buffer.h"
#include "util/error.h"

#include <spillway/bucket.h>

#include <assert.h>
#include <string.h>

const char *spill_list_after_window(const spill_list_query_t *query)
{
    assert(query->list == SPILL_LIST_WINDOWS);
    return query->after_bytes > 0 ? (const char *)query->after : NULL;
}

/* ---- a batch of items ------------------------------------------------------------------------ */

static void add_entry(spill_listing_t *listing, const spill_item_t *item, const void *bytes,
                      size_t size, bool is_text)
{
    if (listing->count == listing->capacity) {
        listing->capacity = listing->capacity < 8 ? 8 : listing->capacity * 2;
        listing->entries =
            bson_realloc(listing->entries, listing->capacity * sizeof *listing->entries);
    }
    listing->entries[listing->count++] =
        (spill_listing_entry_t){.item = *item, .offset = listing->arena.size, .is_text = is_text};
    if (size > 0)
        spill_buffer_append(&listing->arena, bytes, size);
}

void spill_listing_add_owner(spill_listing_t *listing, const spill_value_t *owner)
{
    spill_item_t item = {.owner = *owner};
    add_entry(listing, &item, owner->data, owner->size_bytes, false);
}

void spill_listing_add_oversized(spill_listing_t *listing, const spill_oversized_t *oversized)
{
    spill_item_t item = {.oversized = *oversized};
    add_entry(listing, &item, oversized->owner.data, oversized->owner.size_bytes, false);
}

void spill_listing_add_orphan(spill_listing_t *listing, const spill_orphan_t *orphan)
{
    spill_item_t item = {.orphan = *orphan};
    add_entry(listing, &item, orphan->owner.data, orphan->owner.size_bytes, false);
}

void spill_listing_add_text(spill_listing_t *listing, const char *text, size_t text_bytes)
{
    spill_item_t item = {.text = NULL};
    add_entry(listing, &item, text, text_bytes, true);
    spill_buffer_append_byte(&listing->arena, 0);
    spill_buffer_clear(&listing->last);
    spill_buffer_append(&listing->last, text, text_bytes);
    spill_buffer_append_byte(&listing->last, 0);
}

void spill_listing_set_last(spill_listing_t *listing, const void *position, size_t bytes)
{
    spill_buffer_clear(&listing->last);
    spill_buffer_append(&listing->last, position, bytes);
}

spill_item_t spill_listing_item(const spill_listing_t *listing, size_t index)
{
    assert(index < listing->count);
    const spill_listing_entry_t *entry = &listing->entries[index];
    spill_item_t item = entry->item;
    if (entry->is_text)
        item.text = (const char *)listing->arena.data + entry->offset;
    else /* all other members begin with an owner */
        item.owner.data = item.owner.size_bytes > 0 ? listing->arena.data + entry->offset : NULL;
    return item;
}

void spill_listing_clear(spill_listing_t *listing)
{
    listing->count = 0;
    spill_buffer_clear(&listing->arena);
    spill_buffer_clear(&listing->last);
}

void spill_listing_release(spill_listing_t *listing)
{
    bson_free(listing->entries);
    spill_buffer_release(&listing->arena);
    spill_buffer_release(&listing->last);
    *listing = (spill_listing_t)SPILL_LISTING_INIT;
}

spill_code_t spill_store_list(spill_store_t *store, const spill_definition_t *definition,
                              const spill_binding_t *binding, const spill_list_query_t *query,
                              spill_listing_t *listing, spill_error_t *error)
{
    assert(query->list < SPILL_LISTS && query->limit >= 1 && query->limit <= 1000);
    spill_listing_clear(listing);
    spill_list_fn *list = spill_timed_is_set() ? spill_timed_list : store->ops->list[query->list];
    spill_code_t code = list(store, definition, binding, query, listing, error);
    if (code != SPILL_OK)
        spill_listing_clear(listing);
    return code;
}

/* ---- a walk over all batches ----------------------------------------------------------------- */

/* Is this batch the last one? Only of windows does a short batch say so. */
static bool is_last_batch(const spill_cursor_t *cursor)
{
    const spill_list_query_t *query = &cursor->query;
    if (query->list == SPILL_LIST_WINDOWS)
        return cursor->listing.count < query->limit;
    return cursor->listing.count == 0 ||
           (query->list == SPILL_LIST_ORPHANS && query->orphans.owner);
}

static spill_code_t fetch_batch(spill_cursor_t *cursor, spill_error_t *error)
{
    spill_list_query_t *query = &cursor->query;
    cursor->next = 0;
    cursor->ended = true;
    SPILL_TRY(spill_store_list(cursor->store, cursor->definition, cursor->binding, query,
                               &cursor->listing, error));
    cursor->ended = is_last_batch(cursor);
    spill_buffer_clear(&cursor->after);
    spill_buffer_append(&cursor->after, cursor->listing.last.data, cursor->listing.last.size);
    query->after = cursor->after.data;
    query->after_bytes = cursor->after.size;
    if (query->limit < cursor->limit_max)
        query->limit = 4 * query->limit < cursor->limit_max ? 4 * query->limit : cursor->limit_max;
    return SPILL_OK;
}

spill_code_t spill_cursor_next(spill_cursor_t *cursor, const spill_item_t **item,
                               spill_error_t *error)
{
    *item = NULL;
    if (cursor->next == cursor->listing.count && !cursor->ended)
        SPILL_TRY(fetch_batch(cursor, error));
    if (cursor->next == cursor->listing.count)
        return SPILL_OK;
    cursor->item = spill_listing_item(&cursor->listing, cursor->next++);
    *item = &cursor->item;
    return SPILL_OK;
}

bool spill_cursor_at_end(const spill_cursor_t *cursor)
{
    return cursor->ended && cursor->next == cursor->listing.count;
}

void spill_cursor_release(spill_cursor_t *cursor)
{
    spill_listing_release(&cursor->listing);
    spill_buffer_release(&cursor->after);
}

/* ---- keys of windows ------------------------------------------------------------------------- */

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

bool spill_window_keys_hold(const spill_window_keys_t *keys, const uint8_t *key, size_t key_bytes)
{
    return key_bytes > keys->prefix.size + KEY_TAIL &&
           memcmp(key, keys->prefix.data, keys->prefix.size) == 0 &&
           spill_bytes_compare(key, key_bytes, keys->low.data, keys->low.size) >= 0 &&
           spill_bytes_compare(key, key_bytes, keys->high.data, keys->high.size) < 0;
}

void spill_window_keys_list(const spill_window_keys_t *keys, const uint8_t *key, size_t key_bytes,
                            spill_listing_t *listing)
{
    spill_listing_add_text(listing, (const char *)key + keys->prefix.size,
                           key_bytes - keys->prefix.size - KEY_TAIL);
}
