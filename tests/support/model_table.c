#include "support/model_table.h"

#include <assert.h>
#include <bson/bson.h>
#include <string.h>

static int compare(const model_entry_t *entry, uint32_t id, const void *key, size_t key_bytes)
{
    if (entry->id != id)
        return entry->id < id ? -1 : 1;
    size_t common = entry->key_bytes < key_bytes ? entry->key_bytes : key_bytes;
    int order = common > 0 ? memcmp(entry->key, key, common) : 0;
    if (order != 0 || entry->key_bytes == key_bytes)
        return order;
    return entry->key_bytes < key_bytes ? -1 : 1;
}

size_t model_table_seek(const model_table_t *table, uint32_t id, const void *key, size_t key_bytes)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(table->at[middle], id, key, key_bytes) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void *model_table_find(const model_table_t *table, uint32_t id, const void *key, size_t key_bytes)
{
    size_t index = model_table_seek(table, id, key, key_bytes);
    if (index == table->count || compare(table->at[index], id, key, key_bytes) != 0)
        return NULL;
    return table->at[index];
}

static model_entry_t *make_entry(uint32_t id, const void *key, size_t key_bytes, size_t entry_bytes)
{
    assert(entry_bytes >= sizeof(model_entry_t));
    model_entry_t *entry = bson_malloc0(entry_bytes);
    entry->id = id;
    entry->key_bytes = key_bytes;
    if (key_bytes > 0) {
        entry->key = bson_malloc(key_bytes);
        memcpy(entry->key, key, key_bytes);
    }
    return entry;
}

void *model_table_add(model_table_t *table, uint32_t id, const void *key, size_t key_bytes,
                      size_t entry_bytes)
{
    assert(!model_table_find(table, id, key, key_bytes));
    size_t index = model_table_seek(table, id, key, key_bytes);
    if (table->count == table->capacity) {
        table->capacity = table->capacity < 4 ? 4 : table->capacity * 2;
        table->at = bson_realloc(table->at, table->capacity * sizeof(model_entry_t *));
    }
    model_entry_t **place = table->at + index;
    memmove(place + 1, place, (table->count - index) * sizeof(model_entry_t *));
    *place = make_entry(id, key, key_bytes, entry_bytes);
    table->count++;
    return *place;
}

static void free_entry(model_entry_t *entry)
{
    bson_free(entry->key);
    bson_free(entry);
}

void model_table_remove(model_table_t *table, void *entry)
{
    const model_entry_t *deleted = entry;
    size_t index = model_table_seek(table, deleted->id, deleted->key, deleted->key_bytes);
    assert(index < table->count && table->at[index] == entry);
    table->count--;
    model_entry_t **place = table->at + index;
    memmove(place, place + 1, (table->count - index) * sizeof(model_entry_t *));
    free_entry(entry);
}

void model_table_release(model_table_t *table)
{
    for (size_t i = 0; i < table->count; i++)
        free_entry(table->at[i]);
    bson_free(table->at);
    *table = (model_table_t){0};
}
