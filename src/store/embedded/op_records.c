/* Read and write the operations of an owner. */
#include "store/embedded/op_records.h"

#include "store/embedded/records.h"
#include "util/error.h"

/* The ordinal of the first operation in the record that has, or will have, this one. */
static int64_t group_start(int64_t ordinal)
{
    return ordinal - ordinal % SPILL_OPS_TOGETHER;
}

/* Read the record with the key into source->value. */
static spill_code_t read_record(spill_op_source_t *source, const spill_record_key_t *key,
                                bool *found, spill_error_t *error)
{
    spill_code_t code = spill_kv_get_after(source->kv, source->batch, key->data, key->size,
                                           &source->value, found, error);
    return code == SPILL_OK ? code
                            : spill_embedded_place(source->request, source->page, code, error);
}

/* The same for a record behind those that were read since the iterator was created. */
static spill_code_t step_to_record(spill_op_source_t *source, const spill_record_key_t *key,
                                   bool *found, spill_error_t *error)
{
    if (source->batch && spill_batch_find(source->batch, key->data, key->size))
        return read_record(source, key, found, error);
    spill_buffer_clear(&source->value);
    if (!source->iter) {
        source->iter = spill_kv_iterate_owner(source->kv);
        source->iter->ops->seek(source->iter, key->data, key->size);
    }
    spill_kv_iter_t *iter = source->iter;
    int order = -1;
    while (iter->valid &&
           (order = spill_bytes_compare(iter->key, iter->key_bytes, key->data, key->size)) < 0)
        iter->ops->next(iter);
    *found = iter->valid && order == 0;
    if (*found)
        spill_buffer_append(&source->value, iter->value, iter->value_bytes);
    spill_code_t code = spill_kv_iter_stop(iter, error);
    return code == SPILL_OK ? code
                            : spill_embedded_place(source->request, source->page, code, error);
}

static void release_iter(spill_op_source_t *source)
{
    spill_kv_iter_release(&source->iter);
    source->iter = NULL;
}

void spill_op_source_release(spill_op_source_t *source)
{
    release_iter(source);
    spill_buffer_release(&source->value);
    source->holds = false;
}

static spill_code_t corrupt(const spill_op_source_t *source, spill_error_t *error)
{
    return spill_embedded_corrupt(source->store, source->request, source->page, error,
                                  "the record of an operation cannot be read");
}

/* Read the record of the operations from `first` on. source->holds: there is one. */
static spill_code_t hold_group(spill_op_source_t *source, spill_record_key_t *key,
                               int64_t incarnation, int64_t first, spill_error_t *error)
{
    if (source->holds && source->incarnation == incarnation && source->first == first)
        return SPILL_OK;
    bool same = source->incarnation == incarnation && source->first == first;
    bool next = source->holds && source->incarnation == incarnation &&
                source->first + SPILL_OPS_TOGETHER == first;
    if (!same && !next)
        release_iter(source);
    source->incarnation = incarnation;
    source->first = first;
    source->holds = false;
    spill_record_key_ops(key, incarnation, first);
    SPILL_TRY(next ? step_to_record(source, key, &source->holds, error)
                   : read_record(source, key, &source->holds, error));
    return source->holds && spill_op_list_count(source->value.data, source->value.size) == 0
               ? corrupt(source, error)
               : SPILL_OK;
}

spill_code_t spill_op_read(spill_op_source_t *source, spill_record_key_t *key,
                           const spill_state_t *state, int64_t ordinal, spill_op_entry_t *entry,
                           bool *found, spill_error_t *error)
{
    int64_t first = group_start(ordinal);
    *found = spill_op_list_get(state->newest_ops.data, state->newest_ops.size, state->op_count,
                               ordinal, entry);
    if (*found)
        return SPILL_OK;
    const spill_buffer_t *value = &source->value;
    SPILL_TRY(hold_group(source, key, state->incarnation, first, error));
    *found = source->holds && spill_op_list_get(value->data, value->size,
                                                first + SPILL_OPS_TOGETHER, ordinal, entry);
    if (*found)
        return SPILL_OK;
    source->holds = false;
    /* Earlier versions wrote one record per operation. */
    spill_record_key_op(key, state->incarnation, ordinal);
    SPILL_TRY(read_record(source, key, found, error));
    if (*found && !spill_op_decode(value->data, value->size, entry))
        return corrupt(source, error);
    entry->ordinal = ordinal;
    return SPILL_OK;
}

/*
 * Delete the group that has just left the window. After the window is narrowed, older groups stay
 * until the drop.
 */
static void delete_old_ops(spill_batch_t *batch, spill_record_key_t *key,
                           const spill_state_t *state, int64_t op_window)
{
    int64_t end = group_start(state->op_count > op_window ? state->op_count - op_window : 0);
    if (end == 0)
        return;
    spill_record_key_ops(key, state->incarnation, end - SPILL_OPS_TOGETHER);
    spill_batch_delete(batch, key->data, key->size);
}

void spill_op_add(spill_batch_t *batch, spill_record_key_t *key, spill_state_t *state,
                  const spill_op_entry_t *entry, int64_t op_window)
{
    spill_buffer_t *list = &state->newest_ops;
    spill_op_list_add(list, entry);
    int64_t first = group_start(entry->ordinal);
    if (entry->ordinal + 1 < first + SPILL_OPS_TOGETHER)
        return;
    spill_record_key_ops(key, state->incarnation, first);
    spill_batch_put(batch, key->data, key->size, list->data, list->size);
    spill_buffer_clear(list);
    delete_old_ops(batch, key, state, op_window);
}

spill_code_t spill_ops_delete(spill_embedded_t *store, spill_record_key_t *key, int64_t incarnation,
                              spill_batch_t *batch, spill_error_t *error)
{
    SPILL_SCOPED(spill_kv_iter_release)
    spill_kv_iter_t *iter = store->kv->ops->iterate(store->kv);
    int64_t incarnation_found, ordinal;
    spill_record_key_op(key, incarnation, 0);
    iter->ops->seek(iter, key->data, key->size);
    for (; iter->valid &&
           spill_record_key_is_op(key, iter->key, iter->key_bytes, &incarnation_found, &ordinal) &&
           incarnation_found == incarnation;
         iter->ops->next(iter))
        spill_batch_delete(batch, iter->key, iter->key_bytes);
    SPILL_TRY(spill_kv_iter_stop(iter, error));
    spill_record_key_ops(key, incarnation, 0);
    iter->ops->seek(iter, key->data, key->size);
    for (; iter->valid &&
           spill_record_key_is_ops(key, iter->key, iter->key_bytes, &incarnation_found, &ordinal) &&
           incarnation_found == incarnation;
         iter->ops->next(iter))
        spill_batch_delete(batch, iter->key, iter->key_bytes);
    return spill_kv_iter_stop(iter, error);
}
