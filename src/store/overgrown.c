#include "store/overgrown.h"
#include "bson/number.h"

#include <string.h>

void spill_overgrown_append(const spill_overgrown_t *overgrown, uint32_t index, bson_t *found)
{
    char buffer[16];
    const char *key;
    bson_t entry;
    bson_uint32_to_string(index, &key, buffer, sizeof buffer);
    bson_append_document_begin(found, key, -1, &entry);
    spill_value_append(&overgrown->owner, &entry, "_id");
    BSON_APPEND_INT64(&entry, "elements", overgrown->elements);
    BSON_APPEND_INT64(&entry, "bytes", overgrown->bytes);
    BSON_APPEND_BOOL(&entry, "ours", overgrown->ours);
    BSON_APPEND_BOOL(&entry, "full", overgrown->full);
    bson_append_document_end(found, &entry);
}

bool spill_overgrown_read(const bson_iter_t *iter, spill_overgrown_t *overgrown)
{
    bson_iter_t field;
    bool judged = false;
    *overgrown = (spill_overgrown_t){.owner.type = BSON_TYPE_EOD};
    if (!BSON_ITER_HOLDS_DOCUMENT(iter) || !bson_iter_recurse(iter, &field))
        return false;
    while (bson_iter_next(&field)) {
        const char *key = bson_iter_key(&field);
        if (strcmp(key, "_id") == 0)
            overgrown->owner = spill_value_from_iter(&field);
        else if (strcmp(key, "elements") == 0)
            overgrown->elements = spill_iter_int64(&field);
        else if (strcmp(key, "bytes") == 0)
            overgrown->bytes = spill_iter_int64(&field);
        else if (strcmp(key, "ours") == 0)
            overgrown->ours = bson_iter_as_bool(&field);
        else if (strcmp(key, "full") == 0)
            overgrown->full = bson_iter_as_bool(&field);
        else if (strcmp(key, "obstacle") == 0) {
            overgrown->obstacle = (spill_obstacle_t)spill_iter_int64(&field);
            judged = true;
        }
    }
    overgrown->full = overgrown->full && !overgrown->ours;
    if (!judged && overgrown->full && overgrown->elements == 1)
        overgrown->obstacle = SPILL_OBSTACLE_ROOM;
    return overgrown->owner.type != BSON_TYPE_EOD;
}
