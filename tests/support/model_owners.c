/*
 * The model store: listings of owners, oversized heads, orphaned pages and windows.
 */
#include "support/model_store_internal.h"

#include "bson/key.h"
#include "definition/schema.h"
#include "store/listing.h"
#include "store/render.h"
#include "util/error.h"

#include <string.h>

/* The position in the table of the first owner after the key. */
static size_t seek_after(const model_store_t *model, uint32_t array_id, const uint8_t *after,
                         size_t after_bytes)
{
    size_t index = model_table_seek(&model->owners, array_id, after, after_bytes);
    bool itself =
        after_bytes > 0 && model_table_find(&model->owners, array_id, after, after_bytes) != NULL;
    return itself ? index + 1 : index;
}

static void add_owner(const model_store_t *model, const model_owner_t *owner,
                      uint32_t collection_id, spill_listing_t *listing)
{
    const model_entry_t *entry = &owner->entry;
    const model_fields_t *fields =
        model_table_find(&model->fields, collection_id, entry->key, entry->key_bytes);
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, fields->document, "_id"))
        return;
    spill_value_t id = spill_value_from_iter(&iter);
    spill_listing_add_owner(listing, &id);
    spill_listing_set_last(listing, entry->key, entry->key_bytes);
}

spill_code_t model_owners(spill_store_t *store, const spill_definition_t *definition,
                          const spill_binding_t *binding, const spill_list_query_t *query,
                          spill_listing_t *listing, spill_error_t *error)
{
    (void)definition;
    (void)error;
    model_store_t *model = (model_store_t *)store;
    pthread_mutex_lock(&model->lock);
    size_t index = seek_after(model, binding->array_id, query->after, query->after_bytes);
    for (; index < model->owners.count && listing->count < query->limit; index++) {
        const model_owner_t *owner = (const model_owner_t *)model->owners.at[index];
        if (owner->entry.id != binding->array_id)
            break;
        if (owner->head)
            add_owner(model, owner, binding->collection_id, listing);
    }
    pthread_mutex_unlock(&model->lock);
    return SPILL_OK;
}

/* Does the query select this array, managed or unmanaged? */
static bool is_oversized(const model_store_t *model, const spill_definition_t *definition,
                         uint32_t array_id, const model_fields_t *fields,
                         const spill_list_query_t *query, spill_oversized_t *oversized)
{
    const model_owner_t *owner =
        model_table_find(&model->owners, array_id, fields->entry.key, fields->entry.key_bytes);
    const model_document_t *head = owner ? owner->head : NULL;
    bson_iter_t id;
    if (!bson_iter_init_find(&id, fields->document, "_id"))
        return false;
    *oversized = (spill_oversized_t){.owner = spill_value_from_iter(&id), .managed = head != NULL};
    if (!head)
        return spill_unmanaged_measure(definition, fields->document, query->oversized.full,
                                       oversized);
    oversized->elements = (int64_t)head->count;
    oversized->bytes = head->bytes;
    return oversized->elements + (int64_t)head->state.deleted.count >= query->oversized.slots ||
           oversized->bytes + (int64_t)fields->document->len >= query->oversized.bytes;
}

spill_code_t model_oversized(spill_store_t *store, const spill_definition_t *definition,
                             const spill_binding_t *binding, const spill_list_query_t *query,
                             spill_listing_t *listing, spill_error_t *error)
{
    (void)error;
    model_store_t *model = (model_store_t *)store;
    const model_table_t *table = &model->fields;
    pthread_mutex_lock(&model->lock);
    size_t index =
        model_table_seek(table, binding->collection_id, query->after, query->after_bytes);
    for (; index < table->count && listing->count < query->limit; index++) {
        const model_fields_t *fields = (const model_fields_t *)table->at[index];
        const model_entry_t *entry = &fields->entry;
        spill_oversized_t one;
        if (entry->id != binding->collection_id)
            break;
        bool itself = query->after_bytes > 0 && entry->key_bytes == query->after_bytes &&
                      memcmp(entry->key, query->after, query->after_bytes) == 0;
        if (itself || !is_oversized(model, definition, binding->array_id, fields, query, &one))
            continue;
        spill_listing_add_oversized(listing, &one);
        spill_listing_set_last(listing, entry->key, entry->key_bytes);
    }
    pthread_mutex_unlock(&model->lock);
    return SPILL_OK;
}

/*
 * Find the latest incarnation that has pages but is not the head's. No other program writes to this
 * store, so that incarnation and all before it were dropped.
 */
static bool find_orphan(const model_owner_t *owner, bool oldest, spill_orphan_t *orphan)
{
    *orphan = (spill_orphan_t){.incarnation = INT64_MIN, .dropped = true};
    for (size_t i = 0; i < owner->page_count; i++) {
        const model_document_t *page = owner->pages[i];
        int64_t incarnation = page->state.incarnation;
        if ((owner->head && incarnation >= owner->head->state.incarnation) ||
            (oldest && page->count == 0) || incarnation < orphan->incarnation)
            continue;
        orphan->pages = incarnation > orphan->incarnation ? 1 : orphan->pages + 1;
        orphan->incarnation = incarnation;
    }
    return orphan->pages > 0;
}

spill_code_t model_orphans(spill_store_t *store, const spill_definition_t *definition,
                           const spill_binding_t *binding, const spill_list_query_t *query,
                           spill_listing_t *listing, spill_error_t *error)
{
    (void)error;
    model_store_t *model = (model_store_t *)store;
    const model_table_t *table = &model->owners;
    bson_t storage = BSON_INITIALIZER;
    spill_buffer_t only = SPILL_BUFFER_INIT;
    bool named =
        query->orphans.owner && spill_owner_key(query->orphans.owner, &only, NULL) == SPILL_OK;
    pthread_mutex_lock(&model->lock);
    size_t index = named ? model_table_seek(table, binding->array_id, only.data, only.size)
                         : seek_after(model, binding->array_id, query->after, query->after_bytes);
    for (; index < table->count && listing->count < query->limit; index++) {
        const model_owner_t *owner = (const model_owner_t *)table->at[index];
        const model_entry_t *entry = &owner->entry;
        spill_orphan_t orphan;
        bool other = named && (entry->key_bytes != only.size ||
                               memcmp(entry->key, only.data, only.size) != 0);
        if (entry->id != binding->array_id || other)
            break;
        if (!find_orphan(owner, !spill_schema_of(definition)->appends_to_head, &orphan))
            continue;
        bson_reinit(&storage);
        if (!spill_owner_from_key(entry->key, entry->key_bytes, &storage, &orphan.owner))
            continue;
        spill_listing_add_orphan(listing, &orphan);
        spill_listing_set_last(listing, entry->key, entry->key_bytes);
    }
    pthread_mutex_unlock(&model->lock);
    spill_buffer_release(&only);
    bson_destroy(&storage);
    return SPILL_OK;
}

/* Has a document of the window an element with the query's id? True if the query has no id. */
static bool may_have_id(const model_owner_t *owner, const spill_definition_t *definition,
                        const spill_value_t *id)
{
    spill_request_t request = {.definition = definition, .read.id = id};
    size_t index;
    int64_t seq;
    if (!id || model_document_find_id(owner->head, &request, &index, &seq))
        return true;
    for (size_t i = 0; i < owner->page_count; i++)
        if (model_document_find_id(owner->pages[i], &request, &index, &seq))
            return true;
    return false;
}

spill_code_t model_windows(spill_store_t *store, const spill_definition_t *definition,
                           const spill_binding_t *binding, const spill_list_query_t *query,
                           spill_listing_t *listing, spill_error_t *error)
{
    model_store_t *model = (model_store_t *)store;
    const model_table_t *table = &model->owners;
    bool newest_first = query->windows.newest_first;
    SPILL_SCOPED(spill_window_keys_release) spill_window_keys_t keys = {0};
    SPILL_TRY(spill_window_keys_init(&keys, query, error));
    pthread_mutex_lock(&model->lock);
    const spill_buffer_t *from = newest_first ? &keys.high : &keys.low;
    size_t index = model_table_seek(table, binding->array_id, from->data, from->size);
    index -= newest_first ? 1 : 0; /* wraps below 0: no such index */
    while (index < table->count && listing->count < query->limit) {
        const model_owner_t *owner = (const model_owner_t *)table->at[index];
        const model_entry_t *entry = &owner->entry;
        if (entry->id != binding->array_id ||
            !spill_window_keys_hold(&keys, entry->key, entry->key_bytes))
            break;
        if (owner->head && may_have_id(owner, definition, query->windows.id))
            spill_window_keys_list(&keys, entry->key, entry->key_bytes, listing);
        index = newest_first ? index - 1 : index + 1;
    }
    pthread_mutex_unlock(&model->lock);
    return SPILL_OK;
}
