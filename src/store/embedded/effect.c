#include "store/embedded/embedded.h"

#include "store/embedded/codec.h"

#include <string.h>

/* Up to so many records are deleted one by one: a range that is deleted slows down later reads. */
enum { SINGLE_DELETES_MAX = 256 };

/* One effect while its records are made. */
typedef struct making {
    spill_embedded_t *store;
    const spill_request_t *request;
    const spill_before_t *before;
    const spill_state_t *state;
    spill_record_key_t *key;
    spill_batch_t *batch;
} making_t;

/* ---- elements -------------------------------------------------------------------------------- */

static void put_element(const making_t *making, int64_t seq, const spill_value_t *value)
{
    spill_record_key_element(making->key, seq);
    uint8_t *place = spill_batch_put_place(making->batch, making->key->data, making->key->size,
                                           (size_t)value->size_bytes + 1);
    place[0] = value->type;
    if (value->size_bytes > 0)
        memcpy(place + 1, value->data, value->size_bytes);
}

static void delete_element(const making_t *making, int64_t seq)
{
    spill_record_key_element(making->key, seq);
    spill_batch_delete(making->batch, making->key->data, making->key->size);
}

/* From key `from` up to the key that making->key is, which stays. */
static void delete_range(const making_t *making, const spill_record_key_t *from)
{
    spill_batch_delete_range(making->batch, from->data, from->size, making->key->data,
                             making->key->size);
}

/* Elements in [first, end). In the order of keys the newest comes first. */
static void delete_elements(const making_t *making, int64_t first, int64_t end)
{
    if (end - first <= SINGLE_DELETES_MAX) {
        for (int64_t seq = first; seq < end; seq++)
            delete_element(making, seq);
        return;
    }
    spill_record_key_t from = *making->key;
    spill_record_key_element(&from, end - 1);
    if (first > 0)
        spill_record_key_element(making->key, first - 1);
    else
        spill_record_key_kind(making->key, SPILL_RECORD_PAGE);
    delete_range(making, &from);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* The operation is the owner's newest; the one that leaves the window is forgotten. */
static void remember_op(const making_t *making, int64_t seq)
{
    const spill_op_t *op = making->request->op;
    int64_t ordinal = making->state->n - 1;
    spill_op_entry_t entry = {
        .seq = seq,
        .count = (int64_t)making->request->element_count,
        .id_bytes = (uint8_t)op->id_bytes,
    };
    memcpy(entry.id, op->id, op->id_bytes);
    spill_record_key_op(making->key, ordinal);
    spill_op_encode(&entry,
                    spill_batch_put_open(making->batch, making->key->data, making->key->size));
    spill_batch_put_close(making->batch);
    if (ordinal < making->request->op_window)
        return;
    spill_record_key_op(making->key, ordinal - making->request->op_window);
    spill_batch_delete(making->batch, making->key->data, making->key->size);
}

static void add_elements(const making_t *making, int64_t seq)
{
    for (size_t i = 0; i < making->request->element_count; i++)
        put_element(making, seq + (int64_t)i, &making->request->elements[i]);
    if (making->request->op)
        remember_op(making, seq);
}

/* ---- documents ------------------------------------------------------------------------------- */

static void put_fields(const making_t *making)
{
    const bson_t *fields = making->before->fields;
    spill_record_key_t key;
    spill_record_key_init(&key, making->request->collection_id, making->request->key,
                          making->request->key_bytes);
    spill_batch_put(making->batch, key.data, key.size, bson_get_data(fields), fields->len);
}

/* Pages are found by their first number, too. */
static void index_page(const making_t *making)
{
    const spill_before_t *before = making->before;
    const spill_state_t *state = making->state;
    bool same = before->present && state->present && before->first == state->first;
    if (before->present && !same) {
        spill_record_key_first(making->key, before->first, making->request->page);
        spill_batch_delete(making->batch, making->key->data, making->key->size);
    }
    if (state->present && !same) {
        spill_record_key_first(making->key, state->first, making->request->page);
        spill_batch_put(making->batch, making->key->data, making->key->size, NULL, 0);
    }
}

static void put_state(const making_t *making)
{
    bool head = making->request->page == SPILL_HEAD;
    if (!head)
        index_page(making);
    spill_embedded_state_key(making->key, making->request->page);
    if (!making->state->present) {
        spill_batch_delete(making->batch, making->key->data, making->key->size);
        return;
    }
    spill_state_encode(making->state, head,
                       spill_batch_put_open(making->batch, making->key->data, making->key->size));
    spill_batch_put_close(making->batch);
}

/* ---- dropping a head ------------------------------------------------------------------------- */

/* Only _id: then the document goes, unless it holds another array. */
static spill_code_t drop_fields(const making_t *making, spill_error_t *error)
{
    const spill_request_t *request = making->request;
    spill_record_key_t key;
    spill_buffer_t value = SPILL_BUFFER_INIT;
    bool found;
    spill_record_key_init(&key, request->collection_id, request->key, request->key_bytes);
    spill_code_t code =
        spill_embedded_get(making->store, making->batch, key.data, key.size, &value, &found, error);
    bson_t fields;
    bool alone = code == SPILL_OK && found && bson_init_static(&fields, value.data, value.size) &&
                 bson_count_keys(&fields) <= 1;
    bool shared = false;
    if (alone)
        code = spill_embedded_shares_head(making->store, request, &shared, error);
    if (alone && code == SPILL_OK && !shared)
        spill_batch_delete(making->batch, key.data, key.size);
    spill_buffer_release(&value);
    return code;
}

/* All of the owner's records: a few one by one, many as a range. */
static spill_code_t delete_owner(const making_t *making, spill_error_t *error)
{
    spill_record_key_t *key = making->key;
    spill_batch_mark_t mark = spill_batch_mark(making->batch);
    spill_kv_iter_t *iter = making->store->kv->ops->iterate(making->store->kv);
    spill_record_key_t from = *key;
    spill_record_key_kind(&from, SPILL_RECORD_HEAD);
    spill_record_key_kind(key, SPILL_RECORD_END);
    int deleted = 0;
    iter->ops->seek(iter, from.data, from.size);
    while (iter->valid && deleted <= SINGLE_DELETES_MAX &&
           spill_record_key_kind_of(key, iter->key, iter->key_bytes) != 0) {
        spill_batch_delete(making->batch, iter->key, iter->key_bytes);
        deleted++;
        iter->ops->next(iter);
    }
    spill_code_t code = iter->valid ? SPILL_OK : iter->ops->status(iter, error);
    iter->ops->free(iter);
    if (code != SPILL_OK)
        return spill_embedded_place(making->request, SPILL_HEAD, code, error);
    if (deleted > SINGLE_DELETES_MAX) {
        spill_batch_rewind(making->batch, mark);
        delete_range(making, &from);
    }
    return SPILL_OK;
}

static spill_code_t drop(const making_t *making, spill_error_t *error)
{
    if (making->request->page != SPILL_HEAD) {
        if (!making->before->shared)
            delete_elements(making, making->before->first, making->before->end);
        put_state(making);
        return SPILL_OK;
    }
    spill_code_t code = delete_owner(making, error);
    return code == SPILL_OK ? drop_fields(making, error) : code;
}

spill_code_t spill_embedded_carry_out(spill_embedded_t *store, const spill_request_t *request,
                                      const spill_before_t *before, const spill_effect_t *effect,
                                      const spill_state_t *state, spill_record_key_t *key,
                                      spill_batch_t *batch, spill_error_t *error)
{
    const making_t making = {store, request, before, state, key, batch};
    if (before->fields)
        put_fields(&making);
    switch (effect->kind) {
    case SPILL_EFFECT_ADD:
        add_elements(&making, effect->seq);
        break;
    case SPILL_EFFECT_REPLACE:
        put_element(&making, effect->seq, request->elements);
        break;
    case SPILL_EFFECT_DELETE:
        delete_element(&making, effect->seq);
        break;
    case SPILL_EFFECT_ERASE:
        delete_elements(&making, effect->seq, effect->end);
        break;
    case SPILL_EFFECT_DROP:
        return drop(&making, error);
    case SPILL_EFFECT_NONE:
    case SPILL_EFFECT_CUT:  /* the elements are the page's now: it is a view of the same records */
    case SPILL_EFFECT_FILL: /* they are there */
        break;
    }
    put_state(&making);
    return SPILL_OK;
}
