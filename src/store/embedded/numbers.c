#include "store/embedded/numbers.h"

#include "util/error.h"

#include <string.h>

static uint32_t read_id(spill_reader_t *reader)
{
    uint64_t id = spill_reader_varint(reader);
    if (id == 0 || id > UINT32_MAX)
        reader->bad = 1;
    return reader->bad ? 0 : (uint32_t)id;
}

static bool decode_binding(const uint8_t *data, size_t size, spill_binding_t *binding)
{
    spill_reader_t reader = spill_reader_of(data, size);
    binding->array_id = read_id(&reader);
    binding->collection_id = read_id(&reader);
    return spill_reader_ended(&reader) && binding->array_id != binding->collection_id;
}

/* Does a record of another name have this number, or (with `least`) a number above it? */
static spill_code_t find_number(spill_system_access_t *access, spill_system_record_t kind,
                                const char *name, uint32_t number, bool least, bool *found,
                                spill_error_t *error)
{
    spill_kv_t *kv = access->store->kv;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t prefix = SPILL_BUFFER_INIT;
    char other[SPILL_NAME_SIZE];
    spill_system_key(&prefix, kind, "");
    SPILL_SCOPED(spill_kv_iter_release) spill_kv_iter_t *iter = kv->ops->iterate(kv);
    iter->ops->seek(iter, prefix.data, prefix.size);
    for (; spill_system_at_name(iter, &prefix, other, sizeof other); iter->ops->next(iter)) {
        spill_reader_t reader = spill_reader_of(iter->value, iter->value_bytes);
        uint32_t its = read_id(&reader); /* an array's own number comes first */
        *found = *found || (least ? its >= number : its == number && strcmp(other, name) != 0);
    }
    return spill_kv_iter_stop(iter, error);
}

/* Is the array's number its own? If two arrays had one number, each would write into the other. */
static spill_code_t check_unique(spill_system_access_t *access, const char *name,
                                 const spill_binding_t *binding, spill_error_t *error)
{
    bool found = false;
    SPILL_TRY(
        find_number(access, SPILL_SYSTEM_ARRAY, name, binding->array_id, false, &found, error));
    SPILL_TRY(
        find_number(access, SPILL_SYSTEM_COLLECTION, "", binding->array_id, false, &found, error));
    if (found)
        return spill_fail(error, SPILL_CORRUPT,
                          "%s: the record of array \"%s\" has a number that another record has; "
                          "restore a backup",
                          access->store->base.uri, name);
    return SPILL_OK;
}

/* Check that a new number is above all numbers in records: a number used twice mixes two arrays. */
static spill_code_t check_highest(spill_system_access_t *access, uint32_t number,
                                  spill_error_t *error)
{
    bool found = false;
    SPILL_TRY(find_number(access, SPILL_SYSTEM_ARRAY, "", number, true, &found, error));
    SPILL_TRY(find_number(access, SPILL_SYSTEM_COLLECTION, "", number, true, &found, error));
    return found ? spill_system_corrupt(access, "the numbers given", "", error) : SPILL_OK;
}

static spill_code_t next_id(spill_system_access_t *access, uint32_t *id, spill_error_t *error)
{
    *id = 1;
    SPILL_TRY(spill_system_get(access, SPILL_SYSTEM_IDS, "", error));
    if (access->found) {
        spill_reader_t reader = spill_reader_of(access->value.data, access->value.size);
        *id = read_id(&reader) + 1;
        if (!spill_reader_ended(&reader) || *id == 0)
            return spill_system_corrupt(access, "the numbers given", "", error);
    }
    SPILL_TRY(check_highest(access, *id, error));
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_buffer_append_varint(&bytes, *id);
    spill_system_put(access, bytes.data, bytes.size);
    return SPILL_OK;
}

static spill_code_t collection_id(spill_system_access_t *access, const char *collection,
                                  uint32_t *id, spill_error_t *error)
{
    SPILL_TRY(spill_system_get(access, SPILL_SYSTEM_COLLECTION, collection, error));
    if (access->found) {
        spill_reader_t reader = spill_reader_of(access->value.data, access->value.size);
        *id = read_id(&reader);
        return spill_reader_ended(&reader)
                   ? SPILL_OK
                   : spill_system_corrupt(access, "collection", collection, error);
    }
    SPILL_TRY(next_id(access, id, error));
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_buffer_append_varint(&bytes, *id);
    spill_system_key(&access->key, SPILL_SYSTEM_COLLECTION, collection);
    spill_system_put(access, bytes.data, bytes.size);
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
    SPILL_TRY(spill_system_get(access, SPILL_SYSTEM_ARRAY, name, error));
    if (!access->found)
        return SPILL_OK;
    if (!decode_binding(access->value.data, access->value.size, binding))
        return spill_system_corrupt(access, "array", name, error);
    return check_unique(access, name, binding, error);
}

spill_code_t spill_numbers_give(spill_system_access_t *access, const char *name,
                                const spill_definition_t *definition, spill_error_t *error)
{
    uint32_t collection = 0;
    spill_binding_t old = {0};
    SPILL_TRY(collection_id(access, definition->collection, &collection, error));
    SPILL_TRY(spill_numbers_get(access, name, &old, error));
    if (old.array_id != 0 && old.collection_id == collection)
        return SPILL_OK;
    spill_binding_t binding = {.collection_id = collection};
    SPILL_TRY(next_id(access, &binding.array_id, error));
    spill_numbers_add(access->store, &binding);
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_buffer_append_varint(&bytes, binding.array_id);
    spill_buffer_append_varint(&bytes, binding.collection_id);
    spill_system_key(&access->key, SPILL_SYSTEM_ARRAY, name);
    spill_system_put(access, bytes.data, bytes.size);
    return SPILL_OK;
}

/* Check that the collection's record and the array's record agree. */
static spill_code_t check_collection(spill_system_access_t *access,
                                     const spill_definition_t *definition,
                                     const spill_binding_t *binding, spill_error_t *error)
{
    const char *name = definition->collection;
    SPILL_TRY(spill_system_get(access, SPILL_SYSTEM_COLLECTION, name, error));
    spill_reader_t reader = spill_reader_of(access->value.data, access->value.size);
    uint32_t number = access->found ? read_id(&reader) : 0;
    return spill_reader_ended(&reader) && number == binding->collection_id
               ? SPILL_OK
               : spill_system_corrupt(access, "collection", name, error);
}

spill_code_t spill_embedded_bind(spill_store_t *store, const spill_definition_t *definition,
                                 spill_binding_t *binding, spill_error_t *error)
{
    SPILL_SCOPED(spill_system_release)
    spill_system_access_t access = {.store = (spill_embedded_t *)store};
    SPILL_TRY(spill_numbers_get(&access, definition->name, binding, error));
    if (binding->array_id == 0)
        return spill_fail(error, SPILL_NOT_FOUND, "%s: definition \"%s\" is not in the store",
                          store->uri, definition->name);
    return check_collection(&access, definition, binding, error);
}

spill_code_t spill_embedded_load_bindings(spill_embedded_t *store, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t prefix = SPILL_BUFFER_INIT;
    char name[SPILL_NAME_SIZE];
    spill_system_key(&prefix, SPILL_SYSTEM_ARRAY, "");
    SPILL_SCOPED(spill_kv_iter_release)
    spill_kv_iter_t *iter = store->kv->ops->iterate(store->kv);
    iter->ops->seek(iter, prefix.data, prefix.size);
    for (; spill_system_at_name(iter, &prefix, name, sizeof name); iter->ops->next(iter)) {
        spill_binding_t binding;
        if (decode_binding(iter->value, iter->value_bytes, &binding))
            spill_numbers_add(store, &binding);
    }
    return spill_kv_iter_stop(iter, error);
}
