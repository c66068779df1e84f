#include "store/embedded/embedded_sessions.h"

#include "store/embedded/embedded_codec.h"
#include "store/embedded/records.h"
#include "util/error.h"

/* ---- reading --------------------------------------------------------------------------------- */

/* Read the number of the owner's entries; 0 without a record. */
static spill_code_t get_number(spill_embedded_t *store, const spill_request_t *request,
                               int64_t incarnation, spill_record_key_t *key,
                               const spill_batch_t *batch, int64_t *number, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t value = SPILL_BUFFER_INIT;
    bool found;
    *number = 0;
    spill_record_key_session(key, incarnation, NULL);
    SPILL_TRY(spill_embedded_get(store, batch, key->data, key->size, &value, &found, error));
    if (found && !spill_session_number_decode(value.data, value.size, number))
        return spill_embedded_corrupt(store, request, SPILL_HEAD, error,
                                      "the record of the number of sessions cannot be read");
    return SPILL_OK;
}

static spill_code_t get_entry(spill_embedded_t *store, const spill_request_t *request,
                              int64_t incarnation, spill_record_key_t *key,
                              const spill_batch_t *batch, const spill_session_op_t *op,
                              spill_session_entry_t *entry, bool *found, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t value = SPILL_BUFFER_INIT;
    *entry = (spill_session_entry_t){0};
    spill_session_key(op, entry->key);
    spill_record_key_session(key, incarnation, entry->key);
    SPILL_TRY(spill_embedded_get(store, batch, key->data, key->size, &value, found, error));
    if (*found && !spill_session_decode(value.data, value.size, entry))
        return spill_embedded_corrupt(store, request, SPILL_HEAD, error,
                                      "the record of a session cannot be read");
    return SPILL_OK;
}

spill_code_t spill_embedded_see_sessions(spill_embedded_t *store, const spill_request_t *request,
                                         int64_t incarnation, spill_record_key_t *key,
                                         const spill_batch_t *batch, spill_session_puts_t *puts,
                                         spill_session_verdict_t *verdict, spill_error_t *error)
{
    const spill_clock_t *clock = &store->base.options.clock;
    const spill_session_op_t *op;
    int64_t count, applied;
    *verdict = SPILL_SESSION_NEW;
    for (size_t i = 0; (op = spill_request_session_at(request, i, &count)) != NULL; i++) {
        spill_session_entry_t own, after;
        bool found;
        if (i == 0)
            SPILL_TRY(get_number(store, request, incarnation, key, batch, &puts->number, error));
        SPILL_TRY(get_entry(store, request, incarnation, key, batch, op, &own, &found, error));
        const spill_session_entry_t *put = spill_sessions_find(&puts->entries, own.key);
        const spill_session_entry_t *before = put ? put : found ? &own : NULL;
        *verdict = spill_session_judge(op, count, before, puts->number, &applied);
        if (*verdict != SPILL_SESSION_NEW)
            return SPILL_OK;
        puts->number += before == NULL;
        puts->grew = puts->grew || before == NULL;
        spill_session_apply(op, count, before, clock->now_us(clock->context), &after);
        spill_sessions_put(&puts->entries, &after);
    }
    return SPILL_OK;
}

spill_code_t spill_embedded_read_session(spill_embedded_t *store, const spill_request_t *read,
                                         spill_record_key_t *key, spill_response_t *response,
                                         spill_error_t *error)
{
    const spill_session_op_t *op = read->read.session;
    int64_t incarnation = response->state.incarnation, number;
    spill_session_entry_t own;
    bool found;
    SPILL_TRY(get_number(store, read, incarnation, key, NULL, &number, error));
    SPILL_TRY(get_entry(store, read, incarnation, key, NULL, op, &own, &found, error));
    response->session = spill_session_judge(op, read->read.session_count, found ? &own : NULL,
                                            number, &response->session_applied);
    return SPILL_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_number(int64_t number, int64_t incarnation, spill_record_key_t *key,
                       spill_batch_t *batch)
{
    spill_record_key_session(key, incarnation, NULL);
    spill_buffer_append_varint(spill_batch_put_open(batch, key->data, key->size), (uint64_t)number);
    spill_batch_put_close(batch);
}

void spill_embedded_put_sessions(const spill_session_puts_t *puts, int64_t incarnation,
                                 spill_record_key_t *key, spill_batch_t *batch)
{
    for (size_t i = 0; i < puts->entries.count; i++) {
        spill_record_key_session(key, incarnation, puts->entries.entries[i].key);
        spill_session_encode(&puts->entries.entries[i],
                             spill_batch_put_open(batch, key->data, key->size));
        spill_batch_put_close(batch);
    }
    if (puts->grew)
        put_number(puts->number, incarnation, key, batch);
}

/* Which of the records to delete: all of the incarnation, or entries beyond the horizon. */
typedef struct removal {
    bool all;
    int64_t horizon_us, now_us;
} removal_t;

static bool is_removed(const removal_t *removal, const spill_kv_iter_t *iter)
{
    spill_session_entry_t entry = {0};
    return removal->all || (spill_session_decode(iter->value, iter->value_bytes, &entry) &&
                            spill_session_expired(&entry, removal->horizon_us, removal->now_us));
}

/* Delete records. *removed: how many entries, without the record of their number. */
static spill_code_t remove_records(spill_embedded_t *store, const spill_request_t *request,
                                   int64_t incarnation, const removal_t *removal,
                                   spill_record_key_t *key, spill_batch_t *batch, int64_t *removed,
                                   spill_error_t *error)
{
    spill_kv_iter_t *iter = store->kv->ops->iterate(store->kv);
    int64_t of;
    const uint8_t *session;
    *removed = 0;
    spill_record_key_session(key, incarnation, NULL);
    iter->ops->seek(iter, key->data, key->size);
    while (iter->valid &&
           spill_record_key_is_session(key, iter->key, iter->key_bytes, &of, &session) &&
           of == incarnation) {
        bool remove = session ? is_removed(removal, iter) : removal->all;
        if (remove)
            spill_batch_delete(batch, iter->key, iter->key_bytes);
        *removed += remove && session;
        iter->ops->next(iter);
    }
    spill_code_t code = iter->valid ? SPILL_OK : iter->ops->status(iter, error);
    iter->ops->free(iter);
    return code == SPILL_OK ? code : spill_embedded_place(request, SPILL_HEAD, code, error);
}

spill_code_t spill_embedded_forget_sessions(spill_embedded_t *store, const spill_request_t *request,
                                            int64_t incarnation, int64_t now_us,
                                            spill_record_key_t *key, spill_batch_t *batch,
                                            spill_error_t *error)
{
    removal_t removal = {.horizon_us = request->forget.horizon_us, .now_us = now_us};
    int64_t number, removed;
    SPILL_TRY(get_number(store, request, incarnation, key, batch, &number, error));
    SPILL_TRY(remove_records(store, request, incarnation, &removal, key, batch, &removed, error));
    if (removed > 0)
        put_number(number > removed ? number - removed : 0, incarnation, key, batch);
    return SPILL_OK;
}

spill_code_t spill_embedded_drop_sessions(spill_embedded_t *store, const spill_request_t *request,
                                          int64_t incarnation, spill_record_key_t *key,
                                          spill_batch_t *batch, spill_error_t *error)
{
    removal_t removal = {.all = true};
    int64_t removed;
    return remove_records(store, request, incarnation, &removal, key, batch, &removed, error);
}
