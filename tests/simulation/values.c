#include "values.h"

#include <assert.h>
#include <string.h>

spill_value_t sim_value_make(sim_value_bytes_t *bytes, int64_t id, int padding)
{
    assert(id >= 0 && padding >= 0 && padding <= SIM_PADDING_MAX);
    if (padding == 0) {
        memcpy(bytes->bytes, &id, sizeof id);
        return (spill_value_t){
            .data = bytes->bytes, .size_bytes = sizeof id, .type = BSON_TYPE_INT64};
    }
    int32_t length = (int32_t)sizeof id + padding;
    memset(bytes->bytes, 0, sizeof bytes->bytes);
    memcpy(bytes->bytes, &length, sizeof length);
    memcpy(bytes->bytes + 5, &id, sizeof id);
    return (spill_value_t){
        .data = bytes->bytes, .size_bytes = 5 + (uint32_t)length, .type = BSON_TYPE_BINARY};
}

int64_t sim_value_id(const spill_value_t *value, int *padding)
{
    int64_t id;
    if (padding)
        *padding = 0;
    if (value->type == BSON_TYPE_INT64 && value->size_bytes == sizeof id) {
        memcpy(&id, value->data, sizeof id);
        return id;
    }
    if (value->type != BSON_TYPE_BINARY || value->size_bytes <= 5 + sizeof id)
        return -1;
    memcpy(&id, value->data + 5, sizeof id);
    if (padding)
        *padding = (int)(value->size_bytes - 5 - sizeof id);
    return id;
}
