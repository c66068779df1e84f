#include "store/embedded/embedded.h"

#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* One access to system records, from a batch that is being gathered or from the engine alone. */
typedef struct system_access {
    spill_embedded_t *store;
    spill_batch_t *batch; /* NULL: read only what is written */
    spill_buffer_t key;
    spill_buffer_t value;
    bool found;
} system_access_t;

static void release(system_access_t *access)
{
    spill_buffer_release(&access->key);
    spill_buffer_release(&access->value);
}

static spill_code_t get(system_access_t *access, spill_system_record_t kind, const char *name,
                        spill_error_t *error)
{
    spill_system_key(&access->key, kind, name);
    return spill_embedded_get(access->store, access->batch, access->key.data, access->key.size,
                              &access->value, &access->found, error);
}

/* Put under the key that was got last. */
static void put(system_access_t *access, const void *value, size_t value_bytes)
{
    spill_batch_put(access->batch, access->key.data, access->key.size, value, value_bytes);
}

static spill_code_t corrupt(const system_access_t *access, const char *what, const char *name,
                            spill_error_t *error)
{
    return spill_fail(error, SPILL_CORRUPT,
                      "%s: the record of %s \"%s\" cannot be read; restore a backup",
                      access->store->base.uri, what, name);
}

/* ---- numbers --------------------------------------------------------------------------------- */

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

static spill_code_t next_id(system_access_t *access, uint32_t *id, spill_error_t *error)
{
    *id = 1;
    spill_code_t code = get(access, SPILL_SYSTEM_IDS, "", error);
    if (code != SPILL_OK)
        return code;
    if (access->found) {
        spill_reader_t reader = {access->value.data, access->value.data + access->value.size, 0};
        *id = read_id(&reader) + 1;
        if (reader.bad || *id == 0)
            return corrupt(access, "the numbers given", "", error);
    }
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_buffer_append_varint(&bytes, *id);
    put(access, bytes.data, bytes.size);
    spill_buffer_release(&bytes);
    return SPILL_OK;
}

static spill_code_t collection_id(system_access_t *access, const char *collection, uint32_t *id,
                                  spill_error_t *error)
{
    spill_code_t code = get(access, SPILL_SYSTEM_COLLECTION, collection, error);
    if (code != SPILL_OK)
        return code;
    if (access->found) {
        spill_reader_t reader = {access->value.data, access->value.data + access->value.size, 0};
        *id = read_id(&reader);
        return reader.bad ? corrupt(access, "collection", collection, error) : SPILL_OK;
    }
    code = next_id(access, id, error);
    if (code != SPILL_OK)
        return code;
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_buffer_append_varint(&bytes, *id);
    spill_system_key(&access->key, SPILL_SYSTEM_COLLECTION, collection);
    put(access, bytes.data, bytes.size);
    spill_buffer_release(&bytes);
    return SPILL_OK;
}

static void add_binding(spill_embedded_t *store, const spill_binding_t *binding)
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

static void remove_binding(spill_embedded_t *store, uint32_t array_id)
{
    size_t kept = 0;
    for (size_t i = 0; i < store->binding_count; i++)
        if (store->bindings[i].array_id != array_id)
            store->bindings[kept++] = store->bindings[i];
    store->binding_count = kept;
}

/* The numbers that a name has; those of no array where it has none. */
static spill_code_t get_binding(system_access_t *access, const char *name, spill_binding_t *binding,
                                spill_error_t *error)
{
    *binding = (spill_binding_t){0};
    spill_code_t code = get(access, SPILL_SYSTEM_ARRAY, name, error);
    if (code == SPILL_OK && access->found &&
        !decode_binding(access->value.data, access->value.size, binding))
        code = corrupt(access, "array", name, error);
    return code;
}

/*
 * A definition that is saved has numbers from then on, so that read-only clients find them. A name
 * that comes back after its array has ended gets new ones.
 */
static spill_code_t give_numbers(system_access_t *access, const char *name,
                                 const spill_definition_t *definition, spill_error_t *error)
{
    uint32_t collection = 0;
    spill_binding_t old = {0};
    spill_code_t code = collection_id(access, definition->collection, &collection, error);
    if (code == SPILL_OK)
        code = get_binding(access, name, &old, error);
    if (code != SPILL_OK || (old.array_id != 0 && old.collection_id == collection))
        return code;
    spill_binding_t binding = {.collection_id = collection};
    code = next_id(access, &binding.array_id, error);
    if (code != SPILL_OK)
        return code;
    add_binding(access->store, &binding);
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_buffer_append_varint(&bytes, binding.array_id);
    spill_buffer_append_varint(&bytes, binding.collection_id);
    spill_system_key(&access->key, SPILL_SYSTEM_ARRAY, name);
    put(access, bytes.data, bytes.size);
    spill_buffer_release(&bytes);
    return SPILL_OK;
}

spill_code_t spill_embedded_bind(spill_store_t *store, const spill_definition_t *definition,
                                 spill_binding_t *binding, spill_error_t *error)
{
    system_access_t access = {.store = (spill_embedded_t *)store};
    spill_code_t code = get_binding(&access, definition->name, binding, error);
    if (code == SPILL_OK && binding->array_id == 0)
        code = spill_fail(error, SPILL_NOT_FOUND, "%s: definition \"%s\" is not in the store",
                          store->uri, definition->name);
    release(&access);
    return code;
}

/* ---- documents ------------------------------------------------------------------------------- */

/* Names of catalog records begin with the kind. */
static char *catalog_name(spill_catalog_t kind, const char *name)
{
    return bson_strdup_printf("%c%s", 'a' + (int)kind, name);
}

static bool is_document(const spill_buffer_t *value, bson_t *document)
{
    return bson_init_static(document, value->data, value->size) &&
           bson_validate(document, BSON_VALIDATE_NONE, NULL);
}

spill_code_t spill_embedded_catalog_get(spill_store_t *store, spill_catalog_t kind,
                                        const char *name, bson_t **document, spill_error_t *error)
{
    system_access_t access = {.store = (spill_embedded_t *)store};
    char *full = catalog_name(kind, name);
    bson_t stored;
    *document = NULL;
    spill_code_t code = get(&access, SPILL_SYSTEM_CATALOG, full, error);
    if (code == SPILL_OK && access.found) {
        if (is_document(&access.value, &stored))
            *document = bson_copy(&stored);
        else
            code = corrupt(&access, "definition or import", name, error);
    }
    bson_free(full);
    release(&access);
    return code;
}

/* A change of the catalog, carried out by the combiner's leader. */
typedef struct catalog_change {
    spill_embedded_t *store;
    spill_catalog_t kind;
    const char *name;
    const bson_t *expected;
    const bson_t *document; /* NULL: delete */
    const spill_binding_t
        *array; /* delete: if the definition has it, which ends with it; or NULL */
    bool done;
    spill_binding_t ended; /* if it has an array_id: what was taken from store->bindings */
} catalog_change_t;

static bool as_expected(const catalog_change_t *change, const system_access_t *access)
{
    if (!access->found)
        return !change->expected;
    return change->expected && change->expected->len == access->value.size &&
           memcmp(bson_get_data(change->expected), access->value.data, access->value.size) == 0;
}

/*
 * End the array that `name` has, unless an owner has a head (change->done). With its number go the
 * records that are left, and requests that still have the number are refused, so that no later
 * array of that name meets what was written by either.
 */
static spill_code_t end_array(catalog_change_t *change, system_access_t *access,
                              spill_error_t *error)
{
    spill_binding_t now;
    spill_code_t code = get_binding(access, change->name, &now, error);
    if (code != SPILL_OK || now.array_id == 0)
        return code;
    code = spill_embedded_delete_array(access->store, access->batch, now.array_id, &change->done,
                                       error);
    if (code != SPILL_OK || !change->done)
        return code;
    spill_batch_delete(access->batch, access->key.data, access->key.size);
    remove_binding(access->store, now.array_id);
    change->ended = now;
    return SPILL_OK;
}

/* A definition of another layout or other names begins a new array. */
static spill_code_t put_definition(catalog_change_t *change, system_access_t *access,
                                   spill_error_t *error)
{
    spill_definition_t before, after;
    spill_code_t code = spill_definition_from_bson(&after, change->document, error);
    if (code == SPILL_OK && change->expected &&
        spill_definition_from_bson(&before, change->expected, NULL) == SPILL_OK &&
        spill_definition_compatible(&before, &after, NULL) != SPILL_OK)
        code = end_array(change, access, error);
    return code == SPILL_OK && change->done ? give_numbers(access, change->name, &after, error)
                                            : code;
}

static spill_code_t put_entry(catalog_change_t *change, system_access_t *access, const char *full,
                              spill_error_t *error)
{
    change->done = as_expected(change, access);
    spill_code_t code = SPILL_OK;
    if (change->done && change->kind == SPILL_CATALOG_DEFINITION)
        code = put_definition(change, access, error);
    if (code != SPILL_OK || !change->done)
        return code;
    spill_system_key(&access->key, SPILL_SYSTEM_CATALOG, full);
    put(access, bson_get_data(change->document), change->document->len);
    return SPILL_OK;
}

static spill_code_t delete_entry(catalog_change_t *change, system_access_t *access,
                                 const char *full, spill_error_t *error)
{
    spill_binding_t now = {0};
    spill_code_t code = SPILL_OK;
    change->done = true;
    if (change->array)
        code = get_binding(access, change->name, &now, error);
    if (code != SPILL_OK || (change->array && now.array_id != change->array->array_id))
        return code;
    if (change->array)
        code = end_array(change, access, error);
    if (code != SPILL_OK || !change->done)
        return code;
    spill_system_key(&access->key, SPILL_SYSTEM_CATALOG, full);
    spill_batch_delete(access->batch, access->key.data, access->key.size);
    return SPILL_OK;
}

static spill_code_t change_catalog(void *context, spill_batch_t *batch, spill_error_t *error)
{
    catalog_change_t *change = context;
    system_access_t access = {.store = change->store, .batch = batch};
    char *full = catalog_name(change->kind, change->name);
    spill_code_t code = get(&access, SPILL_SYSTEM_CATALOG, full, error);
    if (code == SPILL_OK)
        code = change->document ? put_entry(change, &access, full, error)
                                : delete_entry(change, &access, full, error);
    bson_free(full);
    release(&access);
    return code;
}

/* The array did not end after all: its records are still there. */
static spill_code_t revive_array(void *context, spill_batch_t *batch, spill_error_t *error)
{
    const catalog_change_t *change = context;
    system_access_t access = {.store = change->store, .batch = batch};
    spill_binding_t now;
    spill_code_t code = get_binding(&access, change->name, &now, error);
    if (code == SPILL_OK && now.array_id == change->ended.array_id)
        add_binding(change->store, &now);
    release(&access);
    return code;
}

static spill_code_t run_change(catalog_change_t *change, spill_error_t *error)
{
    spill_embedded_t *store = change->store;
    if (store->base.options.read_only)
        return spill_fail(error, SPILL_READ_ONLY, "%s: is open read-only", store->base.uri);
    bool alone = change->kind == SPILL_CATALOG_DEFINITION;
    spill_code_t code = spill_combiner_run(&store->combiner, change_catalog, change, alone, error);
    if (code != SPILL_OK && change->ended.array_id != 0)
        spill_combiner_run(&store->combiner, revive_array, change, alone, NULL);
    return code;
}

spill_code_t spill_embedded_catalog_put(spill_store_t *store, spill_catalog_t kind,
                                        const char *name, const bson_t *expected,
                                        const bson_t *document, bool *done, spill_error_t *error)
{
    catalog_change_t change = {.store = (spill_embedded_t *)store,
                               .kind = kind,
                               .name = name,
                               .expected = expected,
                               .document = document};
    spill_code_t code = run_change(&change, error);
    *done = code == SPILL_OK && change.done;
    return code;
}

spill_code_t spill_embedded_catalog_delete(spill_store_t *store, spill_catalog_t kind,
                                           const char *name, spill_error_t *error)
{
    catalog_change_t change = {.store = (spill_embedded_t *)store, .kind = kind, .name = name};
    return run_change(&change, error);
}

spill_code_t spill_embedded_retire(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_binding_t *binding, bool *done, spill_error_t *error)
{
    catalog_change_t change = {.store = (spill_embedded_t *)store,
                               .kind = SPILL_CATALOG_DEFINITION,
                               .name = definition->name,
                               .array = binding};
    spill_code_t code = run_change(&change, error);
    *done = code == SPILL_OK && change.done;
    return code;
}

/* ---- walking --------------------------------------------------------------------------------- */

/* Is the iterator at a key that begins with `prefix`? Then the rest of the key is a name. */
static bool at_name(const spill_kv_iter_t *iter, const spill_buffer_t *prefix, char *name,
                    size_t size)
{
    if (!iter->valid || iter->key_bytes < prefix->size ||
        memcmp(iter->key, prefix->data, prefix->size) != 0)
        return false;
    snprintf(name, size, "%.*s", (int)(iter->key_bytes - prefix->size),
             (const char *)iter->key + prefix->size);
    return true;
}

spill_code_t spill_embedded_catalog_names(spill_store_t *store, spill_catalog_t kind, bson_t *names,
                                          spill_error_t *error)
{
    spill_kv_t *kv = ((spill_embedded_t *)store)->kv;
    spill_buffer_t prefix = SPILL_BUFFER_INIT;
    char *full = catalog_name(kind, "");
    char name[4096];
    uint32_t count = 0;
    bson_init(names);
    spill_system_key(&prefix, SPILL_SYSTEM_CATALOG, full);
    spill_kv_iter_t *iter = kv->ops->iterate(kv);
    iter->ops->seek(iter, prefix.data, prefix.size);
    for (; at_name(iter, &prefix, name, sizeof name); iter->ops->next(iter)) {
        char text[16];
        const char *key;
        bson_uint32_to_string(count++, &key, text, sizeof text);
        bson_append_utf8(names, key, -1, name, -1);
    }
    spill_code_t code = iter->valid ? SPILL_OK : iter->ops->status(iter, error);
    iter->ops->free(iter);
    spill_buffer_release(&prefix);
    bson_free(full);
    if (code != SPILL_OK)
        bson_destroy(names);
    return code;
}

spill_code_t spill_embedded_load_bindings(spill_embedded_t *store, spill_error_t *error)
{
    spill_buffer_t prefix = SPILL_BUFFER_INIT;
    char name[SPILL_NAME_SIZE];
    spill_system_key(&prefix, SPILL_SYSTEM_ARRAY, "");
    spill_kv_iter_t *iter = store->kv->ops->iterate(store->kv);
    iter->ops->seek(iter, prefix.data, prefix.size);
    for (; at_name(iter, &prefix, name, sizeof name); iter->ops->next(iter)) {
        spill_binding_t binding;
        if (decode_binding(iter->value, iter->value_bytes, &binding))
            add_binding(store, &binding);
    }
    spill_code_t code = iter->valid ? SPILL_OK : iter->ops->status(iter, error);
    iter->ops->free(iter);
    spill_buffer_release(&prefix);
    return code;
}
