#include "support/model_store_internal.h"

#include "bson/element_fields.h"
#include "store/render.h"
#include "util/error.h"

#include <assert.h>
#include <string.h>

/* Kinds of names that have numbers. */
typedef enum numbered { NUMBERED_ARRAY, NUMBERED_COLLECTION } numbered_t;

/* ---- reading --------------------------------------------------------------------------------- */

static void look_up_op(const model_document_t *document, const spill_op_t *op,
                       spill_response_t *response)
{
    const spill_op_entry_t *entry = spill_ops_find(&document->ops, op->id, op->id_bytes);
    response->op_found = entry != NULL;
    if (entry)
        response->op = *entry;
}

static void look_up_session(const model_document_t *document, const spill_request_t *read,
                            spill_response_t *response)
{
    uint8_t key[SPILL_SESSION_KEY_BYTES];
    spill_session_key(read->read.session, key);
    response->session = spill_session_judge(
        read->read.session, read->read.session_count, spill_sessions_find(&document->sessions, key),
        (int64_t)document->sessions.count, &response->session_applied);
}

static void read_document(const model_store_t *model, const spill_request_t *request,
                          spill_response_t *response)
{
    response->outcome = SPILL_DONE;
    if (request->page == SPILL_ELEMENTS) {
        model_read_elements(model, request, response);
        return;
    }
    const spill_clock_t *clock = &model->base.options.clock;
    const model_document_t *document = model_find_document(model, request);
    if (request->read.want_now)
        response->now_us = clock->now_us(clock->context);
    if (!document && request->page == SPILL_HEAD) {
        const model_fields_t *fields = model_find_fields(model, request);
        if (fields && request->read.unmanaged)
            spill_unmanaged_read(request, fields->document, response);
        else if (fields)
            response->state.fields_bytes = fields->document->len;
    }
    if (!document)
        return;
    spill_state_copy(&document->state, &response->state);
    model_document_read(document, request, &response->run);
    if (request->read.unsized) /* a caller that uses them fails */
        response->state.live_bytes = response->state.fields_bytes = -1;
    if (request->read.want_top && request->page == SPILL_HEAD)
        model_read_top(model, request, &response->top_run);
    if (request->read.op)
        look_up_op(document, request->read.op, response);
    if (request->read.session)
        look_up_session(document, request, response);
    if (request->read.match)
        response->unmatched =
            !spill_match_fields(request->read.match, model_find_fields(model, request)->document);
    if (request->read.want_ops)
        spill_ops_copy(&document->ops, &response->ops);
    if (request->read.want_fields && request->page == SPILL_HEAD)
        response->fields = bson_copy(model_find_fields(model, request)->document);
}

/* Add the result of a READ after an append that makes a spill due, and after an ADOPT. */
static void read_after_change(const model_store_t *model, const spill_request_t *request,
                              spill_response_t *response)
{
    bool looks = request->kind == SPILL_REQUEST_ADOPT ||
                 (request->kind == SPILL_REQUEST_APPEND &&
                  spill_request_is_due(request, spill_state_slots(&response->state)));
    if (response->outcome != SPILL_DONE || !looks)
        return;
    const model_document_t *document = model_find_document(model, request);
    spill_state_copy(&document->state, &response->state);
    spill_request_t shown = spill_request_shown(request);
    model_document_read(document, &shown, &response->run);
    response->shows_read = true;
}

/* Is this the number of a defined array? */
static bool has_array(const model_store_t *model, uint32_t array_id)
{
    size_t index = model_table_seek(&model->numbers, NUMBERED_ARRAY, NULL, 0);
    for (; index < model->numbers.count; index++) {
        const model_name_t *name = (const model_name_t *)model->numbers.at[index];
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
    model_store_t *model = (model_store_t *)store;
    spill_response_clear(response);
    spill_code_t code = SPILL_OK;
    pthread_mutex_lock(&model->lock);
    if (request->kind == SPILL_REQUEST_READ)
        read_document(model, request, response);
    else if (!has_array(model, request->array_id))
        code = spill_store_ended(error);
    else
        code = model_change(model, request, response, error);
    if (code == SPILL_OK)
        read_after_change(model, request, response);
    pthread_mutex_unlock(&model->lock);
    return code;
}

static model_name_t *find_name(const model_table_t *table, uint32_t id, const char *name)
{
    return model_table_find(table, id, name, strlen(name));
}

static model_name_t *add_name(model_table_t *table, uint32_t id, const char *name)
{
    return model_table_add(table, id, name, strlen(name), sizeof(model_name_t));
}

static uint32_t number_of(model_store_t *model, numbered_t kind, const char *name)
{
    model_name_t *found = find_name(&model->numbers, kind, name);
    if (!found) {
        found = add_name(&model->numbers, kind, name);
        found->number = ++model->last_number;
    }
    return found->number;
}

static spill_code_t bind(spill_store_t *store, const spill_definition_t *definition,
                         spill_binding_t *binding, spill_error_t *error)
{
    model_store_t *model = (model_store_t *)store;
    *binding = (spill_binding_t){0};
    pthread_mutex_lock(&model->lock);
    bool saved = find_name(&model->catalog, SPILL_CATALOG_DEFINITION, definition->name) != NULL;
    if (saved) {
        binding->array_id = number_of(model, NUMBERED_ARRAY, definition->name);
        binding->collection_id = number_of(model, NUMBERED_COLLECTION, definition->collection);
    }
    pthread_mutex_unlock(&model->lock);
    if (!saved)
        return spill_fail(error, SPILL_NOT_FOUND, "definition '%s' is not in the store",
                          definition->name);
    return SPILL_OK;
}

static spill_code_t catalog_get(spill_store_t *store, spill_catalog_t kind, const char *name,
                                bson_t **document, spill_error_t *error)
{
    (void)error;
    model_store_t *model = (model_store_t *)store;
    pthread_mutex_lock(&model->lock);
    const model_name_t *found = find_name(&model->catalog, kind, name);
    *document = found ? bson_copy(found->document) : NULL;
    pthread_mutex_unlock(&model->lock);
    return SPILL_OK;
}

/* Free the rest of an array, and its number, unless an owner has a head. */
static bool end_array(model_store_t *model, const char *name)
{
    model_name_t *number = find_name(&model->numbers, NUMBERED_ARRAY, name);
    if (!number)
        return true;
    model_table_t *owners = &model->owners;
    size_t first = model_table_seek(owners, number->number, NULL, 0);
    size_t end = first;
    for (; end < owners->count && owners->at[end]->id == number->number; end++)
        if (((const model_owner_t *)owners->at[end])->head)
            return false;
    while (end-- > first) {
        model_release_owner((model_owner_t *)owners->at[end]);
        model_table_remove(owners, owners->at[end]);
    }
    model_table_remove(&model->numbers, number);
    return true;
}

/* May a catalog document replace the stored one? A new definition may have to end the old array. */
static bool can_replace(model_store_t *model, spill_catalog_t kind, const char *name,
                        const bson_t *old, const bson_t *new)
{
    spill_definition_t before, after;
    if (kind != SPILL_CATALOG_DEFINITION ||
        spill_definition_from_bson(&before, old, NULL) != SPILL_OK ||
        spill_definition_from_bson(&after, new, NULL) != SPILL_OK ||
        spill_definition_compatible(&before, &after, NULL) == SPILL_OK)
        return true;
    return end_array(model, name);
}

static void delete_entry(model_store_t *model, spill_catalog_t kind, const char *name)
{
    model_name_t *found = find_name(&model->catalog, kind, name);
    if (!found)
        return;
    bson_destroy(found->document);
    model_table_remove(&model->catalog, found);
}

static spill_code_t catalog_put(spill_store_t *store, spill_catalog_t kind, const char *name,
                                const bson_t *expected, const bson_t *document, bool *done,
                                spill_error_t *error)
{
    (void)error;
    model_store_t *model = (model_store_t *)store;
    pthread_mutex_lock(&model->lock);
    model_name_t *found = find_name(&model->catalog, kind, name);
    *done = found ? expected && bson_equal(found->document, expected) &&
                        (!document || can_replace(model, kind, name, expected, document))
                  : !expected;
    if (*done && !document) {
        delete_entry(model, kind, name);
    } else if (*done) {
        if (!found)
            found = add_name(&model->catalog, kind, name);
        bson_destroy(found->document);
        found->document = bson_copy(document);
    }
    pthread_mutex_unlock(&model->lock);
    return SPILL_OK;
}

static spill_code_t catalog_delete(spill_store_t *store, spill_catalog_t kind, const char *name,
                                   spill_error_t *error)
{
    (void)error;
    model_store_t *model = (model_store_t *)store;
    pthread_mutex_lock(&model->lock);
    delete_entry(model, kind, name);
    pthread_mutex_unlock(&model->lock);
    return SPILL_OK;
}

static spill_code_t retire(spill_store_t *store, const spill_definition_t *definition,
                           const spill_binding_t *binding, bool *done, spill_error_t *error)
{
    (void)error;
    model_store_t *model = (model_store_t *)store;
    pthread_mutex_lock(&model->lock);
    const model_name_t *number = find_name(&model->numbers, NUMBERED_ARRAY, definition->name);
    bool own = number && number->number == binding->array_id;
    *done = !own || end_array(model, definition->name);
    if (own && *done)
        delete_entry(model, SPILL_CATALOG_DEFINITION, definition->name);
    pthread_mutex_unlock(&model->lock);
    return SPILL_OK;
}

static spill_code_t catalog_names(spill_store_t *store, spill_catalog_t kind,
                                  spill_listing_t *names, spill_error_t *error)
{
    (void)error;
    model_store_t *model = (model_store_t *)store;
    spill_listing_clear(names);
    pthread_mutex_lock(&model->lock);
    size_t index = model_table_seek(&model->catalog, kind, NULL, 0);
    for (; index < model->catalog.count; index++) {
        const model_entry_t *entry = model->catalog.at[index];
        if (entry->id != (uint32_t)kind)
            break;
        spill_listing_add_text(names, (const char *)entry->key, entry->key_bytes);
    }
    pthread_mutex_unlock(&model->lock);
    return SPILL_OK;
}

/* ---- open and close -------------------------------------------------------------------------- */

static spill_code_t close_store(spill_store_t *store, spill_error_t *error)
{
    (void)error;
    model_store_t *model = (model_store_t *)store;
    for (size_t i = 0; i < model->owners.count; i++)
        model_release_owner((model_owner_t *)model->owners.at[i]);
    for (size_t i = 0; i < model->fields.count; i++)
        bson_destroy(((model_fields_t *)model->fields.at[i])->document);
    for (size_t i = 0; i < model->catalog.count; i++)
        bson_destroy(((model_name_t *)model->catalog.at[i])->document);
    model_table_release(&model->owners);
    model_table_release(&model->fields);
    model_table_release(&model->catalog);
    model_table_release(&model->numbers);
    pthread_mutex_destroy(&model->lock);
    spill_store_base_release(&model->base);
    bson_free(model);
    return SPILL_OK;
}

static const spill_store_ops_t model_ops = {
    .name = "model",
    .call = call,
    .bind = bind,
    .list = {[SPILL_LIST_OWNERS] = model_owners,
             [SPILL_LIST_OVERSIZED] = model_oversized,
             [SPILL_LIST_ORPHANS] = model_orphans,
             [SPILL_LIST_WINDOWS] = model_windows},
    .catalog_get = catalog_get,
    .catalog_put = catalog_put,
    .catalog_delete = catalog_delete,
    .catalog_names = catalog_names,
    .retire = retire,
    .close = close_store,
};

spill_store_t *model_store_open(void)
{
    spill_store_options_t options;
    spill_store_options_init(&options);
    model_store_t *model = bson_malloc0(sizeof *model);
    spill_store_base_init(&model->base, &model_ops, "model:", &options);
    pthread_mutex_init(&model->lock, NULL);
    return &model->base;
}

/* ---- access for tests ------------------------------------------------------------------------ */

static void make_document(model_store_t *model, const spill_request_t *request)
{
    model_document_t made = {.state = {.present = true}};
    if (request->page == SPILL_HEAD)
        model_set_fields(model, request, model_copy_fields(model, request));
    else
        made.state.page = request->page;
    model_add_document(model, request, &made);
}

model_document_t *model_document(spill_store_t *store, const spill_request_t *request, bool make)
{
    assert(store->ops == &model_ops);
    model_store_t *model = (model_store_t *)store;
    if (make && !model_find_document(model, request))
        make_document(model, request);
    model_owner_t *owner = model_find_owner(model, request);
    if (owner)
        owner->sorted = false; /* the caller may change the page */
    return model_find_document(model, request);
}

void model_document_drop(spill_store_t *store, const spill_request_t *request)
{
    assert(store->ops == &model_ops);
    model_store_t *model = (model_store_t *)store;
    model_document_t *document = model_find_document(model, request);
    if (document)
        model_drop_document(model, request, document);
}

void model_head_ends(spill_store_t *store, int64_t rev)
{
    assert(store->ops == &model_ops);
    model_store_t *model = (model_store_t *)store;
    if (rev > model->dropped_rev)
        model->dropped_rev = rev;
}

bson_t *model_fields(spill_store_t *store, const spill_request_t *request)
{
    assert(store->ops == &model_ops);
    const model_fields_t *fields = model_find_fields((model_store_t *)store, request);
    return fields ? fields->document : NULL;
}
