#include "values.h"

#include <assert.h>
#include <string.h>

/*
 * offset  bytes
 *      0  length                                    4
 *      4  12 'v' 00, int64                         11
 *     15  03 'at' 00, length 12, 10 'k' 00, int32, 00   16
 *     31  09 't' 00, int64                         11
 *     42  05 'p' 00, length, subtype, padding       8 + padding, if any
 *         00
 */
enum { AT_V = 4, AT_DOCUMENT = 15, AT_K = 26, AT_T = 31, AT_P = 42, PADDING = 50 };

spill_value_t sim_value_make(sim_value_bytes_t *bytes, int64_t id, int padding)
{
    static const uint8_t fields[] = {[AT_V] = BSON_TYPE_INT64,
                                     'v',
                                     0,
                                     [AT_DOCUMENT] = BSON_TYPE_DOCUMENT,
                                     'a',
                                     't',
                                     0,
                                     12,
                                     0,
                                     0,
                                     0,
                                     BSON_TYPE_INT32,
                                     'k',
                                     0,
                                     [AT_T] = BSON_TYPE_DATE_TIME,
                                     't',
                                     0,
                                     [AT_P] = 0};
    assert(id >= 0 && padding >= 0 && padding <= SIM_PADDING_MAX);
    int32_t length = padding > 0 ? PADDING + padding + 1 : AT_P + 1;
    int32_t key = (int32_t)(id % SIM_IDS);
    int64_t time_ms = sim_value_time_ms(id);
    memset(bytes->bytes, 0, sizeof bytes->bytes);
    memcpy(bytes->bytes, fields, AT_P);
    memcpy(bytes->bytes, &length, sizeof length);
    memcpy(bytes->bytes + AT_V + 3, &id, sizeof id);
    memcpy(bytes->bytes + AT_K, &key, sizeof key);
    memcpy(bytes->bytes + AT_T + 3, &time_ms, sizeof time_ms);
    if (padding > 0) {
        memcpy(bytes->bytes + AT_P, "\x05p", 3);
        memcpy(bytes->bytes + AT_P + 3, &(int32_t){padding}, 4);
    }
    return (spill_value_t){
        .data = bytes->bytes, .size_bytes = (uint32_t)length, .type = BSON_TYPE_DOCUMENT};
}

spill_value_t sim_value_make_document(sim_value_bytes_t *bytes, int64_t id, int padding,
                                      bool second)
{
    static const int64_t january_ms = 31LL * 24 * 3600 * 1000;
    static const uint8_t zeros[SIM_PADDING_MAX];
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_INT64(&document, "id", id);
    BSON_APPEND_DATE_TIME(&document, SIM_TIME_FIELD,
                          sim_value_time_ms(id) + (second ? january_ms : 0));
    BCON_APPEND(&document, "at", "{", "k", BCON_INT32((int32_t)(id % SIM_IDS)), "}");
    if (padding > 0)
        BSON_APPEND_BINARY(&document, "padding", BSON_SUBTYPE_BINARY, zeros, (uint32_t)padding);
    if (id % 5 == 1)
        BSON_APPEND_DOUBLE(&document, "rating", (double)id / 7 - 2);
    else if (id % 7 == 2)
        BSON_APPEND_INT64(&document, "rating", INT64_MAX / 2 + id);
    else if (id % 5 != 0)
        BSON_APPEND_INT64(&document, "rating", id % 11 - 5);
    else /* no value field; all documents have one size, so that each fits in place of another */
        BSON_APPEND_DATE_TIME(&document, "rating", id);
    assert(document.len <= sizeof bytes->bytes);
    memcpy(bytes->bytes, bson_get_data(&document), document.len);
    spill_value_t value = {
        .data = bytes->bytes, .size_bytes = document.len, .type = BSON_TYPE_DOCUMENT};
    bson_destroy(&document);
    return value;
}

static int64_t document_id(const spill_value_t *value, int *padding)
{
    bson_t document;
    bson_iter_t iter;
    const uint8_t *data;
    uint32_t size = 0;
    if (!bson_init_static(&document, value->data, value->size_bytes) ||
        !bson_iter_init_find(&iter, &document, "id"))
        return -1;
    int64_t id = bson_iter_as_int64(&iter);
    if (bson_iter_init_find(&iter, &document, "padding"))
        bson_iter_binary(&iter, NULL, &size, &data);
    if (padding)
        *padding = (int)size;
    return id;
}

int64_t sim_value_id(const spill_value_t *value, int *padding)
{
    int64_t id;
    if (padding)
        *padding = 0;
    if (value->type == BSON_TYPE_DOCUMENT && value->size_bytes > AT_V + 1 &&
        value->data[AT_V + 1] == 'i')
        return document_id(value, padding);
    if (value->type != BSON_TYPE_DOCUMENT || value->size_bytes <= AT_P)
        return -1;
    memcpy(&id, value->data + AT_V + 3, sizeof id);
    if (padding && value->size_bytes > PADDING)
        *padding = (int)value->size_bytes - PADDING - 1;
    return id;
}
