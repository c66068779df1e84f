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
    return iter->valid ? SPILL_OK : iter->ops->status(iter, error);
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
    return iter->valid ? SPILL_OK : iter->ops->status(iter, error);
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

static spill_code_t add_orphans_of_owner(orphan_search_t *search, uint32_t index, bson_t *found,
                                         bool *any, spill_error_t *error)
{
    spill_orphan_t orphan;
    *any = false;
    spill_code_t code = find_orphan(search, &orphan, error);
    if (code != SPILL_OK || orphan.pages == 0)
        return code;
    bson_t storage = BSON_INITIALIZER;
    *any =
        spill_owner_from_key(search->key.data + 4, search->key.prefix - 4, &storage, &orphan.owner);
    if (*any)
        spill_orphan_append(&orphan, index, found);
    bson_destroy(&storage);
    return *any ? SPILL_OK
                : spill_fail(error, SPILL_CORRUPT, "%s: the key of an owner cannot be read",
                             search->store->base.uri);
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

static spill_code_t list(orphan_search_t *search, const spill_binding_t *binding, size_t limit,
                         bson_t *found, spill_buffer_t *last, spill_error_t *error)
{
    uint32_t count = 0;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && count < limit && next_owner(search, binding->array_id)) {
        bool any;
        code = add_orphans_of_owner(search, count, found, &any, error);
        if (any) {
            count++;
            spill_buffer_clear(last);
            spill_buffer_append(last, search->key.data + 4, search->key.prefix - 4);
        }
        spill_embedded_pass_owner(search->iter, &search->key);
    }
    if (code == SPILL_OK && !search->iter->valid)
        code = search->iter->ops->status(search->iter, error);
    return code;
}

static spill_code_t add_orphans_of_one(orphan_search_t *search, const spill_binding_t *binding,
                                       const spill_value_t *owner, bson_t *found,
                                       spill_error_t *error)
{
    bool any;
    spill_buffer_t name = SPILL_BUFFER_INIT;
    spill_code_t code = spill_owner_key(owner, &name, error);
    if (code == SPILL_OK) {
        spill_record_key_init(&search->key, binding->array_id, name.data, name.size);
        code = add_orphans_of_owner(search, 0, found, &any, error);
    }
    if (code == SPILL_OK && !search->iter->valid)
        code = search->iter->ops->status(search->iter, error);
    spill_buffer_release(&name);
    return code;
}

spill_code_t spill_embedded_orphans(spill_store_t *store, const spill_definition_t *definition,
                                    const spill_binding_t *binding,
                                    const spill_orphan_query_t *query, bson_t *found,
                                    spill_buffer_t *last, spill_error_t *error)
{
    spill_kv_t *kv = ((spill_embedded_t *)store)->kv;
    orphan_search_t search = {.store = (spill_embedded_t *)store,
                              .iter = kv->ops->iterate(kv),
                              .oldest = !spill_schema_of(definition)->appends_to_head};
    spill_code_t code;
    bson_init(found);
    spill_buffer_clear(last);
    spill_record_key_init(&search.key, binding->array_id, query->after, query->after_bytes);
    if (query->owner) {
        code = add_orphans_of_one(&search, binding, query->owner, found, error);
    } else if (query->after_bytes > 0) {
        spill_embedded_pass_owner(search.iter, &search.key);
        code = list(&search, binding, query->limit, found, last, error);
    } else {
        search.iter->ops->seek(search.iter, search.key.data, search.key.size);
        code = list(&search, binding, query->limit, found, last, error);
    }
    search.iter->ops->free(search.iter);
    spill_state_release(&search.state);
    if (code != SPILL_OK)
        bson_destroy(found);
    return code;
}
