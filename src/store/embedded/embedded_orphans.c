/*
 * List pages without a head: walk the records of an array from owner to owner, with one to three
 * seeks for each. No other program writes here, so an owner without a head was dropped.
 */
#include "store/embedded/embedded.h"

#include "definition/schema.h"
#include "store/embedded/embedded_codec.h"
#include "util/error.h"

#include <string.h>

/* The search in one owner's records, which begin with `key`. One iterator: one moment. */
typedef struct orphan_search {
    spill_embedded_t *store;
    spill_kv_iter_t *iter;
    bool oldest;
    spill_record_key_t key;
    spill_state_t state;
    spill_listing_t *listing; /* the results */
} orphan_search_t;

static bool at_key(const orphan_search_t *search)
{
    const spill_kv_iter_t *iter = search->iter;
    return iter->valid && iter->key_bytes == search->key.size &&
           memcmp(iter->key, search->key.data, search->key.size) == 0;
}

/*
 * Seek to a key. Report a failed read: repair deletes pages without a head, so an unreadable head
 * must not count as absent.
 */
static spill_code_t seek(orphan_search_t *search, spill_error_t *error)
{
    spill_kv_iter_t *iter = search->iter;
    iter->ops->seek(iter, search->key.data, search->key.size);
    return spill_kv_iter_stop(iter, error);
}

/* The head's incarnation; INT64_MAX: no head. *readable: false if its record does not decode. */
static spill_code_t read_head(orphan_search_t *search, int64_t *incarnation, bool *readable,
                              spill_error_t *error)
{
    *incarnation = INT64_MAX;
    *readable = true;
    spill_record_key_kind(&search->key, SPILL_RECORD_HEAD);
    spill_code_t code = seek(search, error);
    if (code != SPILL_OK || !at_key(search))
        return code;
    spill_state_clear(&search->state);
    *readable =
        spill_state_decode(search->iter->value, search->iter->value_bytes, true, &search->state);
    *incarnation = search->state.incarnation;
    return SPILL_OK;
}

/* Has this page elements? The iterator moves. */
static spill_code_t page_has_elements(orphan_search_t *search, int64_t page, bool *has,
                                      spill_error_t *error)
{
    spill_record_key_page(&search->key, page);
    spill_code_t code = seek(search, error);
    spill_state_clear(&search->state);
    *has =
        code == SPILL_OK && at_key(search) &&
        spill_state_decode(search->iter->value, search->iter->value_bytes, false, &search->state) &&
        search->state.live > 0;
    return code;
}

/* Seek to the entry in the index of pages, and then to the next one. */
static spill_code_t pass_entry(orphan_search_t *search, int64_t incarnation, int64_t first,
                               int64_t page, spill_error_t *error)
{
    spill_kv_iter_t *iter = search->iter;
    spill_record_key_first(&search->key, incarnation, first, page);
    spill_code_t code = seek(search, error);
    if (code != SPILL_OK || !iter->valid)
        return code;
    iter->ops->next(iter);
    return spill_kv_iter_stop(iter, error);
}

/* Find the pages of the latest incarnation before `incarnation` that has pages, by the index. */
static spill_code_t find_pages(orphan_search_t *search, int64_t incarnation, spill_orphan_t *orphan,
                               spill_error_t *error)
{
    spill_kv_iter_t *iter = search->iter;
    int64_t of, first, page;
    *orphan = (spill_orphan_t){.dropped = true};
    spill_record_key_first(&search->key, incarnation - 1, INT64_MAX, INT64_MAX);
    spill_code_t code = seek(search, error);
    while (
        code == SPILL_OK && iter->valid &&
        spill_record_key_is_first(&search->key, iter->key, iter->key_bytes, &of, &first, &page)) {
        if (orphan->pages > 0 && of != orphan->incarnation)
            break;
        bool counts = true;
        if (search->oldest)
            code = page_has_elements(search, page, &counts, error);
        if (counts)
            orphan->incarnation = of;
        orphan->pages += counts ? 1 : 0;
        if (code == SPILL_OK)
            code = pass_entry(search, of, first, page, error);
    }
    return code;
}

/* Keep oldest: tombstones are in the index too, so search for elements first. */
static spill_code_t has_elements(orphan_search_t *search, int64_t incarnation, bool *has,
                                 spill_error_t *error)
{
    int64_t of, seq;
    spill_kv_iter_t *iter = search->iter;
    spill_record_key_element(&search->key, incarnation - 1, INT64_MAX);
    spill_code_t code = seek(search, error);
    *has = code == SPILL_OK && iter->valid &&
           spill_record_key_is_element(&search->key, iter->key, iter->key_bytes, &of, &seq);
    return code;
}

/* orphan->pages: 0 if the owner has no pages without a head. */
static spill_code_t find_orphan(orphan_search_t *search, spill_orphan_t *orphan,
                                spill_error_t *error)
{
    int64_t incarnation;
    bool worth;
    *orphan = (spill_orphan_t){0};
    spill_code_t code = read_head(search, &incarnation, &worth, error);
    if (code == SPILL_OK && worth && search->oldest)
        code = has_elements(search, incarnation, &worth, error);
    return code == SPILL_OK && worth ? find_pages(search, incarnation, orphan, error) : code;
}

static spill_code_t add_orphans_of_owner(orphan_search_t *search, spill_error_t *error)
{
    spill_orphan_t orphan;
    SPILL_TRY(find_orphan(search, &orphan, error));
    if (orphan.pages == 0)
        return SPILL_OK;
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    const uint8_t *owner = search->key.data + 4;
    size_t owner_bytes = search->key.prefix - 4;
    if (!spill_owner_from_key(owner, owner_bytes, &storage, &orphan.owner))
        return spill_fail(error, SPILL_CORRUPT, "%s: the key of an owner cannot be read",
                          search->store->base.uri);
    spill_listing_add_orphan(search->listing, &orphan);
    spill_listing_set_last(search->listing, owner, owner_bytes);
    return SPILL_OK;
}

/* Go to the first record of the next owner; false: there is none. */
static bool next_owner(orphan_search_t *search, uint32_t array_id)
{
    spill_kv_iter_t *iter = search->iter;
    uint8_t prefix[4];
    spill_id_prefix(prefix, array_id);
    for (; iter->valid && iter->key_bytes > 4 && memcmp(iter->key, prefix, sizeof prefix) == 0;
         iter->ops->next(iter)) {
        size_t length = spill_owner_key_length(iter->key + 4, iter->key_bytes - 4);
        if (length == 0 || length > SPILL_OWNER_KEY_MAX || iter->key_bytes == 4 + length)
            continue; /* not an owner's record */
        uint8_t owner[SPILL_OWNER_KEY_MAX];
        memcpy(owner, iter->key + 4, length);
        spill_record_key_init(&search->key, array_id, owner, length);
        return true;
    }
    return false;
}

static spill_code_t add_orphans_of_one(orphan_search_t *search, const spill_binding_t *binding,
                                       const spill_value_t *owner, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t name = SPILL_BUFFER_INIT;
    SPILL_TRY(spill_owner_key(owner, &name, error));
    spill_record_key_init(&search->key, binding->array_id, name.data, name.size);
    SPILL_TRY(add_orphans_of_owner(search, error));
    return spill_kv_iter_stop(search->iter, error);
}

static spill_code_t add_orphans(orphan_search_t *search, const spill_binding_t *binding,
                                const spill_list_query_t *query, spill_error_t *error)
{
    spill_kv_iter_t *iter = search->iter;
    spill_record_key_init(&search->key, binding->array_id, query->after, query->after_bytes);
    if (query->after_bytes > 0)
        spill_embedded_pass_owner(iter, &search->key);
    else
        iter->ops->seek(iter, search->key.data, search->key.size);
    while (search->listing->count < query->limit && next_owner(search, binding->array_id)) {
        SPILL_TRY(add_orphans_of_owner(search, error));
        spill_embedded_pass_owner(iter, &search->key);
    }
    return spill_kv_iter_stop(iter, error);
}

spill_code_t spill_embedded_orphans(spill_store_t *store, const spill_definition_t *definition,
                                    const spill_binding_t *binding, const spill_list_query_t *query,
                                    spill_listing_t *listing, spill_error_t *error)
{
    spill_kv_t *kv = ((spill_embedded_t *)store)->kv;
    orphan_search_t search = {.store = (spill_embedded_t *)store,
                              .iter = kv->ops->iterate(kv),
                              .oldest = !spill_schema_of(definition)->appends_to_head,
                              .listing = listing};
    const spill_value_t *owner = query->orphans.owner;
    spill_code_t code = owner ? add_orphans_of_one(&search, binding, owner, error)
                              : add_orphans(&search, binding, query, error);
    search.iter->ops->free(search.iter);
    spill_state_release(&search.state);
    return code;
}
