/*
 * Listings of owners, of oversized heads, of windows, and of pages without a head. Owners are
 * listed from the records of the heads' other fields, which have the _id and are adjacent.
 */
#include "store/embedded/embedded.h"

#include "bson/value.h"
#include "definition/schema.h"
#include "store/embedded/embedded_codec.h"
#include "store/embedded/read_ahead.h"
#include "store/listing.h"
#include "store/render.h"
#include "util/error.h"

#include <string.h>

typedef struct walk {
    spill_embedded_t *store;
    const spill_definition_t *definition;
    const spill_binding_t *binding;
    const spill_list_query_t *query;
    size_t limit; /* of the listing */
    spill_listing_t *listing;
    spill_state_t head;   /* SPILL_LIST_OVERSIZED: the head at the iterator */
    spill_buffer_t value; /* ... and its record */
} walk_t;

/* ---- owners ---------------------------------------------------------------------------------- */

/* A damaged head counts: its next reader reports the damage. */
static spill_code_t has_head(spill_kv_t *kv, uint32_t array_id, const uint8_t *owner,
                             size_t owner_bytes, bool *has, spill_error_t *error)
{
    spill_record_key_t key;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t value = SPILL_BUFFER_INIT;
    spill_record_key_init(&key, array_id, owner, owner_bytes);
    spill_record_key_kind(&key, SPILL_RECORD_HEAD);
    spill_code_t code = kv->ops->get(kv, key.data, key.size, &value, has, error);
    if (code != SPILL_CORRUPT)
        return code;
    *has = true;
    return SPILL_OK;
}

/* Fail for an unreadable record of other fields, and name the owner by the key. */
static spill_code_t fail_fields(const spill_embedded_t *store, const uint8_t *owner,
                                size_t owner_bytes, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_value_t value;
    char *json = spill_owner_from_key(owner, owner_bytes, &storage, &value)
                     ? spill_value_to_json(&value, false)
                     : NULL;
    spill_code_t code = spill_fail(error, SPILL_CORRUPT,
                                   "%s: owner %.100s: the record of the other fields cannot be "
                                   "read; restore a backup",
                                   store->base.uri, json ? json : "?");
    bson_free(json);
    return code;
}

/* List an owner that has a head and the record `value` of other fields. */
static spill_code_t list_owner(walk_t *walk, const uint8_t *owner, size_t owner_bytes,
                               const uint8_t *value, size_t value_bytes, spill_error_t *error)
{
    bson_t fields;
    bson_iter_t at;
    if (!spill_fields_decode(value, value_bytes, owner, owner_bytes, &fields) ||
        !bson_iter_init_find(&at, &fields, "_id"))
        return fail_fields(walk->store, owner, owner_bytes, error);
    spill_value_t id = spill_value_from_iter(&at);
    spill_listing_add_owner(walk->listing, &id);
    spill_listing_set_last(walk->listing, owner, owner_bytes);
    return SPILL_OK;
}

static spill_code_t add_owner(void *context, const spill_kv_iter_t *iter, bool *more,
                              spill_error_t *error)
{
    walk_t *walk = context;
    const uint8_t *owner = iter->key + 4;
    size_t owner_bytes = iter->key_bytes - 4;
    bool has = false;
    SPILL_TRY(has_head(walk->store->kv, walk->binding->array_id, owner, owner_bytes, &has, error));
    if (has)
        SPILL_TRY(list_owner(walk, owner, owner_bytes, iter->value, iter->value_bytes, error));
    *more = walk->listing->count < walk->limit;
    return SPILL_OK;
}

/* List the owners of the span. */
static spill_code_t list_span(walk_t *walk, const spill_span_t *span, spill_error_t *error)
{
    for (size_t i = 0; i < span->owner_count; i++) {
        const spill_span_owner_t *owner = &span->owners[i];
        if (owner->has_head && owner->has_fields)
            SPILL_TRY(list_owner(walk, spill_span_owner_key(span, owner), owner->key_bytes,
                                 span->bytes.data + owner->fields.value, owner->fields.value_bytes,
                                 error));
    }
    return SPILL_OK;
}

/*
 * List the owners behind `after` from the pass's span, which keeps their records for reads. Move
 * `after` on over owners that are not listed. *done: false if the next owner is in no span.
 */
static spill_code_t list_pass(walk_t *walk, spill_pass_t *pass, spill_span_range_t *range,
                              spill_buffer_t *after, bool *done, spill_error_t *error)
{
    const spill_span_t *span;
    do {
        range->after = after->data;
        range->after_bytes = after->size;
        span = spill_pass_fill(pass, range);
        *done = span->owner_count > 0 || span->ends;
        SPILL_TRY(list_span(walk, span, error));
        if (span->owner_count > 0) {
            const spill_span_owner_t *last = &span->owners[span->owner_count - 1];
            spill_buffer_clear(after);
            spill_buffer_append(after, spill_span_owner_key(span, last), last->key_bytes);
        }
    } while (walk->listing->count == 0 && *done && !span->ends);
    return SPILL_OK;
}

/* ---- oversized heads ------------------------------------------------------------------------- */

/* Read the head, if there is one. One that is damaged is skipped; its next reader reports it. */
static spill_code_t read_head(walk_t *walk, const uint8_t *owner, size_t owner_bytes,
                              bool *readable, spill_error_t *error)
{
    spill_kv_t *kv = walk->store->kv;
    spill_record_key_t key;
    bool there = false;
    spill_record_key_init(&key, walk->binding->array_id, owner, owner_bytes);
    spill_record_key_kind(&key, SPILL_RECORD_HEAD);
    spill_state_clear(&walk->head);
    spill_code_t code = kv->ops->get(kv, key.data, key.size, &walk->value, &there, error);
    *readable =
        code == SPILL_OK &&
        (!there || spill_state_decode(walk->value.data, walk->value.size, true, &walk->head));
    return code == SPILL_CORRUPT ? SPILL_OK : code;
}

/* An unmanaged array is in the other fields; a managed one has a head's record. */
static bool is_oversized(const walk_t *walk, const bson_t *fields, spill_oversized_t *oversized)
{
    const spill_list_query_t *query = walk->query;
    const spill_state_t *head = &walk->head;
    bson_iter_t id;
    if (!bson_iter_init_find(&id, fields, "_id"))
        return false;
    *oversized = (spill_oversized_t){.owner = spill_value_from_iter(&id)};
    if (!head->present)
        return spill_unmanaged_measure(walk->definition, fields, query->oversized.full, oversized);
    oversized->managed = true;
    oversized->elements = head->live;
    oversized->bytes = head->live_bytes;
    return spill_state_slots(head) >= query->oversized.slots ||
           head->live_bytes + (int64_t)fields->len >= query->oversized.bytes;
}

static spill_code_t add_if_oversized(void *context, const spill_kv_iter_t *iter, bool *more,
                                     spill_error_t *error)
{
    walk_t *walk = context;
    const uint8_t *owner = iter->key + 4;
    size_t owner_bytes = iter->key_bytes - 4;
    bson_t fields;
    bool readable;
    spill_oversized_t oversized;
    SPILL_TRY(read_head(walk, owner, owner_bytes, &readable, error));
    if (!readable ||
        !spill_fields_decode(iter->value, iter->value_bytes, owner, owner_bytes, &fields) ||
        !is_oversized(walk, &fields, &oversized))
        return SPILL_OK;
    spill_listing_add_oversized(walk->listing, &oversized);
    spill_listing_set_last(walk->listing, owner, owner_bytes);
    *more = walk->listing->count < walk->query->limit;
    return SPILL_OK;
}

spill_code_t spill_embedded_oversized(spill_store_t *store, const spill_definition_t *definition,
                                      const spill_binding_t *binding,
                                      const spill_list_query_t *query, spill_listing_t *listing,
                                      spill_error_t *error)
{
    walk_t walk = {.store = (spill_embedded_t *)store,
                   .definition = definition,
                   .binding = binding,
                   .query = query,
                   .listing = listing,
                   .value = SPILL_BUFFER_INIT};
    spill_code_t code =
        spill_embedded_each_fields(walk.store, binding->collection_id, query->after,
                                   query->after_bytes, add_if_oversized, &walk, error);
    spill_state_release(&walk.head);
    spill_buffer_release(&walk.value);
    return code;
}

/* ---- windows of an owner --------------------------------------------------------------------- */

/* Go to the first window in the query's order. */
static void seek_window(spill_kv_iter_t *iter, const spill_buffer_t *bound, uint32_t collection_id,
                        bool newest_first)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t key = SPILL_BUFFER_INIT;
    uint8_t id[4];
    spill_id_prefix(id, collection_id);
    spill_buffer_append(&key, id, sizeof id);
    spill_buffer_append(&key, bound->data, bound->size);
    if (newest_first)
        iter->ops->seek_before(iter, key.data, key.size);
    else
        iter->ops->seek(iter, key.data, key.size);
}

static spill_code_t list_windows(const spill_embedded_t *store, const spill_binding_t *binding,
                                 const spill_list_query_t *query, const spill_window_keys_t *keys,
                                 spill_listing_t *listing, spill_error_t *error)
{
    uint8_t id[4];
    bool newest_first = query->windows.newest_first;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t place = SPILL_BUFFER_INIT;
    SPILL_SCOPED(spill_kv_iter_release)
    spill_kv_iter_t *iter = store->kv->ops->iterate(store->kv);
    spill_id_prefix(id, binding->collection_id);
    seek_window(iter, newest_first ? &keys->high : &keys->low, binding->collection_id,
                newest_first);
    while (listing->count < query->limit && iter->valid && iter->key_bytes > 4 &&
           memcmp(iter->key, id, 4) == 0 &&
           spill_window_keys_hold(keys, iter->key + 4, iter->key_bytes - 4)) {
        bool has = false;
        spill_buffer_clear(&place);
        spill_buffer_append(&place, iter->key + 4, iter->key_bytes - 4);
        SPILL_TRY(has_head(store->kv, binding->array_id, place.data, place.size, &has, error));
        if (has)
            spill_window_keys_list(keys, place.data, place.size, listing);
        if (newest_first)
            seek_window(iter, &place, binding->collection_id, true);
        else
            iter->ops->next(iter);
    }
    return spill_kv_iter_stop(iter, error);
}

/* List each window with an element of the id once, by the index over all windows of an owner. */
static spill_code_t list_windows_with_id(const spill_embedded_t *store, uint32_t array_id,
                                         const spill_list_query_t *query, spill_listing_t *listing,
                                         spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t owner_key = SPILL_BUFFER_INIT;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t id = SPILL_BUFFER_INIT;
    const char *after = spill_list_after_window(query), *to = query->windows.to;
    const char *window = after ? after : query->windows.from ? query->windows.from : "";
    spill_record_key_t key;
    SPILL_TRY(spill_owner_key(query->windows.owner, &owner_key, error));
    SPILL_TRY(spill_element_id_key(query->windows.id, false, &id, error));
    spill_record_key_init(&key, array_id, owner_key.data, owner_key.size);
    SPILL_SCOPED(spill_kv_iter_release)
    spill_kv_iter_t *iter = store->kv->ops->iterate(store->kv);
    spill_record_key_window_ids(&key, &id, window, after != NULL);
    iter->ops->seek(iter, key.data, key.size);
    while (listing->count < query->limit && iter->valid &&
           spill_record_key_is_window_id(&key, &id, iter->key, iter->key_bytes, &window) &&
           (!to || strcmp(window, to) <= 0)) {
        spill_listing_add_text(listing, window, strlen(window));
        spill_record_key_window_ids(&key, &id, window, true);
        iter->ops->seek(iter, key.data, key.size);
    }
    return spill_kv_iter_stop(iter, error);
}

spill_code_t spill_embedded_windows(spill_store_t *store, const spill_definition_t *definition,
                                    const spill_binding_t *binding, const spill_list_query_t *query,
                                    spill_listing_t *listing, spill_error_t *error)
{
    (void)definition;
    const spill_embedded_t *embedded = (const spill_embedded_t *)store;
    if (query->windows.id)
        return list_windows_with_id(embedded, binding->array_id, query, listing, error);
    SPILL_SCOPED(spill_window_keys_release) spill_window_keys_t keys = {0};
    SPILL_TRY(spill_window_keys_init(&keys, query, error));
    return list_windows(embedded, binding, query, &keys, listing, error);
}

/* ---- pages without a head -------------------------------------------------------------------- */

/*
 * Walk the records of an array from owner to owner, with one to three seeks for each. They are
 * seeks in a span, if the owner has few records. No other program writes here, so an owner
 * without a head was dropped.
 */

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
static spill_code_t read_incarnation(orphan_search_t *search, int64_t *incarnation, bool *readable,
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
    spill_code_t code = read_incarnation(search, &incarnation, &worth, error);
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

/*
 * Go to the first owner with records at or behind search->key, from the engine; false: there is
 * none.
 */
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

/* Search one owner, the next one behind search->key. *ends: there is none. */
static spill_code_t add_orphans_of_next(orphan_search_t *search, uint32_t array_id, bool *ends,
                                        spill_error_t *error)
{
    spill_kv_t *kv = search->store->kv;
    SPILL_SCOPED(spill_kv_iter_release) spill_kv_iter_t *iter = kv->ops->iterate(kv);
    search->iter = iter;
    if (search->key.prefix > 4)
        spill_embedded_pass_owner(iter, &search->key);
    else
        iter->ops->seek(iter, search->key.data, search->key.size);
    *ends = !next_owner(search, array_id);
    if (!*ends)
        SPILL_TRY(add_orphans_of_owner(search, error));
    return spill_kv_iter_stop(iter, error);
}

static spill_code_t add_orphans_of_one(orphan_search_t *search, const spill_binding_t *binding,
                                       const spill_value_t *owner, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t name = SPILL_BUFFER_INIT;
    spill_kv_t *kv = search->store->kv;
    SPILL_TRY(spill_owner_key(owner, &name, error));
    spill_record_key_init(&search->key, binding->array_id, name.data, name.size);
    SPILL_SCOPED(spill_kv_iter_release) spill_kv_iter_t *iter = kv->ops->iterate(kv);
    search->iter = iter;
    SPILL_TRY(add_orphans_of_owner(search, error));
    return spill_kv_iter_stop(iter, error);
}

/* Search the owners of a span. */
static spill_code_t add_orphans_of_span(orphan_search_t *search, const spill_span_t *span,
                                        uint32_t array_id, size_t limit, spill_error_t *error)
{
    spill_owner_records_t records;
    for (size_t i = 0; i < span->owner_count && search->listing->count < limit; i++) {
        const spill_span_owner_t *owner = &span->owners[i];
        spill_kv_t *kv = spill_owner_records_open(&records, span, owner);
        search->iter = kv->ops->iterate(kv);
        spill_record_key_init(&search->key, array_id, spill_span_owner_key(span, owner),
                              owner->key_bytes);
        SPILL_TRY(add_orphans_of_owner(search, error));
    }
    return SPILL_OK;
}

/* Search owners with few records in spans, the others one by one. */
static spill_code_t add_orphans(orphan_search_t *search, const spill_binding_t *binding,
                                const spill_list_query_t *query, spill_error_t *error)
{
    enum { RECORDS_MAX = 32 };
    uint32_t array_id = binding->array_id;
    SPILL_SCOPED(spill_span_release) spill_span_t span = {.bytes_most = 0};
    spill_span_range_t range = {
        .array_id = array_id, .heads_max = SIZE_MAX, .owner_records_max = RECORDS_MAX};
    bool ends = false;
    spill_record_key_init(&search->key, array_id, query->after, query->after_bytes);
    while (!ends && search->listing->count < query->limit) {
        range.after = search->key.data + 4;
        range.after_bytes = search->key.prefix - 4;
        spill_span_fill(&span, search->store->kv, &range);
        ends = span.ends;
        if (span.owner_count > 0)
            SPILL_TRY(add_orphans_of_span(search, &span, array_id, query->limit, error));
        else if (!ends)
            SPILL_TRY(add_orphans_of_next(search, array_id, &ends, error));
    }
    return SPILL_OK;
}

spill_code_t spill_embedded_orphans(spill_store_t *store, const spill_definition_t *definition,
                                    const spill_binding_t *binding, const spill_list_query_t *query,
                                    spill_listing_t *listing, spill_error_t *error)
{
    orphan_search_t search = {.store = (spill_embedded_t *)store,
                              .oldest = !spill_schema_of(definition)->appends_to_head,
                              .listing = listing};
    const spill_value_t *owner = query->orphans.owner;
    spill_code_t code = owner ? add_orphans_of_one(&search, binding, owner, error)
                              : add_orphans(&search, binding, query, error);
    spill_state_release(&search.state);
    return code;
}

/* ---- owners, also of a damaged store --------------------------------------------------------- */

/*
 * A record of other fields cannot be read, and the store is open with `partial`: list the next
 * owners by the records of their arrays, which are in the same order.
 */
static spill_code_t list_by_records(const walk_t *walk, spill_error_t *error)
{
    uint32_t array_id = walk->binding->array_id;
    spill_kv_t *kv = walk->store->kv;
    SPILL_SCOPED(spill_kv_iter_release) spill_kv_iter_t *iter = kv->ops->iterate(kv);
    orphan_search_t search = {.store = walk->store, .iter = iter};
    spill_record_key_init(&search.key, array_id, walk->query->after, walk->query->after_bytes);
    if (walk->query->after_bytes > 0)
        spill_embedded_pass_owner(iter, &search.key);
    else
        iter->ops->seek(iter, search.key.data, search.key.size);
    while (walk->listing->count < walk->query->limit && next_owner(&search, array_id)) {
        SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
        spill_value_t id;
        const uint8_t *owner = search.key.data + 4;
        size_t owner_bytes = search.key.prefix - 4;
        bool has = false;
        SPILL_TRY(has_head(kv, array_id, owner, owner_bytes, &has, error));
        if (has && spill_owner_from_key(owner, owner_bytes, &storage, &id)) {
            spill_listing_add_owner(walk->listing, &id);
            spill_listing_set_last(walk->listing, owner, owner_bytes);
        }
        spill_embedded_pass_owner(iter, &search.key);
    }
    return spill_kv_iter_stop(iter, error);
}

/* List the next owners, from a span if their records can be read. */
static spill_code_t list_owners(walk_t *walk, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t after = SPILL_BUFFER_INIT;
    const spill_list_query_t *query = walk->query;
    const spill_binding_t *binding = walk->binding;
    spill_span_range_t range = {.array_id = binding->array_id,
                                .collection_id = binding->collection_id,
                                .after = query->after,
                                .after_bytes = query->after_bytes,
                                .heads_max = query->limit};
    if (binding->collection_id == 0) /* no such collection */
        return SPILL_OK;
    if (query->after_bytes > 0)
        spill_buffer_append(&after, query->after, query->after_bytes);
    spill_pass_t *pass = spill_pass_open(walk->store->ahead, &range);
    bool done = false;
    spill_code_t code = pass ? list_pass(walk, pass, &range, &after, &done, error) : SPILL_OK;
    if (code == SPILL_OK && !done) {
        if (pass) /* behind an owner that does not fit a span, go on with spans */
            walk->limit = 1;
        code = spill_embedded_each_fields(walk->store, binding->collection_id, after.data,
                                          after.size, add_owner, walk, error);
    }
    if (pass)
        spill_pass_close(pass, walk->listing->last.data, walk->listing->last.size);
    return code;
}

spill_code_t spill_embedded_owners(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_binding_t *binding, const spill_list_query_t *query,
                                   spill_listing_t *listing, spill_error_t *error)
{
    walk_t walk = {.store = (spill_embedded_t *)store,
                   .definition = definition,
                   .binding = binding,
                   .query = query,
                   .limit = query->limit,
                   .listing = listing};
    spill_error_t failure;
    spill_code_t code = list_owners(&walk, &failure);
    if (listing->count > 0)
        return SPILL_OK; /* the next batch returns the error */
    if (code == SPILL_CORRUPT && store->options.partial) {
        spill_store_log(store, SPILL_LOG_WARNING,
                        "other fields cannot be read, so owners are listed by their elements: %s",
                        failure.message);
        code = list_by_records(&walk, &failure);
    }
    if (code != SPILL_OK && error)
        *error = failure;
    return listing->count > 0 ? SPILL_OK : code;
}
