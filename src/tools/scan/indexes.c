#include "tools/scan/indexes.h"

#include "bson/value.h"
#include "util/hash.h"

#include <string.h>

void spill_scan_indexes_release(spill_scan_indexes_t *indexes)
{
    for (size_t i = 0; i < indexes->count; i++) {
        bson_free(indexes->items[i].name);
        bson_destroy(indexes->items[i].key);
    }
    bson_free(indexes->items);
    *indexes = (spill_scan_indexes_t){0};
}

/* ---- equal indexes --------------------------------------------------------------------------- */

/* A value's hash; numbers of all types hash alike, because 1 and 1.0 are equal to a server. */
static uint64_t hash_value(const bson_iter_t *iter)
{
    double number;
    uint32_t size;
    const uint8_t *data;
    if (BSON_ITER_HOLDS_NUMBER(iter) || BSON_ITER_HOLDS_BOOL(iter)) {
        number = bson_iter_as_double(iter);
        return spill_hash(&number, sizeof number);
    }
    if (BSON_ITER_HOLDS_UTF8(iter)) {
        const char *text = bson_iter_utf8(iter, &size);
        return spill_hash(text, size);
    }
    if (BSON_ITER_HOLDS_DOCUMENT(iter)) {
        bson_iter_document(iter, &size, &data);
        return spill_hash(data, size);
    }
    return (uint64_t)bson_iter_type(iter);
}

static uint64_t hash_field(uint64_t before, const bson_iter_t *iter)
{
    const char *name = bson_iter_key(iter);
    uint64_t parts[3] = {before, spill_hash(name, strlen(name)), hash_value(iter)};
    return spill_hash(parts, sizeof parts);
}

/* The order of a key's fields matters, the order of the options does not. */
static uint64_t hash_index(const bson_t *description, const bson_t *key)
{
    static const char *const ignored[] = {"v", "name", "ns", "key", "background", "storageEngine"};
    bson_iter_t iter;
    uint64_t hash = 1, options = 0;
    bson_iter_init(&iter, key);
    while (bson_iter_next(&iter))
        hash = hash_field(hash, &iter);
    bson_iter_init(&iter, description);
    while (bson_iter_next(&iter)) {
        bool counts = true;
        for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
            counts = counts && strcmp(bson_iter_key(&iter), ignored[i]) != 0;
        options += counts ? hash_field(2, &iter) : 0;
    }
    uint64_t parts[2] = {hash, options};
    return spill_hash(parts, sizeof parts);
}

/* ---- reading --------------------------------------------------------------------------------- */

bool spill_scan_indexes_add(spill_scan_indexes_t *indexes, const bson_t *description, int64_t bytes)
{
    bson_iter_t iter;
    bson_t key;
    if (!bson_iter_init_find(&iter, description, "key") || !spill_inner_document(&iter, &key))
        return false;
    const char *name =
        bson_iter_init_find(&iter, description, "name") && BSON_ITER_HOLDS_UTF8(&iter)
            ? bson_iter_utf8(&iter, NULL)
            : "?";
    indexes->items = bson_realloc(indexes->items, (indexes->count + 1) * sizeof *indexes->items);
    indexes->items[indexes->count++] =
        (spill_scan_index_t){bson_strdup(name), bson_copy(&key), bytes};
    indexes->known = true;
    indexes->hash += hash_index(description, &key);
    return true;
}

bool spill_scan_indexes_parse(spill_scan_indexes_t *indexes, const char *metadata, size_t size)
{
    bson_error_t ignored;
    bson_iter_t iter, items;
    bson_t list, at;
    bson_t *document = bson_new_from_json((const uint8_t *)metadata, (ssize_t)size, &ignored);
    bool good = document != NULL;
    if (good && bson_iter_init_find(&iter, document, "indexes")) {
        good = spill_inner_document(&iter, &list) && bson_iter_init(&items, &list);
        while (good && bson_iter_next(&items))
            good = spill_inner_document(&items, &at) && spill_scan_indexes_add(indexes, &at, -1);
    }
    if (document)
        bson_destroy(document);
    if (!good)
        spill_scan_indexes_release(indexes);
    return good;
}

/* ---- queries --------------------------------------------------------------------------------- */

int64_t spill_scan_indexes_bytes(const spill_scan_indexes_t *indexes)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < indexes->count; i++)
        bytes += indexes->items[i].bytes > 0 ? indexes->items[i].bytes : 0;
    return bytes;
}

/* Report whether the field is the path or within it. Keys have no "[]". */
static bool is_in(const char *field, const char *path)
{
    for (; *path; path++) {
        if (strncmp(path, "[]", 2) == 0)
            path++;
        else if (*field++ != *path)
            return false;
    }
    return *field == '\0' || *field == '.';
}

bool spill_scan_index_covers(const spill_scan_index_t *index, const char *path)
{
    bson_iter_t iter;
    bson_iter_init(&iter, index->key);
    while (bson_iter_next(&iter))
        if (is_in(bson_iter_key(&iter), path))
            return true;
    return false;
}
