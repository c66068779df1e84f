/*
 * Definitions and imports, and the numbers of arrays and collections by name, with which the keys
 * of their records begin. The functions that write are for the leader of the group commit.
 */
#include "store/embedded/embedded_codec.h"
#include "store/embedded/records.h"
#include "util/error.h"

#include <stdlib.h>
#include <string.h>

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
    spill_reader_t reader = spill_reader_of(data, size);
    binding->array_id = read_id(&reader);
    binding->collection_id = read_id(&reader);
    return spill_reader_ended(&reader) && binding->array_id != binding->collection_id;
}

static int compare_numbers(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static spill_code_t add_numbers(const spill_embedded_t *store, spill_system_record_t kind,
                                spill_buffer_t *numbers, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t prefix = SPILL_BUFFER_INIT;
    char name[SPILL_NAME_SIZE];
    spill_system_key(&prefix, kind, "");
    SPILL_SCOPED(spill_kv_iter_release)
    spill_kv_iter_t *iter = store->kv->ops->iterate(store->kv);
    iter->ops->seek(iter, prefix.data, prefix.size);
    for (; spill_system_at_name(iter, &prefix, name, sizeof name); iter->ops->next(iter)) {
        spill_reader_t reader = spill_reader_of(iter->value, iter->value_bytes);
        uint32_t number = read_id(&reader); /* an array's own number comes first */
        if (number != 0)
            spill_buffer_append(numbers, &number, sizeof number);
    }
    return spill_kv_iter_stop(iter, error);
}

static spill_code_t load_numbers(spill_embedded_t *store, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t bytes = SPILL_BUFFER_INIT;
    SPILL_TRY(add_numbers(store, SPILL_SYSTEM_ARRAY, &bytes, error));
    SPILL_TRY(add_numbers(store, SPILL_SYSTEM_COLLECTION, &bytes, error));
    size_t count = bytes.size / sizeof(uint32_t), shared = 0;
    if (count == 0)
        return SPILL_OK;
    uint32_t *numbers = bson_malloc(bytes.size);
    memcpy(numbers, bytes.data, bytes.size);
    qsort(numbers, count, sizeof *numbers, compare_numbers);
    store->numbers.highest = numbers[count - 1];
    for (size_t i = 1; i < count; i++)
        if (numbers[i] == numbers[i - 1])
            numbers[shared++] = numbers[i];
    store->numbers.shared = numbers;
    store->numbers.shared_count = shared;
    return SPILL_OK;
}

spill_code_t spill_embedded_load_numbers(spill_embedded_t *store, spill_error_t *error)
{
    store->numbers.code = load_numbers(store, &store->numbers.error);
    if (store->numbers.code != SPILL_OK && error)
        *error = store->numbers.error;
    return store->numbers.code;
}

/* Is the array's number its own? If two arrays had one number, each would write into the other. */
static spill_code_t check_unique(const spill_system_access_t *access, const char *name,
                                 const spill_binding_t *binding, spill_error_t *error)
{
    const spill_numbers_t *numbers = &access->store->numbers;
    if (numbers->code != SPILL_OK && error)
        *error = numbers->error;
    SPILL_TRY(numbers->code);
    if (numbers->shared_count > 0 &&
        bsearch(&binding->array_id, numbers->shared, numbers->shared_count, sizeof(uint32_t),
                compare_numbers))
        return spill_fail(error, SPILL_CORRUPT,
                          "%s: the record of array \"%s\" has a number that another record has; "
                          "restore a backup",
                          access->store->base.uri, name);
    return SPILL_OK;
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
    if (*id <= access->store->numbers.highest) /* a number used twice mixes two arrays */
        return spill_system_corrupt(access, "the numbers given", "", error);
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

/* Add a binding to store->bindings, in the order of numbers: a new array has the highest. */
static void add_binding(spill_embedded_t *store, const spill_binding_t *binding)
{
    size_t at = store->binding_count++;
    store->bindings = bson_realloc(store->bindings, store->binding_count * sizeof *store->bindings);
    for (; at > 0 && store->bindings[at - 1].array_id > binding->array_id; at--)
        store->bindings[at] = store->bindings[at - 1];
    store->bindings[at] = *binding;
}

static int compare_arrays(const void *left, const void *right)
{
    const spill_binding_t *a = left, *b = right;
    return compare_numbers(&a->array_id, &b->array_id);
}

bool spill_embedded_has_array(const spill_embedded_t *store, uint32_t array_id)
{
    const spill_binding_t wanted = {.array_id = array_id};
    return store->binding_count > 0 &&
           bsearch(&wanted, store->bindings, store->binding_count, sizeof wanted, compare_arrays);
}

static void remove_binding(spill_embedded_t *store, uint32_t array_id)
{
    size_t kept = 0;
    for (size_t i = 0; i < store->binding_count; i++)
        if (store->bindings[i].array_id != array_id)
            store->bindings[kept++] = store->bindings[i];
    store->binding_count = kept;
}

/* Get the numbers of a name; 0 if it has none. */
static spill_code_t get_numbers(spill_system_access_t *access, const char *name,
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

/*
 * Give numbers to a definition when it is saved, so that read-only clients find them. If the name
 * was used by an array that has ended, it gets new numbers.
 */
static spill_code_t give_numbers(spill_system_access_t *access, const char *name,
                                 const spill_definition_t *definition, spill_error_t *error)
{
    uint32_t collection = 0;
    spill_binding_t old = {0};
    SPILL_TRY(collection_id(access, definition->collection, &collection, error));
    SPILL_TRY(get_numbers(access, name, &old, error));
    if (old.array_id != 0 && old.collection_id == collection)
        return SPILL_OK;
    spill_binding_t binding = {.collection_id = collection};
    SPILL_TRY(next_id(access, &binding.array_id, error));
    add_binding(access->store, &binding);
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
    SPILL_TRY(get_numbers(&access, definition->name, binding, error));
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
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t found = SPILL_BUFFER_INIT;
    for (; spill_system_at_name(iter, &prefix, name, sizeof name); iter->ops->next(iter)) {
        spill_binding_t binding;
        if (decode_binding(iter->value, iter->value_bytes, &binding))
            spill_buffer_append(&found, &binding, sizeof binding);
    }
    SPILL_TRY(spill_kv_iter_stop(iter, error));
    store->binding_count = found.size / sizeof *store->bindings;
    if (store->binding_count == 0)
        return SPILL_OK;
    store->bindings = bson_malloc(found.size);
    memcpy(store->bindings, found.data, found.size);
    qsort(store->bindings, store->binding_count, sizeof *store->bindings, compare_arrays);
    return SPILL_OK;
}

/* ---- the catalog ----------------------------------------------------------------------------- */

/* Names of catalog records begin with the kind. */
static char *catalog_name(spill_catalog_t kind, const char *name)
{
    return bson_strdup_printf("%c%s", 'a' + (int)kind, name);
}

spill_code_t spill_embedded_catalog_get(spill_store_t *store, spill_catalog_t kind,
                                        const char *name, bson_t **document, spill_error_t *error)
{
    spill_system_access_t access = {.store = (spill_embedded_t *)store};
    char *full = catalog_name(kind, name);
    bson_t stored;
    *document = NULL;
    spill_code_t code = spill_system_get(&access, SPILL_SYSTEM_CATALOG, full, error);
    if (code == SPILL_OK && access.found) {
        if (spill_catalog_decode(access.value.data, access.value.size, &stored))
            *document = bson_copy(&stored);
        else
            code = spill_system_corrupt(&access, "definition or import", name, error);
    }
    bson_free(full);
    spill_system_release(&access);
    return code;
}

/* A change of the catalog, carried out by the leader of the group commit. */
typedef struct catalog_change {
    spill_embedded_t *store;
    spill_catalog_t kind;
    const char *name;
    const bson_t *expected;
    const bson_t *document; /* NULL: delete */
    const spill_binding_t
        *array; /* delete: only if the definition has this array, which then ends; or NULL */
    bool done;
    spill_binding_t ended; /* if array_id is not 0: removed from store->bindings */
} catalog_change_t;

static bool as_expected(const catalog_change_t *change, const spill_system_access_t *access)
{
    if (!access->found)
        return !change->expected;
    return change->expected && change->expected->len == access->value.size &&
           memcmp(bson_get_data(change->expected), access->value.data, access->value.size) == 0;
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
    return spill_kv_iter_stop(iter, error);
}

/*
 * Delete all records of an array's owners. If an owner has a head, set *deleted = false and leave
 * the batch unchanged. For the leader of the group commit, with a batch of its own. Cost: one step
 * for each owner that has records.
 */
static spill_code_t delete_array(const spill_embedded_t *store, spill_batch_t *batch,
                                 uint32_t array_id, bool *deleted, spill_error_t *error)
{
    bool any, head;
    SPILL_SCOPED(spill_kv_iter_release)
    spill_kv_iter_t *iter = store->kv->ops->iterate(store->kv);
    *deleted = false;
    SPILL_TRY(find_heads(iter, array_id, &any, &head, error));
    *deleted = !head;
    if (head || !any)
        return SPILL_OK;
    uint8_t from[4], to[5];
    spill_id_prefix(from, array_id);
    spill_id_prefix(to, array_id);
    to[4] = 0xff; /* no owner's key begins with it */
    spill_batch_delete_range(batch, from, sizeof from, to, sizeof to);
    return SPILL_OK;
}

/*
 * End the array of `name`, unless an owner has a head (change->done). Delete its number and the
 * rest of its records. Later requests with that number are refused, so that a later array of that
 * name never sees old records.
 */
static spill_code_t end_array(catalog_change_t *change, spill_system_access_t *access,
                              spill_error_t *error)
{
    spill_binding_t now;
    spill_code_t code = get_numbers(access, change->name, &now, error);
    if (code != SPILL_OK || now.array_id == 0)
        return code;
    code = delete_array(access->store, access->batch, now.array_id, &change->done, error);
    if (code != SPILL_OK || !change->done)
        return code;
    spill_batch_delete(access->batch, access->key.data, access->key.size);
    remove_binding(access->store, now.array_id);
    change->ended = now;
    return SPILL_OK;
}

/* Save a definition. A different layout or different names start a new array. */
static spill_code_t put_definition(catalog_change_t *change, spill_system_access_t *access,
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

static spill_code_t put_entry(catalog_change_t *change, spill_system_access_t *access,
                              const char *full, spill_error_t *error)
{
    change->done = as_expected(change, access);
    spill_code_t code = SPILL_OK;
    if (change->done && change->kind == SPILL_CATALOG_DEFINITION)
        code = put_definition(change, access, error);
    if (code != SPILL_OK || !change->done)
        return code;
    spill_system_key(&access->key, SPILL_SYSTEM_CATALOG, full);
    spill_system_put(access, bson_get_data(change->document), change->document->len);
    return SPILL_OK;
}

static spill_code_t delete_entry(catalog_change_t *change, spill_system_access_t *access,
                                 const char *full, spill_error_t *error)
{
    spill_binding_t now = {0};
    spill_code_t code = SPILL_OK;
    change->done = !change->expected || as_expected(change, access);
    if (!change->done)
        return SPILL_OK;
    if (change->array)
        code = get_numbers(access, change->name, &now, error);
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
    spill_system_access_t access = {.store = change->store, .batch = batch};
    char *full = catalog_name(change->kind, change->name);
    spill_code_t code = spill_system_get(&access, SPILL_SYSTEM_CATALOG, full, error);
    if (code == SPILL_OK)
        code = change->document ? put_entry(change, &access, full, error)
                                : delete_entry(change, &access, full, error);
    bson_free(full);
    spill_system_release(&access);
    return code;
}

/* Undo the end of an array whose batch was not written: its records still exist. */
static spill_code_t revive_array(void *context, spill_batch_t *batch, spill_error_t *error)
{
    const catalog_change_t *change = context;
    spill_system_access_t access = {.store = change->store, .batch = batch};
    spill_binding_t now;
    spill_code_t code = get_numbers(&access, change->name, &now, error);
    if (code == SPILL_OK && now.array_id == change->ended.array_id)
        add_binding(change->store, &now);
    spill_system_release(&access);
    return code;
}

static spill_code_t run_change(catalog_change_t *change, spill_error_t *error)
{
    spill_embedded_t *store = change->store;
    if (store->base.options.read_only)
        return spill_fail(error, SPILL_READ_ONLY, "%s: is open read-only", store->base.uri);
    bool alone = change->kind == SPILL_CATALOG_DEFINITION;
    if (alone)
        spill_definition_index_begin(&store->definitions);
    spill_code_t code =
        spill_group_commit_run(&store->writer, change_catalog, change, alone, error);
    if (alone)
        spill_definition_index_end(&store->definitions, change->name, change->document);
    if (code != SPILL_OK && change->ended.array_id != 0)
        spill_group_commit_run(&store->writer, revive_array, change, alone, NULL);
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

/* ---- all entries ----------------------------------------------------------------------------- */

typedef void (*entry_fn)(void *context, const char *name, const spill_kv_iter_t *iter);

/* Call `call` for each entry, in the order of names, with an iterator at its record. */
static spill_code_t each_entry(const spill_embedded_t *store, spill_catalog_t kind, entry_fn call,
                               void *context, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t prefix = SPILL_BUFFER_INIT;
    SPILL_SCOPED(spill_kv_iter_release)
    spill_kv_iter_t *iter = store->kv->ops->iterate(store->kv);
    char *full = catalog_name(kind, "");
    char name[4096];
    spill_system_key(&prefix, SPILL_SYSTEM_CATALOG, full);
    bson_free(full);
    iter->ops->seek(iter, prefix.data, prefix.size);
    for (; spill_system_at_name(iter, &prefix, name, sizeof name); iter->ops->next(iter))
        call(context, name, iter);
    return spill_kv_iter_stop(iter, error);
}

static void list_name(void *names, const char *name, const spill_kv_iter_t *iter)
{
    (void)iter;
    spill_listing_add_text(names, name, strlen(name));
}

spill_code_t spill_embedded_catalog_names(spill_store_t *store, spill_catalog_t kind,
                                          spill_listing_t *names, spill_error_t *error)
{
    spill_listing_clear(names);
    return each_entry((spill_embedded_t *)store, kind, list_name, names, error);
}

static void index_definition(void *index, const char *name, const spill_kv_iter_t *iter)
{
    bson_t stored;
    bool is_good = spill_catalog_decode(iter->value, iter->value_bytes, &stored);
    spill_definition_index_add(index, name, is_good ? &stored : NULL);
}

spill_code_t spill_embedded_definitions_beside(spill_store_t *base,
                                               const spill_definition_t *definition,
                                               spill_listing_t *names, spill_error_t *error)
{
    spill_embedded_t *store = (spill_embedded_t *)base;
    spill_definition_index_t *index = &store->definitions;
    spill_code_t code = SPILL_OK;
    spill_listing_clear(names);
    pthread_mutex_lock(&index->lock);
    if (store->base.options.read_only || !spill_definition_index_is_good(index)) {
        spill_definition_index_clear(index);
        code = each_entry(store, SPILL_CATALOG_DEFINITION, index_definition, index, error);
        index->is_built = true;
    }
    if (code == SPILL_OK)
        spill_definition_index_list(index, definition, names);
    else
        spill_definition_index_clear(index);
    pthread_mutex_unlock(&index->lock);
    return code;
}

int64_t spill_embedded_definitions_version(spill_store_t *store)
{
    return spill_definition_index_version(&((spill_embedded_t *)store)->definitions);
}
