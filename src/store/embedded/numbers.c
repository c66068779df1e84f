#include "store/embedded/numbers.h"

#include "util/error.h"

static uint32_t read_id(spill_reader_t *reader)
{
    uint64_t id = spill_reader_varint(reader);
    if (id == 0 || id > UINT32_MAX)
        reader->bad = 1;
    return reader->bad ? 0 : (uint32_t)id;
}

static bool decode_binding(const uint8_t *data, size_t size, spill_binding_t *binding)
{
    spill_reader_t reader = {.at = data, .end = data + size};
    binding->array_id = read_id(&reader);
    binding->collection_id = read_id(&reader);
    return !reader.bad && reader.at == reader.end;
}

static spill_code_t next_id(spill_system_access_t *access, uint32_t *id, spill_error_t *error)
{
    *id = 1;
    spill_code_t code = spill_system_get(access, SPILL_SYSTEM_IDS, "", error);
    if (code != SPILL_OK)
        return code;
    if (access->found) {
        spill_reader_t reader = {access->value.data, access->value.data + access->value.size, 0};
        *id = read_id(&reader) + 1;
        if (reader.bad || *id == 0)
            return spill_system_corrupt(access, "the numbers given", "", error);
    }
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_buffer_append_varint(&bytes, *id);
    spill_system_put(access, bytes.data, bytes.size);
    spill_buffer_release(&bytes);
    return SPILL_OK;
}

static spill_code_t collection_id(spill_system_access_t *access, const char *collection,
                                  uint32_t *id, spill_error_t *error)
{
    spill_code_t code = spill_system_get(access, SPILL_SYSTEM_COLLECTION, collection, error);
    if (code != SPILL_OK)
        return code;
    if (access->found) {
        spill_reader_t reader = {access->value.data, access->value.data + access->value.size, 0};
        *id = read_id(&reader);
        return reader.bad ? spill_system_corrupt(access, "collection", collection, error)
                          : SPILL_OK;
    }
    code = next_id(access, id, error);
    if (code != SPILL_OK)
        return code;
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_buffer_append_varint(&bytes, *id);
    spill_system_key(&access->key, SPILL_SYSTEM_COLLECTION, collection);
    spill_system_put(access, bytes.data, bytes.size);
    spill_buffer_release(&bytes);
    return SPILL_OK;
}

void spill_numbers_add(spill_embedded_t *store, const spill_binding_t *binding)
{
    size_t count = store->binding_count++;
    store->bindings = bson_realloc(store->bindings, store->binding_count * sizeof *store->bindings);
    store->bindings[count] = *binding;
}

bool spill_embedded_has_array(const spill_embedded_t *store, uint32_t array_id)
{
    for (size_t i = 0; i < store->binding_count; i++)
        if (store->bindings[i].array_id == array_id)
            return true;
    return false;
}

void spill_numbers_remove(spill_embedded_t *store, uint32_t array_id)
{
    size_t kept = 0;
    for (size_t i = 0; i < store->binding_count; i++)
        if (store->bindings[i].array_id != array_id)
            store->bindings[kept++] = store->bindings[i];
    store->binding_count = kept;
}

spill_code_t spill_numbers_get(spill_system_access_t *access, const char *name,
                               spill_binding_t *binding, spill_error_t *error)
{
    *binding = (spill_binding_t){0};
    spill_code_t code = spill_system_get(access, SPILL_SYSTEM_ARRAY, name, error);
    if (code == SPILL_OK && access->found &&
        !decode_binding(access->value.data, access->value.size, binding))
        code = spill_system_corrupt(access, "array", name, error);
    return code;
}

spill_code_t spill_numbers_give(spill_system_access_t *access, const char *name,
                                const spill_definition_t *definition, spill_error_t *error)
{
    uint32_t collection = 0;
    spill_binding_t old = {0};
    spill_code_t code = collection_id(access, definition->collection, &collection, error);
    if (code == SPILL_OK)
        code = spill_numbers_get(access, name, &old, error);
    if (code != SPILL_OK || (old.array_id != 0 && old.collection_id == collection))
        return code;
    spill_binding_t binding = {.collection_id = collection};
    code = next_id(access, &binding.array_id, error);
    if (code != SPILL_OK)
        return code;
    spill_numbers_add(access->store, &binding);
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_buffer_append_varint(&bytes, binding.array_id);
    spill_buffer_append_varint(&bytes, binding.collection_id);
    spill_system_key(&access->key, SPILL_SYSTEM_ARRAY, name);
    spill_system_put(access, bytes.data, bytes.size);
    spill_buffer_release(&bytes);
    return SPILL_OK;
}

spill_code_t spill_embedded_bind(spill_store_t *store, const spill_definition_t *definition,
                                 spill_binding_t *binding, spill_error_t *error)
{
    spill_system_access_t access = {.store = (spill_embedded_t *)store};
    spill_code_t code = spill_numbers_get(&access, definition->name, binding, error);
    if (code == SPILL_OK && binding->array_id == 0)
        code = spill_fail(error, SPILL_NOT_FOUND, "%s: definition \"%s\" is not in the store",
                          store->uri, definition->name);
    spill_system_release(&access);
    return code;
}

spill_code_t spill_embedded_load_bindings(spill_embedded_t *store, spill_error_t *error)
{
    spill_buffer_t prefix = SPILL_BUFFER_INIT;
    char name[SPILL_NAME_SIZE];
    spill_system_key(&prefix, SPILL_SYSTEM_ARRAY, "");
    spill_kv_iter_t *iter = store->kv->ops->iterate(store->kv);
    iter->ops->seek(iter, prefix.data, prefix.size);
    for (; spill_system_at_name(iter, &prefix, name, sizeof name); iter->ops->next(iter)) {
        spill_binding_t binding;
        if (decode_binding(iter->value, iter->value_bytes, &binding))
            spill_numbers_add(store, &binding);
    }
    spill_code_t code = iter->valid ? SPILL_OK : iter->ops->status(iter, error);
    iter->ops->free(iter);
    spill_buffer_release(&prefix);
    return code;
}
