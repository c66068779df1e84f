#include "store/memory_store.h"

#include "store/unmanaged.h"
#include "util/error.h"

#include <assert.h>
#include <string.h>

/* Kinds of names that have numbers. */
typedef enum numbered { NUMBERED_ARRAY, NUMBERED_COLLECTION } numbered_t;

/* ---- reading --------------------------------------------------------------------------------- */

static void look_up_op(const spill_memory_document_t *document, const spill_op_t *op,
                       spill_response_t *response)
{
    const spill_op_entry_t *entry = spill_ops_find(&document->ops, op->id, op->id_bytes);
    response->op_found = entry != NULL;
    if (entry)
        response->op = *entry;
}

static void read_document(const spill_memory_store_t *memory, const spill_request_t *request,
                          spill_response_t *response)
{
    response->outcome = SPILL_DONE;
    if (request->page == SPILL_ELEMENTS) {
        spill_memory_read_elements(memory, request, response);
        return;
    }
    const spill_clock_t *clock = &memory->base.options.clock;
    const spill_memory_document_t *document = spill_memory_find_document(memory, request);
    if (request->want_now)
        response->now_us = clock->now_us(clock->context);
    if (!document && request->page == SPILL_HEAD) {
        const spill_memory_fields_t *fields = spill_memory_find_fields(memory, request);
        if (fields && request->unmanaged)
            spill_unmanaged_read(request, fields->document, response);
        else if (fields)
            response->state.fields_bytes = fields->document->len;
    }
    if (!document)
        return;
    spill_state_copy(&document->state, &response->state);
    spill_memory_document_read(document, request, &response->run);
    if (request->want_top && request->page == SPILL_HEAD)
        spill_memory_read_top(memory, request, &response->top_run);
    if (request->op)
        look_up_op(document, request->op, response);
    if (request->want_ops)
        spill_ops_copy(&document->ops, &response->ops);
    if (request->want_fields && request->page == SPILL_HEAD)
        response->fields = bson_copy(spill_memory_find_fields(memory, request)->document);
}

/* Add the result of a READ after an append that makes a spill due, and after an ADOPT. */
static void read_after_change(const spill_memory_store_t *memory, const spill_request_t *request,
                              spill_response_t *response)
{
    bool looks = request->kind == SPILL_REQUEST_ADOPT ||
                 (request->kind == SPILL_REQUEST_APPEND &&
                  spill_request_is_due(request, spill_state_slots(&response->state)));
    if (response->outcome != SPILL_DONE || !looks)
        return;
    const spill_memory_document_t *document = spill_memory_find_document(memory, request);
    spill_state_copy(&document->state, &response->state);
    spill_memory_document_read(document, request, &response->run);
    response->shows_read = true;
}

/* Is this the number of a defined array? */
static bool has_array(const spill_memory_store_t *memory, uint32_t array_id)
{
    size_t index = spill_memory_table_seek(&memory->numbers, NUMBERED_ARRAY, NULL, 0);
    for (; index < memory->numbers.count; index++) {
        const spill_memory_name_t *name = (const spill_memory_name_t *)memory->numbers.at[index];
        if (name->entry.id != NUMBERED_ARRAY)
            break;
        if (name->number == array_id)
            return true;
    }
    return false;
}

/* ---- the interface --------------------------------------------------------------------------- */

static spill_code_t call(spill_store_t *store, const spill_request_t *request,
                         spill_response_t *response, spill_error_t *error)
{
    spill_memory_store_t *memory = (spill_memory_store_t *)store;
    spill_response_clear(response);
    spill_code_t code = SPILL_OK;
    pthread_mutex_lock(&memory->lock);
    if (request->kind == SPILL_REQUEST_READ)
        read_document(memory, request, response);
    else if (!has_array(memory, request->array_id))
        code = spill_store_ended(error);
    else
        code = spill_memory_change(memory, request, response, error);
    if (code == SPILL_OK)
        read_after_change(memory, request, response);
    pthread_mutex_unlock(&memory->lock);
    return code;
}

static spill_memory_name_t *find_name(const spill_memory_table_t *table, uint32_t id,
                                      const char *name)
{
    return spill_memory_table_find(table, id, name, strlen(name));
}

static spill_memory_name_t *add_name(spill_memory_table_t *table, uint32_t id, const char *name)
{
    return spill_memory_table_add(table, id, name, strlen(name), sizeof(spill_memory_name_t));
}

static uint32_t number_of(spill_memory_store_t *memory, numbered_t kind, const char *name)
{
    spill_memory_name_t *found = find_name(&memory->numbers, kind, name);
    if (!found) {
        found = add_name(&memory->numbers, kind, name);
        found->number = ++memory->last_number;
    }
    return found->number;
}

static spill_code_t bind(spill_store_t *store, const spill_definition_t *definition,
                         spill_binding_t *binding, spill_error_t *error)
{
    spill_memory_store_t *memory = (spill_memory_store_t *)store;
    *binding = (spill_binding_t){0};
    pthread_mutex_lock(&memory->lock);
    bool saved = find_name(&memory->catalog, SPILL_CATALOG_DEFINITION, definition->name) != NULL;
    if (saved) {
        binding->array_id = number_of(memory, NUMBERED_ARRAY, definition->name);
        binding->collection_id = number_of(memory, NUMBERED_COLLECTION, definition->collection);
    }
    pthread_mutex_unlock(&memory->lock);
    if (!saved)
        return spill_fail(error, SPILL_NOT_FOUND, "definition '%s' is not in the store",
                          definition->name);
    return SPILL_OK;
}

static spill_code_t catalog_get(spill_store_t *store, spill_catalog_t kind, const char *name,
                                bson_t **document, spill_error_t *error)
{
    (void)error;
    spill_memory_store_t *memory = (spill_memory_store_t *)store;
    pthread_mutex_lock(&memory->lock);
    const spill_memory_name_t *found = find_name(&memory->catalog, kind, name);
    *document = found ? bson_copy(found->document) : NULL;
    pthread_mutex_unlock(&memory->lock);
    return SPILL_OK;
}

/* Free the rest of an array, and its number, unless an owner has a head. */
static bool end_array(spill_memory_store_t *memory, const char *name)
{
    spill_memory_name_t *number = find_name(&memory->numbers, NUMBERED_ARRAY, name);
    if (!number)
        return true;
    spill_memory_table_t *owners = &memory->owners;
    size_t first = spill_memory_table_seek(owners, number->number, NULL, 0);
    size_t end = first;
    for (; end < owners->count && owners->at[end]->id == number->number; end++)
        if (((const spill_memory_owner_t *)owners->at[end])->head)
            return false;
    while (end-- > first) {
        spill_memory_release_owner((spill_memory_owner_t *)owners->at[end]);
        spill_memory_table_remove(owners, owners->at[end]);
    }
    spill_memory_table_remove(&memory->numbers, number);
    return true;
}

/* May a catalog document replace the stored one? A new definition may have to end the old array. */
static bool can_replace(spill_memory_store_t *memory, spill_catalog_t kind, const char *name,
                        const bson_t *old, const bson_t *new)
{
    spill_definition_t before, after;
    if (kind != SPILL_CATALOG_DEFINITION ||
        spill_definition_from_bson(&before, old, NULL) != SPILL_OK ||
        spill_definition_from_bson(&after, new, NULL) != SPILL_OK ||
        spill_definition_compatible(&before, &after, NULL) == SPILL_OK)
        return true;
    return end_array(memory, name);
}

static spill_code_t catalog_put(spill_store_t *store, spill_catalog_t kind, const char *name,
                                const bson_t *expected, const bson_t *document, bool *done,
                                spill_error_t *error)
{
    (void)error;
    spill_memory_store_t *memory = (spill_memory_store_t *)store;
    pthread_mutex_lock(&memory->lock);
    spill_memory_name_t *found = find_name(&memory->catalog, kind, name);
    *done = found ? expected && bson_equal(found->document, expected) &&
                        can_replace(memory, kind, name, expected, document)
                  : !expected;
    if (*done) {
        if (!found)
            found = add_name(&memory->catalog, kind, name);
        bson_destroy(found->document);
        found->document = bson_copy(document);
    }
    pthread_mutex_unlock(&memory->lock);
    return SPILL_OK;
}

static void delete_entry(spill_memory_store_t *memory, spill_catalog_t kind, const char *name)
{
    spill_memory_name_t *found = find_name(&memory->catalog, kind, name);
    if (!found)
        return;
    bson_destroy(found->document);
    spill_memory_table_remove(&memory->catalog, found);
}

static spill_code_t catalog_delete(spill_store_t *store, spill_catalog_t kind, const char *name,
                                   spill_error_t *error)
{
    (void)error;
    spill_memory_store_t *memory = (spill_memory_store_t *)store;
    pthread_mutex_lock(&memory->lock);
    delete_entry(memory, kind, name);
    pthread_mutex_unlock(&memory->lock);
    return SPILL_OK;
}

static spill_code_t retire(spill_store_t *store, const spill_definition_t *definition,
                           const spill_binding_t *binding, bool *done, spill_error_t *error)
{
    (void)error;
    spill_memory_store_t *memory = (spill_memory_store_t *)store;
    pthread_mutex_lock(&memory->lock);
    const spill_memory_name_t *number =
        find_name(&memory->numbers, NUMBERED_ARRAY, definition->name);
    bool own = number && number->number == binding->array_id;
    *done = !own || end_array(memory, definition->name);
    if (own && *done)
        delete_entry(memory, SPILL_CATALOG_DEFINITION, definition->name);
    pthread_mutex_unlock(&memory->lock);
    return SPILL_OK;
}

static spill_code_t catalog_names(spill_store_t *store, spill_catalog_t kind, bson_t *names,
                                  spill_error_t *error)
{
    (void)error;
    spill_memory_store_t *memory = (spill_memory_store_t *)store;
    bson_init(names);
    pthread_mutex_lock(&memory->lock);
    uint32_t count = 0;
    size_t index = spill_memory_table_seek(&memory->catalog, kind, NULL, 0);
    for (; index < memory->catalog.count; index++) {
        const spill_memory_entry_t *entry = memory->catalog.at[index];
        if (entry->id != (uint32_t)kind)
            break;
        char buffer[16];
        const char *key;
        bson_uint32_to_string(count++, &key, buffer, sizeof buffer);
        bson_append_utf8(names, key, -1, (const char *)entry->key, (int)entry->key_bytes);
    }
    pthread_mutex_unlock(&memory->lock);
    return SPILL_OK;
}

/* ---- open and close -------------------------------------------------------------------------- */

static spill_code_t close_store(spill_store_t *store, spill_error_t *error)
{
    (void)error;
    spill_memory_store_t *memory = (spill_memory_store_t *)store;
    for (size_t i = 0; i < memory->owners.count; i++)
        spill_memory_release_owner((spill_memory_owner_t *)memory->owners.at[i]);
    for (size_t i = 0; i < memory->fields.count; i++)
        bson_destroy(((spill_memory_fields_t *)memory->fields.at[i])->document);
    for (size_t i = 0; i < memory->catalog.count; i++)
        bson_destroy(((spill_memory_name_t *)memory->catalog.at[i])->document);
    spill_memory_table_release(&memory->owners);
    spill_memory_table_release(&memory->fields);
    spill_memory_table_release(&memory->catalog);
    spill_memory_table_release(&memory->numbers);
    pthread_mutex_destroy(&memory->lock);
    spill_store_base_release(&memory->base);
    bson_free(memory);
    return SPILL_OK;
}

static const spill_store_ops_t memory_ops = {
    .name = "memory",
    .call = call,
    .bind = bind,
    .owners = spill_memory_owners,
    .oversized = spill_memory_oversized,
    .orphans = spill_memory_orphans,
    .windows = spill_memory_windows,
    .catalog_get = catalog_get,
    .catalog_put = catalog_put,
    .catalog_delete = catalog_delete,
    .catalog_names = catalog_names,
    .retire = retire,
    .close = close_store,
};

spill_code_t spill_memory_open(const char *uri, const spill_store_options_t *options,
                               spill_store_t **store, spill_error_t *error)
{
    *store = NULL;
    if (options->read_only || options->must_exist)
        return spill_fail(error, SPILL_NOT_FOUND,
                          "%s: a memory store begins empty, there is none to open %s", uri,
                          options->read_only ? "read-only" : "that must exist");
    spill_memory_store_t *memory = bson_malloc0(sizeof *memory);
    spill_store_base_init(&memory->base, &memory_ops, uri, options);
    pthread_mutex_init(&memory->lock, NULL);
    *store = &memory->base;
    return SPILL_OK;
}

/* ---- access for tests ------------------------------------------------------------------------ */

static void make_document(spill_memory_store_t *memory, const spill_request_t *request)
{
    spill_memory_document_t made = {.state = {.present = true}};
    if (request->page == SPILL_HEAD)
        spill_memory_set_fields(memory, request, spill_memory_copy_fields(memory, request));
    else
        made.state.page = request->page;
    spill_memory_add_document(memory, request, &made);
}

spill_memory_document_t *spill_memory_document(spill_store_t *store, const spill_request_t *request,
                                               bool make)
{
    assert(store->ops == &memory_ops);
    spill_memory_store_t *memory = (spill_memory_store_t *)store;
    if (make && !spill_memory_find_document(memory, request))
        make_document(memory, request);
    spill_memory_owner_t *owner = spill_memory_find_owner(memory, request);
    if (owner)
        owner->sorted = false; /* the caller may change the page */
    return spill_memory_find_document(memory, request);
}

void spill_memory_document_drop(spill_store_t *store, const spill_request_t *request)
{
    assert(store->ops == &memory_ops);
    spill_memory_store_t *memory = (spill_memory_store_t *)store;
    spill_memory_document_t *document = spill_memory_find_document(memory, request);
    if (document)
        spill_memory_drop_document(memory, request, document);
}

bson_t *spill_memory_fields(spill_store_t *store, const spill_request_t *request)
{
    assert(store->ops == &memory_ops);
    const spill_memory_fields_t *fields =
        spill_memory_find_fields((spill_memory_store_t *)store, request);
    return fields ? fields->document : NULL;
}
