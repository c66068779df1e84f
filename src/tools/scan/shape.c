/* The shape of a collection: the fields of its documents, and its indexes. */
#include "tools/scan/shape.h"

#include "bson/value.h"
#include "util/buffer.h"

#include <string.h>

/* ---- fields ---------------------------------------------------------------------------------- */

static size_t find_name(const spill_shape_t *shape, uint64_t name)
{
    size_t low = 0, high = shape->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (shape->names[middle] < name)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_name(spill_shape_t *shape, uint64_t name, uint16_t seen)
{
    size_t at = find_name(shape, name);
    if (at < shape->count && shape->names[at] == name) {
        shape->seen[at] = (uint16_t)(shape->seen[at] + seen);
        return;
    }
    if (shape->count == SPILL_SHAPE_FIELDS)
        return;
    memmove(&shape->names[at + 1], &shape->names[at], (shape->count - at) * sizeof shape->names[0]);
    memmove(&shape->seen[at + 1], &shape->seen[at], (shape->count - at) * sizeof shape->seen[0]);
    shape->names[at] = name;
    shape->seen[at] = seen;
    shape->count++;
}

void spill_shape_add(spill_shape_t *shape, const uint8_t *document)
{
    spill_fields_t fields = spill_fields_of(document);
    const char *name;
    spill_value_t value;
    if (shape->documents >= SPILL_SHAPE_DOCUMENTS)
        return;
    shape->documents++;
    while (spill_fields_next(&fields, &name, &value))
        add_name(shape, spill_hash(name, strlen(name)), 1);
}

void spill_shape_merge(spill_shape_t *shape, const spill_shape_t *from)
{
    for (size_t i = 0; i < from->count; i++)
        add_name(shape, from->names[i], from->seen[i]);
    shape->documents = (uint16_t)(shape->documents + from->documents);
}

/* Report whether at least half of the documents have the name at that index. */
static int is_common(const spill_shape_t *shape, size_t at)
{
    return 2 * shape->seen[at] >= shape->documents;
}

static size_t count_common(const spill_shape_t *shape)
{
    size_t count = 0;
    for (size_t i = 0; i < shape->count; i++)
        count += (size_t)is_common(shape, i);
    return count;
}

double spill_shape_likeness(const spill_shape_t *left, const spill_shape_t *right)
{
    size_t both = 0;
    for (size_t i = 0; i < left->count; i++) {
        size_t at = find_name(right, left->names[i]);
        both += is_common(left, i) && at < right->count && right->names[at] == left->names[i] &&
                is_common(right, at);
    }
    size_t either = count_common(left) + count_common(right) - both;
    return either > 0 ? (double)both / (double)either : 0;
}

/* ---- indexes --------------------------------------------------------------------------------- */

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
