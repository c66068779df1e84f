/*
 * RECOUNT with `indexes`: for all incarnations of an owner, put the missing index entries of its
 * pages and of the ids and ranks of its elements, and delete wrong ones. The batch has no other
 * change of the owner, so the engine has its current records.
 */
#include "store/embedded/records.h"

#include "bson/element_fields.h"
#include "definition/schema.h"
#include "store/embedded/embedded_codec.h"
#include "util/error.h"

#include <string.h>

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
    const char *field = reindexing->request->definition->id_field;
    spill_buffer_clear(&reindexing->id);
    if (field[0] == '\0' || !spill_element_key(element, field, &reindexing->id))
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
