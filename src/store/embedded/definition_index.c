/* The index of definitions by their collections. */
#include "store/embedded/definition_index.h"

#include "bson/value.h"
#include "store/store.h"
#include "util/buffer.h"

#include <string.h>

enum { CAPACITY_MIN = 64 };

/* Definitions that cannot be read have this collection, and layouts without pages use it for them.
 */
static const char UNREADABLE[] = "";

void spill_definition_index_init(spill_definition_index_t *index)
{
    *index = (spill_definition_index_t){0};
    pthread_mutex_init(&index->lock, NULL);
}

void spill_definition_index_clear(spill_definition_index_t *index)
{
    for (size_t i = 0; i < index->capacity; i++)
        bson_free(index->slots[i]);
    bson_free(index->slots);
    index->slots = NULL;
    index->capacity = index->count = index->deleted = 0;
    index->is_built = false;
}

void spill_definition_index_release(spill_definition_index_t *index)
{
    spill_definition_index_clear(index);
    pthread_mutex_destroy(&index->lock);
}

/* ---- the hash table -------------------------------------------------------------------------- */

static const char *name_of(const char *slot)
{
    return slot + strlen(slot) + 1;
}

/* The first slot to look at for a collection. */
static size_t begin_at(const spill_definition_index_t *index, const char *collection)
{
    return spill_hash(collection, strlen(collection)) & (index->capacity - 1);
}

static size_t next_of(const spill_definition_index_t *index, size_t at)
{
    return (at + 1) & (index->capacity - 1);
}

static void grow(spill_definition_index_t *index)
{
    spill_definition_index_t larger = {.capacity =
                                           index->capacity ? 2 * index->capacity : CAPACITY_MIN};
    larger.slots = bson_malloc0(larger.capacity * sizeof *larger.slots);
    for (size_t i = 0; i < index->capacity; i++) {
        if (!index->slots[i])
            continue;
        size_t at = begin_at(&larger, index->slots[i]);
        while (larger.slots[at])
            at = next_of(&larger, at);
        larger.slots[at] = index->slots[i];
    }
    bson_free(index->slots);
    index->slots = larger.slots;
    index->capacity = larger.capacity;
}

static void add_pair(spill_definition_index_t *index, const char *collection, const char *name)
{
    if (2 * (index->count + 1) > index->capacity)
        grow(index);
    size_t at = begin_at(index, collection);
    for (; index->slots[at]; at = next_of(index, at))
        if (strcmp(index->slots[at], collection) == 0 &&
            strcmp(name_of(index->slots[at]), name) == 0)
            return;
    size_t before = strlen(collection) + 1, bytes = strlen(name) + 1;
    index->slots[at] = bson_malloc(before + bytes);
    memcpy(index->slots[at], collection, before);
    memcpy(index->slots[at] + before, name, bytes);
    index->count++;
}

static void list_pairs(const spill_definition_index_t *index, const char *collection,
                       spill_listing_t *names)
{
    if (index->count == 0)
        return;
    for (size_t at = begin_at(index, collection); index->slots[at]; at = next_of(index, at)) {
        const char *name = name_of(index->slots[at]);
        if (strcmp(index->slots[at], collection) == 0)
            spill_listing_add_text(names, name, strlen(name));
    }
}

/* ---- definitions ----------------------------------------------------------------------------- */

void spill_definition_index_add(spill_definition_index_t *index, const char *name,
                                const bson_t *stored)
{
    const char *heads = stored ? spill_document_text(stored, "collection", UNREADABLE) : UNREADABLE;
    const char *pages = stored ? spill_document_text(stored, "pageCollection", "") : "";
    add_pair(index, heads, name);
    if (pages[0] != '\0')
        add_pair(index, pages, name);
}

void spill_definition_index_list(const spill_definition_index_t *index,
                                 const spill_definition_t *definition, spill_listing_t *names)
{
    list_pairs(index, UNREADABLE, names);
    list_pairs(index, definition->collection, names);
    if (definition->page_collection[0] != '\0')
        list_pairs(index, definition->page_collection, names);
}

void spill_definition_index_begin(spill_definition_index_t *index)
{
    pthread_mutex_lock(&index->lock);
    atomic_fetch_add(&index->changing, 1);
    pthread_mutex_unlock(&index->lock);
}

void spill_definition_index_end(spill_definition_index_t *index, const char *name,
                                const bson_t *stored)
{
    pthread_mutex_lock(&index->lock);
    if (index->is_built && stored)
        spill_definition_index_add(index, name, stored);
    else if (index->is_built && ++index->deleted > index->count)
        spill_definition_index_clear(index);
    atomic_fetch_add(&index->version, 1);
    atomic_fetch_sub(&index->changing, 1);
    pthread_mutex_unlock(&index->lock);
}

bool spill_definition_index_is_good(const spill_definition_index_t *index)
{
    return index->is_built && atomic_load(&index->changing) == 0;
}

/* A change that ends between the two loads shows in the version. */
int64_t spill_definition_index_version(spill_definition_index_t *index)
{
    return atomic_load(&index->changing) > 0 ? SPILL_DEFINITIONS_CHANGE
                                             : atomic_load(&index->version);
}
