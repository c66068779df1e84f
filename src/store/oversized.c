#include "store/oversized.h"
#include "bson/number.h"

#include <string.h>

void spill_oversized_append(const spill_oversized_t *oversized, uint32_t index, bson_t *found)
{
    char buffer[16];
    const char *key;
    bson_t entry;
    bson_uint32_to_string(index, &key, buffer, sizeof buffer);
    bson_append_document_begin(found, key, -1, &entry);
    spill_value_append(&oversized->owner, &entry, "_id");
    BSON_APPEND_INT64(&entry, "elements", oversized->elements);
    BSON_APPEND_INT64(&entry, "bytes", oversized->bytes);
    BSON_APPEND_BOOL(&entry, "ours", oversized->ours);
    BSON_APPEND_BOOL(&entry, "full", oversized->full);
    bson_append_document_end(found, &entry);
}

bool spill_oversized_read(const bson_iter_t *iter, spill_oversized_t *oversized)
{
    bson_iter_t field;
    bool refusal_explained = false;
    *oversized = (spill_oversized_t){.owner.type = BSON_TYPE_EOD};
    if (!BSON_ITER_HOLDS_DOCUMENT(iter) || !bson_iter_recurse(iter, &field))
        return false;
    while (bson_iter_next(&field)) {
        const char *key = bson_iter_key(&field);
        if (strcmp(key, "_id") == 0)
            oversized->owner = spill_value_from_iter(&field);
        else if (strcmp(key, "elements") == 0)
            oversized->elements = spill_iter_int64(&field);
        else if (strcmp(key, "bytes") == 0)
            oversized->bytes = spill_iter_int64(&field);
        else if (strcmp(key, "ours") == 0)
            oversized->ours = bson_iter_as_bool(&field);
        else if (strcmp(key, "full") == 0)
            oversized->full = bson_iter_as_bool(&field);
        else if (strcmp(key, "obstacle") == 0) {
            oversized->obstacle = (spill_obstacle_t)spill_iter_int64(&field);
            refusal_explained = true;
        }
    }
    oversized->full = oversized->full && !oversized->ours;
    if (!refusal_explained && oversized->full && oversized->elements == 1)
        oversized->obstacle = SPILL_OBSTACLE_ROOM;
    return oversized->owner.type != BSON_TYPE_EOD;
}
