#include "store/embedded/records.h"

#include "store/embedded/embedded_codec.h"
#include "util/error.h"

#include <string.h>

static spill_code_t get_record(spill_embedded_t *store, const spill_batch_t *batch,
                               const spill_request_t *request, spill_record_key_t *key,
                               spill_buffer_t *value, bool *found, spill_error_t *error)
{
    spill_record_key_init(key, request->collection_id, request->key, request->key_bytes);
    spill_code_t code = spill_embedded_get(store, batch, key->data, key->size, value, found, error);
    return code == SPILL_OK ? code : spill_embedded_place(request, SPILL_HEAD, code, error);
}

spill_code_t spill_embedded_get_fields(spill_embedded_t *store, const spill_batch_t *batch,
                                       const spill_request_t *request, bson_t **fields,
                                       spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t value = SPILL_BUFFER_INIT;
    spill_record_key_t key;
    bson_t stored;
    bool found;
    *fields = NULL;
    SPILL_TRY(get_record(store, batch, request, &key, &value, &found, error));
    if (!found) {
        *fields = bson_new();
        spill_value_append(request->owner, *fields, "_id");
        return SPILL_OK;
    }
    if (!spill_fields_decode(value.data, value.size, request->key, request->key_bytes, &stored))
        return spill_embedded_corrupt(store, request, SPILL_HEAD, error,
                                      "the record of the other fields cannot be read");
    *fields = bson_copy(&stored);
    return SPILL_OK;
}

spill_code_t spill_embedded_get_fields_bytes(spill_embedded_t *store,
                                             const spill_request_t *request, int64_t *bytes,
                                             spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t value = SPILL_BUFFER_INIT;
    spill_record_key_t key;
    bson_t fields;
    bool found;
    *bytes = 0;
    SPILL_TRY(get_record(store, NULL, request, &key, &value, &found, error));
    if (found &&
        spill_fields_decode(value.data, value.size, request->key, request->key_bytes, &fields))
        *bytes = fields.len;
    return SPILL_OK;
}

/* ---- the other arrays of the collection ------------------------------------------------------ */

/* Called for each head that another array of the collection has for this owner. */
typedef void (*visit_fn)(void *context, const spill_record_key_t *key, spill_state_t *head);

static spill_code_t visit_heads(spill_embedded_t *store, const spill_batch_t *batch,
                                const spill_request_t *request, visit_fn visit, void *context,
                                spill_error_t *error)
{
    SPILL_SCOPED(spill_state_release) spill_state_t head = {0};
    for (size_t i = 0; i < store->binding_count; i++) {
        const spill_binding_t *other = &store->bindings[i];
        if (other->collection_id != request->collection_id || other->array_id == request->array_id)
            continue;
        spill_record_key_t key;
        spill_record_key_init(&key, other->array_id, request->key, request->key_bytes);
        SPILL_TRY(spill_embedded_get_state(store, batch, request, &key, SPILL_HEAD, &head, error));
        if (head.present)
            visit(context, &key, &head);
    }
    return SPILL_OK;
}

typedef struct resizing {
    spill_embedded_t *store;
    spill_batch_t *batch;
    int64_t fields_bytes;
} resizing_t;

static void resize(void *context, const spill_record_key_t *key, spill_state_t *head)
{
    const resizing_t *resizing = context;
    if (head->fields_bytes == resizing->fields_bytes)
        return;
    head->fields_bytes = resizing->fields_bytes;
    spill_embedded_put_state(resizing->store, key, true, head, resizing->batch);
}

spill_code_t spill_embedded_put_fields(spill_embedded_t *store, const spill_request_t *request,
                                       const bson_t *fields, spill_batch_t *batch,
                                       spill_error_t *error)
{
    spill_record_key_t key;
    resizing_t resizing = {.store = store, .batch = batch, .fields_bytes = fields->len};
    spill_record_key_init(&key, request->collection_id, request->key, request->key_bytes);
    spill_batch_put(batch, key.data, key.size, bson_get_data(fields), fields->len);
    return visit_heads(store, batch, request, resize, &resizing, error);
}

static void count(void *context, const spill_record_key_t *key, spill_state_t *head)
{
    (void)key;
    (void)head;
    ++*(int *)context;
}

spill_code_t spill_embedded_drop_fields(spill_embedded_t *store, const spill_request_t *request,
                                        spill_batch_t *batch, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t value = SPILL_BUFFER_INIT;
    spill_record_key_t key;
    bson_t fields;
    bool found;
    int others = 0;
    SPILL_TRY(get_record(store, batch, request, &key, &value, &found, error));
    bool only_id =
        found &&
        spill_fields_decode(value.data, value.size, request->key, request->key_bytes, &fields) &&
        bson_count_keys(&fields) <= 1;
    if (!only_id)
        return SPILL_OK;
    SPILL_TRY(visit_heads(store, batch, request, count, &others, error));
    if (others == 0)
        spill_batch_delete(batch, key.data, key.size);
    return SPILL_OK;
}

static bool is_owner_key(const uint8_t *key, size_t key_bytes)
{
    return key_bytes <= SPILL_OWNER_KEY_MAX && spill_owner_key_length(key, key_bytes) == key_bytes;
}

spill_code_t spill_embedded_each_fields(spill_embedded_t *store, uint32_t collection_id,
                                        const uint8_t *after, size_t after_bytes,
                                        spill_fields_fn call, void *context, spill_error_t *error)
{
    spill_record_key_t from;
    if (collection_id == 0) /* no such collection; 0 is the id of system records */
        return SPILL_OK;
    spill_record_key_init(&from, collection_id, after, after_bytes);
    SPILL_SCOPED(spill_kv_iter_release)
    spill_kv_iter_t *iter = store->kv->ops->iterate(store->kv);
    iter->ops->seek(iter, from.data, from.size);
    bool more = true;
    while (more && iter->valid && iter->key_bytes > 4 && memcmp(iter->key, from.data, 4) == 0) {
        bool itself = after_bytes > 0 && iter->key_bytes == from.size &&
                      memcmp(iter->key, from.data, from.size) == 0;
        if (!is_owner_key(iter->key + 4, iter->key_bytes - 4))
            return spill_fail(error, SPILL_CORRUPT,
                              "%s: the key of an owner's other fields cannot be read; restore a "
                              "backup",
                              store->base.uri);
        if (!itself)
            SPILL_TRY(call(context, iter, &more, error));
        iter->ops->next(iter);
    }
    return spill_kv_iter_stop(iter, error);
}
