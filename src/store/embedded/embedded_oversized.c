#include "store/embedded/embedded.h"

#include "bson/value.h"
#include "store/embedded/embedded_codec.h"
#include "store/unmanaged.h"

/*
 * Like the listing of owners (owners.c), it walks the records of the heads' other fields. An
 * unmanaged array is in these; a managed one has a head's record.
 */
typedef struct listing {
    spill_embedded_t *store;
    const spill_definition_t *definition;
    const spill_binding_t *binding;
    const spill_oversized_query_t *query;
    spill_state_t head;
    spill_buffer_t value;
    bson_t *found;
    uint32_t count;
    spill_buffer_t *last;
} listing_t;

/* Read the head, if there is one. One that is damaged is skipped; its next reader reports it. */
static spill_code_t read_head(listing_t *listing, const uint8_t *owner, size_t owner_bytes,
                              bool *readable, spill_error_t *error)
{
    spill_kv_t *kv = listing->store->kv;
    spill_record_key_t key;
    bool there = false;
    spill_record_key_init(&key, listing->binding->array_id, owner, owner_bytes);
    spill_record_key_kind(&key, SPILL_RECORD_HEAD);
    spill_state_clear(&listing->head);
    spill_code_t code = kv->ops->get(kv, key.data, key.size, &listing->value, &there, error);
    *readable =
        code == SPILL_OK && (!there || spill_state_decode(listing->value.data, listing->value.size,
                                                          true, &listing->head));
    return code == SPILL_CORRUPT ? SPILL_OK : code;
}

static bool is_oversized(const listing_t *listing, const bson_t *fields,
                         spill_oversized_t *oversized)
{
    const spill_state_t *head = &listing->head;
    bson_iter_t id;
    *oversized = (spill_oversized_t){
        .elements = head->live, .bytes = head->live_bytes, .ours = head->present};
    if (!bson_iter_init_find(&id, fields, "_id"))
        return false;
    oversized->owner = spill_value_from_iter(&id);
    oversized->full = listing->query->full > 0 && (int64_t)fields->len >= listing->query->full;
    if (!head->present)
        return spill_unmanaged_measure(listing->definition, fields, &oversized->elements,
                                       &oversized->bytes);
    return spill_state_slots(head) >= listing->query->slots ||
           head->live_bytes + (int64_t)fields->len >= listing->query->bytes;
}

static spill_code_t add_if_oversized(void *context, const spill_kv_iter_t *iter, bool *more,
                                     spill_error_t *error)
{
    listing_t *listing = context;
    const uint8_t *owner = iter->key + 4;
    size_t owner_bytes = iter->key_bytes - 4;
    bson_t fields;
    bool readable;
    spill_oversized_t oversized;
    spill_code_t code = read_head(listing, owner, owner_bytes, &readable, error);
    if (code != SPILL_OK || !readable ||
        !spill_fields_decode(iter->value, iter->value_bytes, owner, owner_bytes, &fields) ||
        !is_oversized(listing, &fields, &oversized))
        return code;
    spill_oversized_append(&oversized, listing->count++, listing->found);
    spill_buffer_clear(listing->last);
    spill_buffer_append(listing->last, owner, owner_bytes);
    *more = listing->count < listing->query->limit;
    return SPILL_OK;
}

spill_code_t spill_embedded_oversized(spill_store_t *store, const spill_definition_t *definition,
                                      const spill_binding_t *binding,
                                      const spill_oversized_query_t *query, bson_t *found,
                                      spill_buffer_t *last, spill_error_t *error)
{
    listing_t listing = {.store = (spill_embedded_t *)store,
                         .definition = definition,
                         .binding = binding,
                         .query = query,
                         .value = SPILL_BUFFER_INIT,
                         .found = found,
                         .last = last};
    bson_init(found);
    spill_buffer_clear(last);
    spill_code_t code =
        spill_embedded_each_fields(listing.store, binding->collection_id, query->after,
                                   query->after_bytes, add_if_oversized, &listing, error);
    spill_state_release(&listing.head);
    spill_buffer_release(&listing.value);
    if (code != SPILL_OK)
        bson_destroy(found);
    return code;
}
