/* Records of states, system records, and the other fields of heads. */
#include "store/embedded/records.h"

#include "definition/schema.h"
#include "store/embedded/embedded_codec.h"
#include "store/render.h"
#include "util/buffer.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- records --------------------------------------------------------------------------------- */

spill_code_t spill_embedded_get(spill_embedded_t *store, const spill_batch_t *batch,
                                const uint8_t *key, size_t key_bytes, spill_buffer_t *value,
                                bool *found, spill_error_t *error)
{
    return spill_kv_get_after(store->kv, batch, key, key_bytes, value, found, error);
}

spill_code_t spill_kv_get_after(spill_kv_t *kv, const spill_batch_t *batch, const uint8_t *key,
                                size_t key_bytes, spill_buffer_t *value, bool *found,
                                spill_error_t *error)
{
    const spill_change_t *change =
        batch && batch->count > 0 ? spill_batch_find(batch, key, key_bytes) : NULL;
    if (!change)
        return kv->ops->get(kv, key, key_bytes, value, found, error);
    spill_buffer_clear(value);
    *found = change->kind == SPILL_CHANGE_PUT;
    if (*found)
        spill_buffer_append(value, spill_batch_value(batch, change), change->value_bytes);
    return SPILL_OK;
}

/*
 * For the leader: is the record known without a read? It is `key` without a suffix, or with a kind.
 * A head is appended to `value`.
 */
static spill_known_t find_known(spill_embedded_t *store, const spill_batch_t *batch,
                                const spill_record_key_t *key, spill_buffer_t *value)
{
    spill_known_t known = SPILL_KNOWN_NOT;
    if (batch)
        known = spill_known_find(store->ahead, key->data, key->prefix, value);
    if (known == SPILL_KNOWN_NOT || !spill_batch_find(batch, key->data, key->size))
        return known;
    spill_buffer_clear(value);
    return SPILL_KNOWN_NOT;
}

void spill_embedded_state_key(spill_record_key_t *key, int64_t page)
{
    if (page == SPILL_HEAD)
        spill_record_key_kind(key, SPILL_RECORD_HEAD);
    else
        spill_record_key_page(key, page);
}

/* Read the record of a state. The leader uses the cache of heads. */
static spill_code_t get_state_record(spill_embedded_t *store, const spill_batch_t *batch,
                                     const spill_record_key_t *key, bool head,
                                     spill_buffer_t *value, bool *found, spill_error_t *error)
{
    bool remembers = head && batch;
    const spill_head_slot_t *slot =
        remembers ? spill_head_cache_find(&store->heads, key->data, key->size) : NULL;
    if (slot) {
        spill_buffer_append(value, slot->value, slot->value_bytes);
        *found = true;
        return SPILL_OK;
    }
    spill_known_t known = head ? find_known(store, batch, key, value) : SPILL_KNOWN_NOT;
    *found = known == SPILL_KNOWN_HEAD;
    if (known != SPILL_KNOWN_NOT)
        return SPILL_OK;
    spill_code_t code = spill_embedded_get(store, batch, key->data, key->size, value, found, error);
    if (code == SPILL_OK && *found && remembers)
        spill_head_cache_put(&store->heads, key->data, key->size, value->data, value->size);
    return code;
}

spill_code_t spill_embedded_get_state(spill_embedded_t *store, const spill_batch_t *batch,
                                      const spill_request_t *request, spill_record_key_t *key,
                                      int64_t page, spill_state_t *state, spill_error_t *error)
{
    bool head = page == SPILL_HEAD;
    bool append_follows = request->kind == SPILL_REQUEST_READ && request->read.append_follows;
    int64_t note = append_follows ? spill_known_note(store->ahead) : 0;
    spill_buffer_t value = SPILL_BUFFER_INIT;
    bool found;
    state->present = false;
    spill_embedded_state_key(key, page);
    spill_code_t code = get_state_record(store, batch, key, head, &value, &found, error);
    if (code == SPILL_OK && found && head && append_follows)
        spill_known_add(store->ahead, request, value.data, value.size, note);
    if (code != SPILL_OK)
        code = spill_embedded_place(request, page, code, error);
    else if (found && !spill_state_decode(value.data, value.size, head, state))
        code = spill_embedded_corrupt(store, request, page, error,
                                      "the record of its state cannot be read");
    if (!head && state->present)
        state->page = page;
    spill_buffer_release(&value);
    return code;
}

void spill_embedded_put_state(spill_embedded_t *store, const spill_record_key_t *key, bool head,
                              const spill_state_t *state, spill_batch_t *batch)
{
    if (!state->present) {
        spill_batch_delete(batch, key->data, key->size);
        if (head)
            spill_head_cache_put(&store->heads, key->data, key->size, NULL, 0);
        return;
    }
    spill_state_encode(state, head, spill_batch_put_open(batch, key->data, key->size));
    spill_batch_put_close(batch);
    const spill_change_t *change = &batch->changes[batch->count - 1];
    if (head)
        spill_head_cache_put(&store->heads, key->data, key->size, spill_batch_value(batch, change),
                             change->value_bytes);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void describe_document(int64_t page, char *text, size_t size)
{
    if (page < 0)
        snprintf(text, size, "%s", page == SPILL_HEAD ? "head" : "pages");
    else
        snprintf(text, size, "page %" PRId64, page);
}

spill_code_t spill_embedded_place(const spill_request_t *request, int64_t page, spill_code_t code,
                                  spill_error_t *error)
{
    if (page == request->page)
        return code;
    char document[32];
    describe_document(page, document, sizeof document);
    return spill_fail_prefix(error, code, "%s", document);
}

spill_code_t spill_embedded_corrupt(const spill_embedded_t *store, const spill_request_t *request,
                                    int64_t page, spill_error_t *error, const char *what)
{
    spill_code_t code =
        spill_fail(error, SPILL_CORRUPT, "%s (%s: restore a backup, or export what is readable)",
                   what, store->base.uri);
    return spill_embedded_place(request, page, code, error);
}

/* ---- keys of records ------------------------------------------------------------------------- */

bool spill_embedded_window_entry(const spill_request_t *request, uint32_t array_id,
                                 const spill_buffer_t *id, int64_t incarnation, int64_t seq,
                                 spill_record_key_t *key)
{
    spill_value_t owner;
    const char *window;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t owner_key = SPILL_BUFFER_INIT;
    if (!spill_schema_of(request->definition)->has_windows ||
        !spill_window_split(request->owner, &owner, &window) ||
        spill_owner_key(&owner, &owner_key, NULL) != SPILL_OK)
        return false;
    spill_record_key_init(key, array_id, owner_key.data, owner_key.size);
    spill_record_key_window_id(key, id, window, incarnation, seq);
    return true;
}

/* ---- system records -------------------------------------------------------------------------- */

void spill_system_release(spill_system_access_t *access)
{
    spill_buffer_release(&access->key);
    spill_buffer_release(&access->value);
}

spill_code_t spill_system_get(spill_system_access_t *access, spill_system_record_t kind,
                              const char *name, spill_error_t *error)
{
    spill_system_key(&access->key, kind, name);
    return spill_embedded_get(access->store, access->batch, access->key.data, access->key.size,
                              &access->value, &access->found, error);
}

void spill_system_put(spill_system_access_t *access, const void *value, size_t value_bytes)
{
    spill_batch_put(access->batch, access->key.data, access->key.size, value, value_bytes);
}

spill_code_t spill_system_corrupt(const spill_system_access_t *access, const char *what,
                                  const char *name, spill_error_t *error)
{
    return spill_fail(error, SPILL_CORRUPT,
                      "%s: the record of %s \"%s\" cannot be read; restore a backup",
                      access->store->base.uri, what, name);
}

bool spill_system_at_name(const spill_kv_iter_t *iter, const spill_buffer_t *prefix, char *name,
                          size_t size)
{
    if (!iter->valid || iter->key_bytes < prefix->size ||
        memcmp(iter->key, prefix->data, prefix->size) != 0)
        return false;
    snprintf(name, size, "%.*s", (int)(iter->key_bytes - prefix->size),
             (const char *)iter->key + prefix->size);
    return true;
}

/* ---- the other fields of a head -------------------------------------------------------------- */

static spill_code_t get_record(spill_embedded_t *store, const spill_batch_t *batch,
                               const spill_request_t *request, spill_record_key_t *key,
                               spill_buffer_t *value, bool *found, spill_error_t *error)
{
    spill_record_key_init(key, request->collection_id, request->key, request->key_bytes);
    *found = false;
    if (find_known(store, batch, key, value) == SPILL_KNOWN_ABSENT)
        return SPILL_OK;
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
                                             bool *there, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t value = SPILL_BUFFER_INIT;
    spill_record_key_t key;
    bson_t fields;
    *bytes = 0;
    SPILL_TRY(get_record(store, NULL, request, &key, &value, there, error));
    if (*there &&
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
    if (!found ||
        !spill_fields_decode(value.data, value.size, request->key, request->key_bytes, &fields))
        return SPILL_OK;
    bson_t *left = bson_copy(&fields);
    spill_unmanaged_forget(request->definition, &left);
    bool only_id = bson_count_keys(left) <= 1;
    spill_code_t code = SPILL_OK;
    if (only_id || left->len != fields.len)
        code = visit_heads(store, batch, request, count, &others, error);
    if (code == SPILL_OK && others == 0 && only_id)
        spill_batch_delete(batch, key.data, key.size);
    else if (code == SPILL_OK && others == 0 && left->len != fields.len)
        spill_batch_put(batch, key.data, key.size, bson_get_data(left), left->len);
    bson_destroy(left);
    return code;
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
