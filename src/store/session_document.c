#include "store/session_document.h"

#include "bson/value.h"
#include "definition/stored_names.h"

#include <stdio.h>
#include <string.h>

const char *spill_session_hex(const spill_session_op_t *op, char hex[SPILL_SESSION_HEX_SIZE])
{
    uint8_t key[SPILL_SESSION_KEY_BYTES];
    spill_session_key(op, key);
    for (size_t i = 0; i < sizeof key; i++)
        snprintf(hex + 2 * i, 3, "%02x", key[i]);
    return hex;
}

void spill_session_append_done(const spill_session_entry_t *entry, const char *field, bson_t *to)
{
    bson_t array;
    bson_append_array_begin(to, field, -1, &array);
    for (int32_t i = 0; i < 2 * entry->run_count; i++) {
        char buffer[16];
        const char *key;
        const spill_session_run_t *run = &entry->runs[i / 2];
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        BSON_APPEND_INT32(&array, key, i % 2 == 0 ? run->first : run->last);
    }
    bson_append_array_end(to, &array);
}

bool spill_session_read(const bson_iter_t *iter, spill_session_entry_t *entry)
{
    bson_iter_t field, numbers;
    int32_t count = 0, ends[2 * SPILL_SESSION_RUNS_MAX];
    if (!BSON_ITER_HOLDS_DOCUMENT(iter) || !bson_iter_recurse(iter, &field))
        return false;
    while (bson_iter_next(&field)) {
        if (strcmp(bson_iter_key(&field), SPILL_STORED_SESSION_TXN) == 0 &&
            BSON_ITER_HOLDS_NUMBER(&field))
            entry->txn = spill_iter_int64(&field);
        if (strcmp(bson_iter_key(&field), SPILL_STORED_SESSION_DONE) != 0 ||
            !BSON_ITER_HOLDS_ARRAY(&field) || !bson_iter_recurse(&field, &numbers))
            continue;
        for (; bson_iter_next(&numbers); count++) {
            if (count == 2 * SPILL_SESSION_RUNS_MAX || !BSON_ITER_HOLDS_NUMBER(&numbers))
                return false;
            ends[count] = (int32_t)spill_iter_int64(&numbers);
        }
    }
    entry->run_count = count / 2;
    for (int32_t i = 0; i < entry->run_count; i++)
        entry->runs[i] = (spill_session_run_t){ends[2 * i], ends[2 * i + 1]};
    return count > 0 && count % 2 == 0 && entry->txn >= 0;
}
