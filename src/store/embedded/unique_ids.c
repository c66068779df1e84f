/* Has an array an id already? The check of an append to an array that keeps each id once. */
#include "store/embedded/records.h"

#include "bson/element_fields.h"
#include "definition/schema.h"
#include "store/embedded/embedded_codec.h"
#include "util/error.h"

#include <string.h>

/* The entries of one id: its key, up to the number of an element. */
typedef struct entries {
    const spill_batch_t *batch; /* changes that the engine does not have yet */
    const spill_record_key_t *from;
    size_t prefix_bytes;
} entries_t;

static bool is_entry(const entries_t *entries, const uint8_t *key, size_t key_bytes)
{
    return key_bytes == entries->from->size &&
           memcmp(key, entries->from->data, entries->prefix_bytes) == 0 &&
           memcmp(key, entries->from->data, key_bytes) >= 0;
}

/* Does the batch leave the entry as it is in the engine, or put it? */
static bool stays(const entries_t *entries, const uint8_t *key, size_t key_bytes)
{
    const spill_change_t *change = spill_batch_find(entries->batch, key, key_bytes);
    return change == NULL || change->kind == SPILL_CHANGE_PUT;
}

static bool is_put(const entries_t *entries)
{
    const spill_batch_t *batch = entries->batch;
    const uint8_t *prefix = entries->from->data;
    const spill_change_t *change = NULL;
    while ((change = spill_batch_find_series(batch, prefix, entries->prefix_bytes, change))) {
        const uint8_t *key = spill_batch_key(batch, change);
        if (change->kind == SPILL_CHANGE_PUT && is_entry(entries, key, change->key_bytes) &&
            stays(entries, key, change->key_bytes))
            return true;
    }
    return false;
}

static spill_code_t is_stored(const entries_t *entries, spill_kv_iter_t *iter, bool *stored,
                              spill_error_t *error)
{
    *stored = false;
    iter->ops->seek(iter, entries->from->data, entries->from->size);
    while (!*stored && iter->valid && is_entry(entries, iter->key, iter->key_bytes)) {
        *stored = stays(entries, iter->key, iter->key_bytes);
        iter->ops->next(iter);
    }
    return spill_kv_iter_stop(iter, error);
}

spill_code_t spill_embedded_has_id(spill_embedded_t *store, const spill_request_t *append,
                                   const spill_state_t *head, const spill_batch_t *batch,
                                   spill_record_key_t *key, bool *has, spill_error_t *error)
{
    int64_t from = head->watermark > 0 ? head->watermark : 0;
    SPILL_SCOPED(spill_kv_iter_release) spill_kv_iter_t *iter = NULL;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t id = SPILL_BUFFER_INIT;
    *has = false;
    if (!head->present)
        return SPILL_OK;
    iter = spill_kv_iterate_owner(store->kv);
    for (size_t i = 0; !*has && i < append->append.element_count; i++) {
        spill_buffer_clear(&id);
        if (!spill_element_key(&append->append.elements[i], append->definition->id_field, true,
                               &id))
            continue;
        spill_record_key_id(key, head->incarnation, &id, from);
        const entries_t entries = {
            .batch = batch, .from = key, .prefix_bytes = key->size - sizeof(uint64_t)};
        *has = is_put(&entries);
        if (!*has)
            SPILL_TRY(is_stored(&entries, iter, has, error));
    }
    return SPILL_OK;
}
