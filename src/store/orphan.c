#include "store/orphan.h"
#include "bson/number.h"

#include <string.h>

void spill_orphan_append(const spill_orphan_t *orphan, uint32_t index, bson_t *found)
{
    char buffer[16];
    const char *key;
    bson_t entry;
    bson_uint32_to_string(index, &key, buffer, sizeof buffer);
    bson_append_document_begin(found, key, -1, &entry);
    spill_value_append(&orphan->owner, &entry, "_id");
    BSON_APPEND_INT64(&entry, "epoch", orphan->incarnation);
    BSON_APPEND_INT64(&entry, "pages", orphan->pages);
    BSON_APPEND_BOOL(&entry, "dropped", orphan->dropped);
    bson_append_document_end(found, &entry);
}

bool spill_orphan_read(const bson_iter_t *iter, spill_orphan_t *orphan)
{
    bson_iter_t field;
    *orphan = (spill_orphan_t){.owner.type = BSON_TYPE_EOD};
    if (!BSON_ITER_HOLDS_DOCUMENT(iter) || !bson_iter_recurse(iter, &field))
        return false;
    while (bson_iter_next(&field)) {
        const char *key = bson_iter_key(&field);
        if (strcmp(key, "_id") == 0)
            orphan->owner = spill_value_from_iter(&field);
        else if (strcmp(key, "epoch") == 0)
            orphan->incarnation = spill_iter_int64(&field);
        else if (strcmp(key, "pages") == 0)
            orphan->pages = spill_iter_int64(&field);
        else if (strcmp(key, "dropped") == 0)
            orphan->dropped = bson_iter_as_bool(&field);
    }
    return orphan->owner.type != BSON_TYPE_EOD;
}
