#include "store/embedded/embedded.h"

#include "bson/value.h"
#include "store/embedded/embedded_codec.h"
#include "util/error.h"

#include <string.h>

/*
 * List owners from the records of the heads' other fields, which have the _id and are adjacent.
 * Skip owners without a head in this array. Include a head with a damaged record: the next read of
 * that head reports the damage.
 */
typedef struct listing {
    spill_embedded_t *store;
    const spill_binding_t *binding;
    size_t limit;
    bson_t *owners;
    uint32_t count;
    spill_buffer_t *last;
} listing_t;

static spill_code_t has_head(spill_kv_t *kv, uint32_t array_id, const uint8_t *owner,
                             size_t owner_bytes, bool *has, spill_error_t *error)
{
    spill_record_key_t key;
    spill_buffer_t value = SPILL_BUFFER_INIT;
    spill_record_key_init(&key, array_id, owner, owner_bytes);
    spill_record_key_kind(&key, SPILL_RECORD_HEAD);
    spill_code_t code = kv->ops->get(kv, key.data, key.size, &value, has, error);
    spill_buffer_release(&value);
    if (code != SPILL_CORRUPT)
        return code;
    *has = true;
    return SPILL_OK;
}

static void add_id(listing_t *listing, const spill_value_t *id)
{
    char text[16];
    const char *key;
    bson_uint32_to_string(listing->count++, &key, text, sizeof text);
    spill_value_append(id, listing->owners, key);
}

/* Fail for an unreadable record of other fields, and name the owner by the key. */
static spill_code_t fail_fields(const listing_t *listing, const uint8_t *owner, size_t owner_bytes,
                                spill_error_t *error)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value;
    char *json = spill_owner_from_key(owner, owner_bytes, &storage, &value)
                     ? spill_value_to_json(&value, false)
                     : NULL;
    spill_code_t code = spill_fail(error, SPILL_CORRUPT,
                                   "%s: owner %.100s: the record of the other fields cannot be "
                                   "read; restore a backup",
                                   listing->store->base.uri, json ? json : "?");
    bson_free(json);
    bson_destroy(&storage);
    return code;
}

static spill_code_t add_owner(void *context, const spill_kv_iter_t *iter, bool *more,
                              spill_error_t *error)
{
    listing_t *listing = context;
    const uint8_t *owner = iter->key + 4;
    size_t owner_bytes = iter->key_bytes - 4;
    bool has = false;
    spill_code_t code =
        has_head(listing->store->kv, listing->binding->array_id, owner, owner_bytes, &has, error);
    if (code != SPILL_OK || !has)
        return code;
    bson_t fields;
    bson_iter_t at;
    if (!spill_fields_decode(iter->value, iter->value_bytes, owner, owner_bytes, &fields) ||
        !bson_iter_init_find(&at, &fields, "_id"))
        return fail_fields(listing, owner, owner_bytes, error);
    spill_value_t id = spill_value_from_iter(&at);
    add_id(listing, &id);
    spill_buffer_clear(listing->last);
    spill_buffer_append(listing->last, owner, owner_bytes);
    *more = listing->count < listing->limit;
    return SPILL_OK;
}

spill_code_t spill_embedded_owners(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_binding_t *binding, const uint8_t *after,
                                   size_t after_bytes, size_t limit, bson_t *owners,
                                   spill_buffer_t *last, spill_error_t *error)
{
    (void)definition;
    listing_t listing = {.store = (spill_embedded_t *)store,
                         .binding = binding,
                         .limit = limit,
                         .owners = owners,
                         .last = last};
    bson_init(owners);
    spill_buffer_clear(last);
    spill_code_t code = spill_embedded_each_fields(listing.store, binding->collection_id, after,
                                                   after_bytes, add_owner, &listing, error);
    if (code == SPILL_OK || listing.count > 0) /* the next call returns the error */
        return SPILL_OK;
    bson_destroy(owners);
    return code;
}

/* ---- windows of an owner --------------------------------------------------------------------- */

/* Go to the first window in the query's order. */
static void seek_window(spill_kv_iter_t *iter, const spill_buffer_t *bound, uint32_t collection_id,
                        bool newest_first)
{
    spill_buffer_t key = SPILL_BUFFER_INIT;
    uint8_t id[4];
    spill_id_prefix(id, collection_id);
    spill_buffer_append(&key, id, sizeof id);
    spill_buffer_append(&key, bound->data, bound->size);
    if (newest_first)
        iter->ops->seek_before(iter, key.data, key.size);
    else
        iter->ops->seek(iter, key.data, key.size);
    spill_buffer_release(&key);
}

/* Like owners, windows are listed from the records of other fields. */
static spill_code_t list_windows(spill_embedded_t *store, const spill_binding_t *binding,
                                 const spill_window_query_t *query, const spill_window_keys_t *keys,
                                 bson_t *texts, spill_error_t *error)
{
    uint8_t id[4];
    uint32_t count = 0;
    spill_buffer_t place = SPILL_BUFFER_INIT;
    spill_kv_iter_t *iter = store->kv->ops->iterate(store->kv);
    spill_code_t code = SPILL_OK;
    spill_id_prefix(id, binding->collection_id);
    seek_window(iter, query->newest_first ? &keys->high : &keys->low, binding->collection_id,
                query->newest_first);
    while (code == SPILL_OK && count < query->limit && iter->valid && iter->key_bytes > 4 &&
           memcmp(iter->key, id, 4) == 0 &&
           spill_window_keys_hold(keys, iter->key + 4, iter->key_bytes - 4)) {
        bool has = false;
        spill_buffer_clear(&place);
        spill_buffer_append(&place, iter->key + 4, iter->key_bytes - 4);
        code = has_head(store->kv, binding->array_id, place.data, place.size, &has, error);
        if (code == SPILL_OK && has)
            spill_window_keys_list(keys, place.data, place.size, count++, texts);
        if (query->newest_first)
            seek_window(iter, &place, binding->collection_id, true);
        else
            iter->ops->next(iter);
    }
    if (code == SPILL_OK && !iter->valid)
        code = iter->ops->status(iter, error);
    iter->ops->free(iter);
    spill_buffer_release(&place);
    return code;
}

spill_code_t spill_embedded_windows(spill_store_t *store, const spill_definition_t *definition,
                                    const spill_binding_t *binding,
                                    const spill_window_query_t *query, bson_t *texts,
                                    spill_error_t *error)
{
    (void)definition;
    spill_window_keys_t keys;
    if (query->id)
        return spill_embedded_windows_with_id((spill_embedded_t *)store, binding->array_id, query,
                                              texts, error);
    spill_code_t code = spill_window_keys_init(&keys, query, error);
    if (code == SPILL_OK) {
        bson_init(texts);
        code = list_windows((spill_embedded_t *)store, binding, query, &keys, texts, error);
        if (code != SPILL_OK)
            bson_destroy(texts);
    }
    spill_window_keys_release(&keys);
    return code;
}

/* ---- deleting the rest of an array ----------------------------------------------------------- */

void spill_embedded_pass_owner(spill_kv_iter_t *iter, spill_record_key_t *owner)
{
    spill_record_key_kind(owner, SPILL_RECORD_END);
    iter->ops->seek(iter, owner->data, owner->size);
    while (iter->valid && spill_record_key_kind_of(owner, iter->key, iter->key_bytes) != 0)
        iter->ops->next(iter); /* of an unknown kind */
}

/* *any: the array has a record. *head: one of its owners has a head. */
static spill_code_t find_heads(spill_kv_iter_t *iter, uint32_t array_id, bool *any, bool *head,
                               spill_error_t *error)
{
    spill_record_key_t key;
    spill_record_key_init(&key, array_id, NULL, 0);
    iter->ops->seek(iter, key.data, key.size);
    *any = *head = false;
    while (!*head && iter->valid && iter->key_bytes > 4 && memcmp(iter->key, key.data, 4) == 0) {
        const uint8_t *owner = iter->key + 4;
        size_t length = spill_owner_key_length(owner, iter->key_bytes - 4);
        *any = true;
        if (length == 0 || length > SPILL_OWNER_KEY_MAX || iter->key_bytes == 4 + length) {
            iter->ops->next(iter); /* not an owner's record */
            continue;
        }
        spill_record_key_init(&key, array_id, owner, length);
        spill_record_key_kind(&key, SPILL_RECORD_HEAD);
        iter->ops->seek(iter, key.data, key.size);
        *head = iter->valid && iter->key_bytes == key.size &&
                memcmp(iter->key, key.data, key.size) == 0;
        spill_embedded_pass_owner(iter, &key);
    }
    return iter->valid ? SPILL_OK : iter->ops->status(iter, error);
}

spill_code_t spill_embedded_delete_array(spill_embedded_t *store, spill_batch_t *batch,
                                         uint32_t array_id, bool *deleted, spill_error_t *error)
{
    bool any, head;
    spill_kv_iter_t *iter = store->kv->ops->iterate(store->kv);
    spill_code_t code = find_heads(iter, array_id, &any, &head, error);
    iter->ops->free(iter);
    *deleted = code == SPILL_OK && !head;
    if (!*deleted || !any)
        return code;
    uint8_t from[4], to[5];
    spill_id_prefix(from, array_id);
    spill_id_prefix(to, array_id);
    to[4] = 0xff; /* no owner's key begins with it */
    spill_batch_delete_range(batch, from, sizeof from, to, sizeof to);
    return SPILL_OK;
}
