#include "store/collation.h"

#include "util/error.h"

#include <string.h>

/* `description` is the server's: {name, options: {collation: {locale, ...}}}. */
static bool has_collation(const bson_iter_t *description, const char *collection)
{
    bson_iter_t field, found;
    const char *locale = "";
    if (!bson_iter_recurse(description, &field) || !bson_iter_find(&field, "name") ||
        !BSON_ITER_HOLDS_UTF8(&field) || strcmp(bson_iter_utf8(&field, NULL), collection) != 0)
        return false;
    if (!bson_iter_recurse(description, &field) ||
        !bson_iter_find_descendant(&field, "options.collation", &found) ||
        !BSON_ITER_HOLDS_DOCUMENT(&found))
        return false;
    if (bson_iter_recurse(&found, &field) && bson_iter_find(&field, "locale") &&
        BSON_ITER_HOLDS_UTF8(&field))
        locale = bson_iter_utf8(&field, NULL);
    return strcmp(locale, "simple") != 0;
}

spill_code_t spill_collation_refuse(const bson_t *listing, const char *collection,
                                    spill_error_t *error)
{
    bson_iter_t iter;
    bool has = false;
    if (bson_iter_init(&iter, listing))
        while (!has && bson_iter_next(&iter))
            has = has_collation(&iter, collection);
    if (!has)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' has a collation of its own, by which the server compares _ids and "
                      "elements, so Spillway cannot manage its arrays. Copy the documents to a "
                      "collection without one, or name another collection",
                      collection);
}
