#include "bson/element_id.h"

#include "bson/key.h"
#include "bson/value.h"
#include "util/error.h"

#include <string.h>

/* Find the value at a path through documents, not through arrays. */
static bool find_in_documents(const spill_value_t *element, const char *path, spill_value_t *found)
{
    *found = *element;
    while (*path != '\0')
        if (found->type != BSON_TYPE_DOCUMENT || !spill_value_field(found, path, &path, found))
            return false;
    return true;
}

spill_code_t spill_element_id_key(const spill_value_t *id, spill_buffer_t *key,
                                  spill_error_t *error)
{
    size_t before = key->size;
    bool can_be = id->type != BSON_TYPE_NULL && spill_owner_key(id, key, NULL) == SPILL_OK;
    if (can_be && key->size - before <= SPILL_ELEMENT_ID_MAX)
        return SPILL_OK;
    key->size = before;
    return spill_fail(error, SPILL_INVALID,
                      "an element's id can be neither null, undefined, an array nor a regular "
                      "expression, and has at most %d bytes",
                      SPILL_ELEMENT_ID_MAX);
}

bool spill_element_key(const spill_value_t *element, const char *path, spill_buffer_t *key)
{
    spill_value_t id;
    return find_in_documents(element, path, &id) &&
           spill_element_id_key(&id, key, NULL) == SPILL_OK;
}

/* The first four bytes of an ObjectId: seconds, big-endian. */
static int64_t object_id_ms(const spill_value_t *value)
{
    uint32_t seconds;
    memcpy(&seconds, value->data, sizeof seconds);
    return (int64_t)BSON_UINT32_FROM_BE(seconds) * 1000;
}

bool spill_element_time_ms(const spill_value_t *element, const char *path, int64_t *time_ms)
{
    spill_value_t value;
    if (!find_in_documents(element, path, &value))
        return false;
    switch (value.type) {
    case BSON_TYPE_DATE_TIME:
        *time_ms = spill_value_int64(&value);
        return true;
    case BSON_TYPE_TIMESTAMP: /* seconds, and an ordinal within the second */
        *time_ms = (int64_t)((uint64_t)spill_value_int64(&value) >> 32) * 1000;
        return true;
    case BSON_TYPE_OID:
        *time_ms = object_id_ms(&value);
        return true;
    default:
        return false;
    }
}
