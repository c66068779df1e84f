/* Write the records of a decision. */
#include "store/embedded/op_records.h"
#include "store/embedded/records.h"

#include "definition/schema.h"
#include "store/embedded/embedded_codec.h"
#include "util/error.h"

#include <string.h>

/* Delete up to this many records one by one, because a deleted range slows down later reads. */
enum { SINGLE_DELETES_MAX = 1024 };

/* One effect whose records are being written. */
typedef struct making {
    spill_embedded_t *store;
    const spill_request_t *request;
    const spill_before_t *before;
    spill_state_t *state; /* after the step */
    spill_record_key_t *key;
    spill_batch_t *batch;
} making_t;

/* ---- elements -------------------------------------------------------------------------------- */

static void put_element(const making_t *making, int64_t seq, const spill_value_t *value)
{
    spill_record_key_element(making->key, making->state->incarnation, seq);
    uint8_t *place = spill_batch_put_place(making->batch, making->key->data, making->key->size,
                                           (size_t)value->size_bytes + 1);
    place[0] = value->type;
    if (value->size_bytes > 0)
        memcpy(place + 1, value->data, value->size_bytes);
}

/* ---- the indexes of elements: of ids, and of ranks ------------------------------------------- */

static bool has_ids(const making_t *making)
{
    return making->request->definition->id_field[0] != '\0';
}

static bool has_ranks(const making_t *making)
{
    return spill_schema_of(making->request->definition)->has_rank_index;
}

static void set_entry(const making_t *making, const spill_record_key_t *key, bool put)
{
    if (put)
        spill_batch_put(making->batch, key->data, key->size, NULL, 0);
    else
        spill_batch_delete(making->batch, key->data, key->size);
}

/* Put or delete the entry of an element with an id; in a bucket, both entries. */
static void set_id(const making_t *making, int64_t incarnation, int64_t seq,
                   const spill_value_t *element, bool put)
{
    spill_buffer_t id = SPILL_BUFFER_INIT;
    spill_record_key_t key;
    const spill_definition_t *definition = making->request->definition;
    if (has_ids(making) &&
        spill_element_key(element, definition->id_field, definition->unique, &id)) {
        spill_record_key_id(making->key, incarnation, &id, seq);
        set_entry(making, making->key, put);
        if (spill_embedded_window_entry(making->request, making->request->array_id, &id,
                                        incarnation, seq, &key))
            set_entry(making, &key, put);
    }
    spill_buffer_release(&id);
}

static void set_rank(const making_t *making, int64_t incarnation, int64_t seq,
                     const spill_value_t *element, bool put)
{
    if (!has_ranks(making))
        return;
    spill_rank_t rank = spill_rank_of(making->request->definition, element);
    spill_record_key_rank(making->key, incarnation, &rank, seq);
    set_entry(making, making->key, put);
}

static void index_element(const making_t *making, int64_t seq, const spill_value_t *element)
{
    set_id(making, making->state->incarnation, seq, element, true);
    set_rank(making, making->state->incarnation, seq, element, true);
}

static void delete_index_entries_of(const making_t *making, int64_t incarnation, int64_t seq,
                                    const spill_value_t *element)
{
    set_id(making, incarnation, seq, element, false);
    set_rank(making, incarnation, seq, element, false);
}

/*
 * Delete the index entries of the elements in [first, end), before the elements are deleted.
 * `batch` may be NULL if it has no change of these elements.
 */
static spill_code_t delete_index_entries(const making_t *making, const spill_batch_t *batch,
                                         int64_t incarnation, int64_t first, int64_t end,
                                         spill_error_t *error)
{
    spill_buffer_t record = SPILL_BUFFER_INIT;
    spill_code_t code = SPILL_OK;
    bool indexed = has_ids(making) || has_ranks(making);
    for (int64_t seq = first; indexed && code == SPILL_OK; seq++) {
        spill_value_t element;
        bool found;
        if (making->before->deleted)
            seq = spill_seqs_pass(making->before->deleted, seq);
        if (seq >= end)
            break;
        spill_record_key_element(making->key, incarnation, seq);
        code = spill_embedded_get(making->store, batch, making->key->data, making->key->size,
                                  &record, &found, error);
        if (code == SPILL_OK && found &&
            spill_element_decode(making->request->definition, record.data, record.size, &element))
            delete_index_entries_of(making, incarnation, seq, &element);
    }
    spill_buffer_release(&record);
    return code;
}

/* ---- deleting elements ----------------------------------------------------------------------- */

static void delete_element(const making_t *making, int64_t incarnation, int64_t seq)
{
    spill_record_key_element(making->key, incarnation, seq);
    spill_batch_delete(making->batch, making->key->data, making->key->size);
}

/* Delete the elements in [first, end). In the order of keys the newest comes first. */
static spill_code_t delete_elements(const making_t *making, int64_t incarnation, int64_t first,
                                    int64_t end, spill_error_t *error)
{
    spill_code_t code = delete_index_entries(making, NULL, incarnation, first, end, error);
    if (end - first <= SINGLE_DELETES_MAX) {
        for (int64_t seq = first; seq < end; seq++)
            delete_element(making, incarnation, seq);
        return code;
    }
    delete_element(making, incarnation, first);
    spill_record_key_t to = *making->key;
    spill_record_key_element(making->key, incarnation, end - 1);
    spill_batch_delete_range(making->batch, making->key->data, making->key->size, to.data, to.size);
    return code;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Add the operation to the cached window, or begin one with an owner's first operation. */
static void remember_op(const making_t *making, int64_t ordinal, const spill_op_entry_t *entry)
{
    spill_op_cache_t *cache = &making->store->ops;
    int64_t incarnation = making->state->incarnation;
    spill_op_window_t *window = spill_op_cache_find(cache, making->key, incarnation, ordinal);
    if (!window && ordinal == 0)
        window = spill_op_cache_begin(cache, making->key, incarnation, 0);
    if (window)
        spill_op_cache_add(cache, window, entry->id, entry->id_bytes,
                           making->request->definition->op_window);
}

/* Record the append's operation as the newest one of the document. */
static void record_op(const making_t *making, int64_t seq)
{
    const spill_op_t *op = making->request->append.op;
    spill_op_entry_t entry = {
        .ordinal = making->state->op_count - 1,
        .seq = seq,
        .count = spill_request_numbers(making->request),
        .id_bytes = (uint8_t)op->id_bytes,
    };
    memcpy(entry.id, op->id, op->id_bytes);
    remember_op(making, entry.ordinal, &entry);
    spill_op_add(making->batch, making->key, making->state, &entry,
                 making->request->definition->op_window);
}

/* The newest operations of the document before the new page, if its window ends where this begins.
 */
static spill_code_t copy_newest_ops(const making_t *making, spill_error_t *error)
{
    SPILL_SCOPED(spill_state_release) spill_state_t before = {0};
    spill_state_t *state = making->state;
    int64_t page = making->request->page > 0 ? making->request->page - 1 : SPILL_HEAD;
    SPILL_TRY(spill_embedded_get_state(making->store, making->batch, making->request, making->key,
                                       page, &before, error));
    if (before.present && before.incarnation == state->incarnation &&
        before.op_count == state->op_count)
        spill_buffer_append(&state->newest_ops, before.newest_ops.data, before.newest_ops.size);
    return SPILL_OK;
}

/*
 * A new page continues the window of the document before it. The store has one window for the
 * owner, so the page gets only the newest operations: those that have no record of their own. If
 * the client has others that the store does not have, the page gets them too.
 */
static spill_code_t carry_ops(const making_t *making, spill_error_t *error)
{
    const spill_ops_t *ops = making->request->create_page.ops;
    spill_state_t *state = making->state;
    size_t from = ops ? ops->count : 0, end = from;
    int64_t ordinal = state->op_count - 1;
    spill_op_source_t source = {.store = making->store,
                                .kv = making->store->kv,
                                .batch = making->batch,
                                .request = making->request,
                                .page = making->request->page};
    spill_op_cache_forget(&making->store->ops, making->key);
    SPILL_TRY(copy_newest_ops(making, error));
    spill_code_t code = SPILL_OK;
    for (; from > 0 && ops->entries[from - 1].ordinal == ordinal; from--, ordinal--) {
        spill_op_entry_t entry;
        bool found;
        code = spill_op_read(&source, making->key, state, ordinal, &entry, &found, error);
        if (code != SPILL_OK || found)
            break;
    }
    for (size_t i = from; i < end && code == SPILL_OK; i++)
        spill_op_add(making->batch, making->key, state, &ops->entries[i],
                     making->request->definition->op_window);
    spill_op_source_release(&source);
    return code;
}

/* Capped: delete the oldest elements, one by one: the batch itself may have put some of them. */
static spill_code_t drop_oldest(const making_t *making, int64_t below, spill_error_t *error)
{
    const spill_before_t *before = making->before;
    int64_t end = below < before->end ? below : before->end;
    if (!before->present)
        return SPILL_OK;
    spill_code_t code =
        delete_index_entries(making, making->batch, before->incarnation, before->first, end, error);
    for (int64_t seq = before->first; seq < end; seq++)
        delete_element(making, before->incarnation, seq);
    return code;
}

/* Top-N capped: delete the old elements, and skip the new ones, that the state has as deleted. */
static spill_code_t keep_top_n(const making_t *making, int64_t first, spill_error_t *error)
{
    const spill_before_t *before = making->before;
    const spill_request_t *request = making->request;
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; before->present && code == SPILL_OK && i < before->elements->count; i++) {
        int64_t seq = before->elements->at[i].seq;
        if (!spill_is_deleted(making->state, seq))
            continue;
        code =
            delete_index_entries(making, making->batch, before->incarnation, seq, seq + 1, error);
        delete_element(making, before->incarnation, seq);
    }
    for (size_t i = request->append.element_count; i > 0; i--) {
        int64_t seq = spill_request_seq(request, first, i - 1);
        if (spill_is_deleted(making->state, seq))
            continue;
        put_element(making, seq, &request->append.elements[i - 1]);
        index_element(making, seq, &request->append.elements[i - 1]);
    }
    return code;
}

static spill_code_t add_elements(const making_t *making, const spill_effect_t *effect,
                                 spill_error_t *error)
{
    const spill_request_t *request = making->request;
    if (spill_schema_of(request->definition)->keeps_top_n)
        return keep_top_n(making, effect->seq, error);
    size_t skipped = spill_append_skipped(request, effect);
    for (size_t i = request->append.element_count; i > skipped; i--)
        put_element(making, spill_request_seq(request, effect->seq, i - 1),
                    &request->append.elements[i - 1]);
    for (size_t i = skipped; i < request->append.element_count; i++)
        index_element(making, spill_request_seq(request, effect->seq, i),
                      &request->append.elements[i]);
    return drop_oldest(making, effect->end, error);
}

/* ---- documents ------------------------------------------------------------------------------- */

/*
 * Write a new page, or a page in place of an older one. Write its elements only if they do not
 * exist yet as the head's. REWRITE: write the head's new elements.
 */
static spill_code_t fill(const making_t *making, spill_error_t *error)
{
    const spill_request_t *request = making->request;
    const spill_before_t *before = making->before;
    const spill_run_t *run = before->unmanaged ? before->unmanaged : spill_request_run(request);
    spill_code_t code = SPILL_OK;
    if (before->present && !before->shared) {
        code = delete_index_entries(making, making->batch, before->incarnation, before->first,
                                    before->end, error);
        for (int64_t seq = before->first; seq < before->end; seq++)
            delete_element(making, before->incarnation, seq);
    }
    for (size_t i = 0; code == SPILL_OK && run && !before->is_view && i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        code = delete_index_entries(making, making->batch, making->state->incarnation, element.seq,
                                    element.seq + 1, error);
        put_element(making, element.seq, &element.value);
        index_element(making, element.seq, &element.value);
    }
    return code;
}

/* Update the index of pages by first number. */
static void index_page(const making_t *making)
{
    const spill_before_t *before = making->before;
    const spill_state_t *state = making->state;
    bool same = before->present && state->present && before->incarnation == state->incarnation &&
                before->first == state->first;
    if (before->present && !same) {
        spill_record_key_first(making->key, before->incarnation, before->first,
                               making->request->page);
        spill_batch_delete(making->batch, making->key->data, making->key->size);
    }
    if (state->present && !same) {
        spill_record_key_first(making->key, state->incarnation, state->first,
                               making->request->page);
        spill_batch_put(making->batch, making->key->data, making->key->size, NULL, 0);
    }
}

static void put_state(const making_t *making)
{
    bool head = making->request->page == SPILL_HEAD;
    if (!head)
        index_page(making);
    spill_embedded_state_key(making->key, making->request->page);
    spill_embedded_put_state(making->store, making->key, head, making->state, making->batch);
}

/* ---- dropping a head ------------------------------------------------------------------------- */

/* Delete the operations of the incarnation. */
static spill_code_t forget_ops(const making_t *making, int64_t incarnation, spill_error_t *error)
{
    spill_op_cache_forget(&making->store->ops, making->key);
    spill_code_t code =
        spill_ops_delete(making->store, making->key, incarnation, making->batch, error);
    return code == SPILL_OK ? code : spill_embedded_place(making->request, SPILL_HEAD, code, error);
}

static spill_code_t drop(const making_t *making, spill_error_t *error)
{
    const spill_before_t *before = making->before;
    spill_code_t code = SPILL_OK;
    if (!before->shared)
        code = delete_elements(making, before->incarnation, before->first, before->end, error);
    put_state(making);
    if (code != SPILL_OK || making->request->page != SPILL_HEAD)
        return code;
    code = forget_ops(making, before->incarnation, error);
    bool drops = making->request->kind == SPILL_REQUEST_DROP_HEAD;
    if (code != SPILL_OK || (drops && making->request->drop_head.document_stays))
        return code;
    return spill_embedded_drop_fields(making->store, making->request, making->batch, error);
}

spill_code_t spill_embedded_carry_out(spill_embedded_t *store, const spill_request_t *request,
                                      const spill_before_t *before, const spill_effect_t *effect,
                                      spill_state_t *state, spill_record_key_t *key,
                                      spill_batch_t *batch, spill_error_t *error)
{
    const making_t making = {store, request, before, state, key, batch};
    spill_code_t code = SPILL_OK;
    if (before->fields)
        code = spill_embedded_put_fields(store, request, before->fields, batch, error);
    if (code != SPILL_OK)
        return code;
    if (effect->kind == SPILL_EFFECT_DROP)
        return drop(&making, error);
    if (effect->kind == SPILL_EFFECT_ADD && request->append.op)
        record_op(&making, request->append.seqs ? 0 : effect->seq);
    if (request->kind == SPILL_REQUEST_CREATE_PAGE)
        SPILL_TRY(carry_ops(&making, error));
    if (request->kind == SPILL_REQUEST_REWRITE) {
        SPILL_TRY(forget_ops(&making, state->incarnation, error));
        spill_buffer_clear(&state->newest_ops);
    }
    put_state(&making);
    switch (effect->kind) {
    case SPILL_EFFECT_ADD:
        code = add_elements(&making, effect, error);
        break;
    case SPILL_EFFECT_REPLACE:
        delete_index_entries_of(&making, state->incarnation, effect->seq, &before->element);
        put_element(&making, effect->seq, request->change.element);
        index_element(&making, effect->seq, request->change.element);
        break;
    case SPILL_EFFECT_DELETE:
        delete_index_entries_of(&making, state->incarnation, effect->seq, &before->element);
        delete_element(&making, state->incarnation, effect->seq);
        break;
    case SPILL_EFFECT_ERASE:
        code = delete_elements(&making, before->incarnation, effect->seq, effect->end, error);
        break;
    case SPILL_EFFECT_FILL:
        code = fill(&making, error);
        break;
    case SPILL_EFFECT_NONE:
        if (request->kind == SPILL_REQUEST_RECOUNT && request->recount.indexes)
            code = spill_embedded_reindex(store, request, key, batch, error);
        break;
    case SPILL_EFFECT_CUT: /* the page is already a view of these records */
    case SPILL_EFFECT_DROP:
        break;
    }
    return code;
}
