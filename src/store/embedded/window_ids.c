/*
 * Layout bucket: the index of ids over all windows of an owner. It says which windows have an
 * element with an id. The ordinary index of ids then finds the element in the window.
 */
#include "store/embedded/embedded.h"

#include "definition/schema.h"
#include "definition/window.h"

#include <string.h>

bool spill_embedded_window_entry(const spill_request_t *request, uint32_t array_id,
                                 const spill_buffer_t *id, int64_t incarnation, int64_t seq,
                                 spill_record_key_t *key)
{
    spill_value_t owner;
    const char *window;
    spill_buffer_t owner_key = SPILL_BUFFER_INIT;
    if (!spill_schema_of(request->definition)->has_windows ||
        !spill_window_split(request->owner, &owner, &window))
        return false;
    bool valid = spill_owner_key(&owner, &owner_key, NULL) == SPILL_OK;
    if (valid) {
        spill_record_key_init(key, array_id, owner_key.data, owner_key.size);
        spill_record_key_window_id(key, id, window, incarnation, seq);
    }
    spill_buffer_release(&owner_key);
    return valid;
}

/* List each window with an entry of the id once, with one seek for each. */
static spill_code_t list(const spill_embedded_t *store, const spill_window_query_t *query,
                         const spill_buffer_t *id, spill_record_key_t *key, bson_t *texts,
                         spill_error_t *error)
{
    uint32_t count = 0;
    const char *window = query->last ? query->last : query->from ? query->from : "";
    spill_kv_iter_t *iter = store->kv->ops->iterate(store->kv);
    spill_record_key_window_ids(key, id, window, query->last != NULL);
    iter->ops->seek(iter, key->data, key->size);
    while (count < query->limit && iter->valid &&
           spill_record_key_is_window_id(key, id, iter->key, iter->key_bytes, &window) &&
           (!query->to || strcmp(window, query->to) <= 0)) {
        char buffer[16];
        const char *position;
        bson_uint32_to_string(count++, &position, buffer, sizeof buffer);
        BSON_APPEND_UTF8(texts, position, window);
        spill_record_key_window_ids(key, id, window, true);
        iter->ops->seek(iter, key->data, key->size);
    }
    spill_code_t code = iter->valid ? SPILL_OK : iter->ops->status(iter, error);
    iter->ops->free(iter);
    return code;
}

spill_code_t spill_embedded_windows_with_id(spill_embedded_t *store, uint32_t array_id,
                                            const spill_window_query_t *query, bson_t *texts,
                                            spill_error_t *error)
{
    spill_buffer_t owner_key = SPILL_BUFFER_INIT, id = SPILL_BUFFER_INIT;
    spill_record_key_t key;
    spill_code_t code = spill_owner_key(query->owner, &owner_key, error);
    if (code == SPILL_OK)
        code = spill_element_id_key(query->id, &id, error);
    if (code == SPILL_OK) {
        bson_init(texts);
        spill_record_key_init(&key, array_id, owner_key.data, owner_key.size);
        code = list(store, query, &id, &key, texts, error);
        if (code != SPILL_OK)
            bson_destroy(texts);
    }
    spill_buffer_release(&owner_key);
    spill_buffer_release(&id);
    return code;
}
