/* The indexes of pages, ids and ranks: compare them with the records, and rebuild them. */
#include "store/embedded/embedded_check.h"

#include "bson/element_fields.h"
#include "definition/schema.h"
#include "store/embedded/embedded_codec.h"
#include "store/embedded/records.h"
#include "util/buffer.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

/* ---- compare --------------------------------------------------------------------------------- */

static bool is_there(spill_checking_t *checking, const spill_record_key_t *key)
{
    spill_kv_iter_t *iter = checking->iter;
    iter->ops->seek(iter, key->data, key->size);
    return iter->valid && iter->key_bytes == key->size &&
           memcmp(iter->key, key->data, key->size) == 0;
}

/* A number of keys and a sum over them, to compare two sets. */
typedef struct key_set {
    int64_t count;
    uint64_t sum;
} key_set_t;

static void add_key(key_set_t *set, const uint8_t *key, size_t key_bytes)
{
    set->count++;
    set->sum += spill_hash(key, key_bytes);
}

/* ---- the index of pages ---------------------------------------------------------------------- */

/* The entries that the pages of all incarnations must have. */
static key_set_t entries_of_pages(spill_checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    spill_state_t state = {0};
    int64_t page;
    key_set_t set = {0};
    spill_checking_seek_kind(checking, SPILL_RECORD_PAGE);
    for (;
         iter->valid && spill_record_key_is_page(&checking->key, iter->key, iter->key_bytes, &page);
         iter->ops->next(iter)) {
        if (spill_state_decode(iter->value, iter->value_bytes, false, &state)) {
            spill_record_key_first(&checking->key, state.incarnation, state.first, page);
            add_key(&set, checking->key.data, checking->key.size);
        } else {
            spill_checking_find(checking, page, SPILL_CHECK_RECOVERABLE,
                                "the record of its state cannot be read");
        }
    }
    spill_state_release(&state);
    return set;
}

static void find_pages_without_entry(spill_checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    spill_state_t state = {0};
    int64_t page;
    spill_checking_seek_kind(checking, SPILL_RECORD_PAGE);
    while (iter->valid &&
           spill_record_key_is_page(&checking->key, iter->key, iter->key_bytes, &page)) {
        if (spill_state_decode(iter->value, iter->value_bytes, false, &state)) {
            spill_record_key_first(&checking->key, state.incarnation, state.first, page);
            if (!is_there(checking, &checking->key))
                spill_checking_find_in_index(checking, page, "the index of pages does not have it");
        }
        spill_record_key_page(&checking->key, page);
        iter->ops->seek(iter, checking->key.data, checking->key.size);
        if (iter->valid)
            iter->ops->next(iter);
    }
    spill_state_release(&state);
}

static void find_entry_without_page(spill_checking_t *checking, int64_t incarnation, int64_t first,
                                    int64_t page)
{
    spill_kv_iter_t *iter = checking->iter;
    spill_state_t state = {0};
    spill_record_key_page(&checking->key, page);
    if (!is_there(checking, &checking->key))
        spill_checking_find_in_index(checking, page, "the index has it, but it has no record");
    else if (spill_state_decode(iter->value, iter->value_bytes, false, &state) &&
             (state.first != first || state.incarnation != incarnation))
        spill_checking_find_in_index(
            checking, page, "the index has it from %" PRId64 " on, its record from %" PRId64, first,
            state.first);
    spill_state_release(&state);
}

static void find_entries_without_page(spill_checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t incarnation, first, page;
    spill_checking_seek_kind(checking, SPILL_RECORD_FIRST);
    while (iter->valid && spill_record_key_is_first(&checking->key, iter->key, iter->key_bytes,
                                                    &incarnation, &first, &page)) {
        find_entry_without_page(checking, incarnation, first, page);
        spill_record_key_first(&checking->key, incarnation, first, page);
        iter->ops->seek(iter, checking->key.data, checking->key.size);
        if (iter->valid)
            iter->ops->next(iter);
    }
}

/* Each page must have one entry, and there must be no other entries. */
void spill_checking_page_index(spill_checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t incarnation, first, page;
    key_set_t expected = entries_of_pages(checking), entries = {0};
    if (spill_checking_find_damage(checking, SPILL_HEAD, "the records of pages"))
        return;
    spill_checking_seek_kind(checking, SPILL_RECORD_FIRST);
    for (; iter->valid && spill_record_key_is_first(&checking->key, iter->key, iter->key_bytes,
                                                    &incarnation, &first, &page);
         iter->ops->next(iter))
        add_key(&entries, iter->key, iter->key_bytes);
    if (spill_checking_find_damage(checking, SPILL_HEAD, "the index of pages") ||
        (entries.count == expected.count && entries.sum == expected.sum))
        return;
    find_pages_without_entry(checking);
    find_entries_without_page(checking);
}

/* ---- the index of ids ------------------------------------------------------------------------ */

/* Has the element at the iterator the entries of its id, if it has an id? The iterator moves. */
static bool has_entry(spill_checking_t *checking, int64_t incarnation, int64_t seq, bool *has_id)
{
    const spill_definition_t *definition = checking->request->definition;
    spill_kv_iter_t *iter = checking->iter;
    spill_buffer_t id = SPILL_BUFFER_INIT;
    spill_record_key_t window;
    spill_value_t element;
    bool has = false;
    *has_id = spill_element_decode(definition, iter->value, iter->value_bytes, &element) &&
              spill_element_key(&element, definition->id_field, definition->unique, &id);
    if (*has_id) {
        spill_record_key_id(&checking->key, incarnation, &id, seq);
        has = is_there(checking, &checking->key);
        if (spill_embedded_window_entry(checking->request, checking->request->array_id, &id,
                                        incarnation, seq, &window))
            has = is_there(checking, &window) && has;
    }
    spill_buffer_release(&id);
    return has;
}

/* Check each element with an id, of any incarnation. Return how many have their entry. */
static int64_t check_ids_of_elements(spill_checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t incarnation, seq;
    int64_t entries = 0;
    spill_checking_seek_kind(checking, SPILL_RECORD_ELEMENT);
    while (iter->valid && spill_record_key_is_element(&checking->key, iter->key, iter->key_bytes,
                                                      &incarnation, &seq)) {
        bool has_id;
        bool has = has_entry(checking, incarnation, seq, &has_id);
        entries += has;
        if (has_id && !has)
            spill_checking_find_in_index(checking, SPILL_HEAD,
                                         "the id of element %" PRId64 " has no entry", seq);
        if (has_id) {
            spill_record_key_element(&checking->key, incarnation, seq);
            iter->ops->seek(iter, checking->key.data, checking->key.size);
        }
        if (iter->valid)
            iter->ops->next(iter);
    }
    return entries;
}

/* Check the index of ids: elements and index must have the same number of entries. */
void spill_checking_ids(spill_checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t incarnation, seq;
    const uint8_t *id;
    size_t id_bytes;
    bool indexed = checking->request->definition->id_field[0] != '\0';
    int64_t expected = indexed ? check_ids_of_elements(checking) : 0;
    int64_t entries = 0;
    spill_checking_seek_kind(checking, SPILL_RECORD_ID);
    for (; iter->valid && spill_record_key_is_id(&checking->key, iter->key, iter->key_bytes,
                                                 &incarnation, &id, &id_bytes, &seq);
         iter->ops->next(iter))
        entries++;
    if (spill_checking_find_damage(checking, SPILL_HEAD, "the index of ids"))
        return;
    if (entries != expected)
        spill_checking_find_in_index(checking, SPILL_HEAD,
                                     "the index of ids has %" PRId64
                                     " entries; elements account for %" PRId64,
                                     entries, expected);
    spill_checking_find_unknown(checking, SPILL_RECORD_RANK);
}

/* ---- the index of ranks ---------------------------------------------------------------------- */

/* Has the element at the iterator its entry? The iterator returns to the element. */
static bool has_rank(spill_checking_t *checking, int64_t incarnation, int64_t seq)
{
    spill_kv_iter_t *iter = checking->iter;
    spill_value_t element;
    if (!spill_element_decode(checking->request->definition, iter->value, iter->value_bytes,
                              &element))
        return false;
    spill_rank_t rank = spill_rank_of(checking->request->definition, &element);
    spill_record_key_rank(&checking->key, incarnation, &rank, seq);
    bool has = is_there(checking, &checking->key);
    spill_record_key_element(&checking->key, incarnation, seq);
    iter->ops->seek(iter, checking->key.data, checking->key.size);
    return has;
}

/* The entries that the elements of all incarnations must have. */
static key_set_t ranks_of_elements(spill_checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    spill_value_t element;
    int64_t incarnation, seq;
    key_set_t set = {0};
    spill_checking_seek_kind(checking, SPILL_RECORD_ELEMENT);
    for (; iter->valid && spill_record_key_is_element(&checking->key, iter->key, iter->key_bytes,
                                                      &incarnation, &seq);
         iter->ops->next(iter)) {
        if (!spill_element_decode(checking->request->definition, iter->value, iter->value_bytes,
                                  &element))
            continue;
        spill_rank_t rank = spill_rank_of(checking->request->definition, &element);
        spill_record_key_rank(&checking->key, incarnation, &rank, seq);
        add_key(&set, checking->key.data, checking->key.size);
    }
    return set;
}

static void find_elements_without_rank(spill_checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t incarnation, seq;
    spill_checking_seek_kind(checking, SPILL_RECORD_ELEMENT);
    while (iter->valid && spill_record_key_is_element(&checking->key, iter->key, iter->key_bytes,
                                                      &incarnation, &seq)) {
        if (!has_rank(checking, incarnation, seq))
            spill_checking_find_in_index(checking, SPILL_HEAD,
                                         "the rank of element %" PRId64 " has no entry", seq);
        if (iter->valid)
            iter->ops->next(iter);
    }
}

/* Each element must have one entry, and there must be no other entries. */
void spill_checking_ranks(spill_checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t incarnation, seq;
    bool indexed = spill_schema_of(checking->request->definition)->has_rank_index;
    key_set_t expected = {0}, entries = {0};
    if (indexed)
        expected = ranks_of_elements(checking);
    spill_checking_seek_kind(checking, SPILL_RECORD_RANK);
    for (; iter->valid &&
           spill_record_key_is_rank(&checking->key, iter->key, iter->key_bytes, &incarnation, &seq);
         iter->ops->next(iter))
        add_key(&entries, iter->key, iter->key_bytes);
    if (spill_checking_find_damage(checking, SPILL_HEAD, "the index of ranks"))
        return;
    spill_checking_find_unknown(checking, SPILL_RECORD_WINDOW_ID);
    if (entries.count == expected.count && entries.sum == expected.sum)
        return;
    spill_checking_find_in_index(checking, SPILL_HEAD,
                                 "the index of ranks has %" PRId64
                                 " entries, which do not match the %" PRId64 " elements",
                                 entries.count, expected.count);
    if (indexed)
        find_elements_without_rank(checking);
}

/* ---- rebuild --------------------------------------------------------------------------------- */

/*
 * RECOUNT with `indexes`: for all incarnations of an owner, put the missing index entries of its
 * pages and of the ids and ranks of its elements, and delete wrong ones. The batch has no other
 * change of the owner, so the engine has its current records.
 */

typedef struct reindexing {
    spill_embedded_t *store;
    const spill_request_t *request;
    spill_batch_t *batch;
    spill_kv_iter_t *iter;
    spill_record_key_t key;   /* of the current record */
    spill_record_key_t entry; /* of an index entry */
    spill_buffer_t record, id, nothing;
} reindexing_t;

static void seek_kind(reindexing_t *reindexing, spill_record_t kind)
{
    spill_record_key_kind(&reindexing->key, kind);
    reindexing->iter->ops->seek(reindexing->iter, reindexing->key.data, reindexing->key.size);
}

static spill_code_t put_if_missing(reindexing_t *reindexing, const spill_record_key_t *entry,
                                   spill_error_t *error)
{
    bool found;
    SPILL_TRY(spill_embedded_get(reindexing->store, reindexing->batch, entry->data, entry->size,
                                 &reindexing->nothing, &found, error));
    if (!found)
        spill_batch_put(reindexing->batch, entry->data, entry->size, NULL, 0);
    return SPILL_OK;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static spill_code_t index_pages(reindexing_t *reindexing, spill_error_t *error)
{
    spill_kv_iter_t *iter = reindexing->iter;
    SPILL_SCOPED(spill_state_release) spill_state_t state = {0};
    int64_t page;
    seek_kind(reindexing, SPILL_RECORD_PAGE);
    for (; iter->valid &&
           spill_record_key_is_page(&reindexing->key, iter->key, iter->key_bytes, &page);
         iter->ops->next(iter)) {
        if (!spill_state_decode(iter->value, iter->value_bytes, false, &state))
            continue;
        spill_record_key_first(&reindexing->entry, state.incarnation, state.first, page);
        SPILL_TRY(put_if_missing(reindexing, &reindexing->entry, error));
    }
    return spill_kv_iter_stop(iter, error);
}

/* Delete entries without a page. The entry of a page that cannot be read stays. */
static spill_code_t delete_wrong_pages(reindexing_t *reindexing, spill_error_t *error)
{
    spill_kv_iter_t *iter = reindexing->iter;
    SPILL_SCOPED(spill_state_release) spill_state_t state = {0};
    int64_t incarnation, first, page;
    seek_kind(reindexing, SPILL_RECORD_FIRST);
    for (; iter->valid && spill_record_key_is_first(&reindexing->key, iter->key, iter->key_bytes,
                                                    &incarnation, &first, &page);
         iter->ops->next(iter)) {
        bool found;
        spill_record_key_page(&reindexing->entry, page);
        SPILL_TRY(spill_embedded_get(reindexing->store, reindexing->batch, reindexing->entry.data,
                                     reindexing->entry.size, &reindexing->record, &found, error));
        if (!found ||
            (spill_state_decode(reindexing->record.data, reindexing->record.size, false, &state) &&
             (state.incarnation != incarnation || state.first != first)))
            spill_batch_delete(reindexing->batch, iter->key, iter->key_bytes);
    }
    return spill_kv_iter_stop(iter, error);
}

/* ---- ids and ranks --------------------------------------------------------------------------- */

/* Set reindexing->entry to the key of the entry. False: the element has no id. */
static bool id_entry(reindexing_t *reindexing, int64_t incarnation, int64_t seq,
                     const spill_value_t *element)
{
    const spill_definition_t *definition = reindexing->request->definition;
    spill_buffer_clear(&reindexing->id);
    if (definition->id_field[0] == '\0' ||
        !spill_element_key(element, definition->id_field, definition->unique, &reindexing->id))
        return false;
    spill_record_key_id(&reindexing->entry, incarnation, &reindexing->id, seq);
    return true;
}

static bool rank_entry(reindexing_t *reindexing, int64_t incarnation, int64_t seq,
                       const spill_value_t *element)
{
    const spill_definition_t *definition = reindexing->request->definition;
    if (!spill_schema_of(definition)->has_rank_index)
        return false;
    spill_rank_t rank = spill_rank_of(definition, element);
    spill_record_key_rank(&reindexing->entry, incarnation, &rank, seq);
    return true;
}

static spill_code_t put_entries(reindexing_t *reindexing, int64_t incarnation, int64_t seq,
                                const spill_value_t *element, spill_error_t *error)
{
    const spill_request_t *request = reindexing->request;
    spill_record_key_t window;
    if (id_entry(reindexing, incarnation, seq, element)) {
        SPILL_TRY(put_if_missing(reindexing, &reindexing->entry, error));
        if (spill_embedded_window_entry(request, request->array_id, &reindexing->id, incarnation,
                                        seq, &window))
            SPILL_TRY(put_if_missing(reindexing, &window, error));
    }
    if (rank_entry(reindexing, incarnation, seq, element))
        SPILL_TRY(put_if_missing(reindexing, &reindexing->entry, error));
    return SPILL_OK;
}

static spill_code_t index_elements(reindexing_t *reindexing, spill_error_t *error)
{
    spill_kv_iter_t *iter = reindexing->iter;
    int64_t incarnation, seq;
    seek_kind(reindexing, SPILL_RECORD_ELEMENT);
    for (; iter->valid && spill_record_key_is_element(&reindexing->key, iter->key, iter->key_bytes,
                                                      &incarnation, &seq);
         iter->ops->next(iter)) {
        spill_value_t element;
        if (spill_element_decode(reindexing->request->definition, iter->value, iter->value_bytes,
                                 &element))
            SPILL_TRY(put_entries(reindexing, incarnation, seq, &element, error));
    }
    return spill_kv_iter_stop(iter, error);
}

/* Set reindexing->entry to the entry that this element must have; false: none. */
typedef bool (*entry_fn)(reindexing_t *reindexing, int64_t incarnation, int64_t seq,
                         const spill_value_t *element);

static spill_code_t delete_if_wrong(reindexing_t *reindexing, int64_t incarnation, int64_t seq,
                                    entry_fn entry, spill_error_t *error)
{
    const spill_kv_iter_t *iter = reindexing->iter;
    spill_value_t element;
    bool found;
    spill_record_key_element(&reindexing->key, incarnation, seq);
    SPILL_TRY(spill_embedded_get(reindexing->store, reindexing->batch, reindexing->key.data,
                                 reindexing->key.size, &reindexing->record, &found, error));
    bool right = found &&
                 spill_element_decode(reindexing->request->definition, reindexing->record.data,
                                      reindexing->record.size, &element) &&
                 entry(reindexing, incarnation, seq, &element) &&
                 reindexing->entry.size == iter->key_bytes &&
                 memcmp(reindexing->entry.data, iter->key, iter->key_bytes) == 0;
    if (!right)
        spill_batch_delete(reindexing->batch, iter->key, iter->key_bytes);
    return SPILL_OK;
}

static bool at_id(const reindexing_t *reindexing, int64_t *incarnation, int64_t *seq)
{
    const spill_kv_iter_t *iter = reindexing->iter;
    const uint8_t *id;
    size_t id_bytes;
    return iter->valid && spill_record_key_is_id(&reindexing->key, iter->key, iter->key_bytes,
                                                 incarnation, &id, &id_bytes, seq);
}

static bool at_rank(const reindexing_t *reindexing, int64_t *incarnation, int64_t *seq)
{
    const spill_kv_iter_t *iter = reindexing->iter;
    return iter->valid &&
           spill_record_key_is_rank(&reindexing->key, iter->key, iter->key_bytes, incarnation, seq);
}

static spill_code_t delete_wrong_entries(reindexing_t *reindexing, spill_record_t kind,
                                         bool (*at)(const reindexing_t *reindexing,
                                                    int64_t *incarnation, int64_t *seq),
                                         entry_fn entry, spill_error_t *error)
{
    spill_kv_iter_t *iter = reindexing->iter;
    int64_t incarnation, seq;
    seek_kind(reindexing, kind);
    for (; at(reindexing, &incarnation, &seq); iter->ops->next(iter))
        SPILL_TRY(delete_if_wrong(reindexing, incarnation, seq, entry, error));
    return spill_kv_iter_stop(iter, error);
}

static void release(reindexing_t *reindexing)
{
    reindexing->iter->ops->free(reindexing->iter);
    spill_buffer_release(&reindexing->record);
    spill_buffer_release(&reindexing->id);
    spill_buffer_release(&reindexing->nothing);
}

static spill_code_t reindex_all(reindexing_t *reindexing, spill_error_t *error)
{
    SPILL_TRY(index_pages(reindexing, error));
    SPILL_TRY(delete_wrong_pages(reindexing, error));
    SPILL_TRY(index_elements(reindexing, error));
    SPILL_TRY(delete_wrong_entries(reindexing, SPILL_RECORD_ID, at_id, id_entry, error));
    return delete_wrong_entries(reindexing, SPILL_RECORD_RANK, at_rank, rank_entry, error);
}

spill_code_t spill_embedded_reindex(spill_embedded_t *store, const spill_request_t *request,
                                    const spill_record_key_t *key, spill_batch_t *batch,
                                    spill_error_t *error)
{
    SPILL_SCOPED(release)
    reindexing_t reindexing = {.store = store,
                               .request = request,
                               .batch = batch,
                               .iter = store->kv->ops->iterate(store->kv),
                               .key = *key,
                               .entry = *key};
    spill_code_t code = reindex_all(&reindexing, error);
    return code == SPILL_OK ? code : spill_embedded_place(request, request->page, code, error);
}
