/*
 * The definitions of a store by the collections of their heads and pages, in memory. So a new
 * definition is compared only with those that use its collections. The index is a superset: a
 * definition that was deleted may still be in it, and so may the collections that one had before.
 * Memory: about 100 bytes for each definition. Any thread.
 */
#ifndef SPILL_STORE_EMBEDDED_DEFINITION_INDEX_H
#define SPILL_STORE_EMBEDDED_DEFINITION_INDEX_H

#include "store/listing.h"

#include <spillway/definition.h>

#include <pthread.h>
#include <stdbool.h>

typedef struct spill_definition_index {
    pthread_mutex_t lock; /* of the fields below */
    char **slots;         /* a hash table of "collection\0name" by collection; NULL: free */
    size_t capacity;      /* a power of two, or 0 */
    size_t count;         /* at most half of them */
    size_t deleted;       /* definitions that were deleted since it was built */
    bool is_built;        /* false: it is empty, and must be built before the next use */
} spill_definition_index_t;

void spill_definition_index_init(spill_definition_index_t *index);
void spill_definition_index_release(spill_definition_index_t *index);

/* Call these three with the lock. NULL for `stored`: it cannot be read, and is always listed. */
void spill_definition_index_add(spill_definition_index_t *index, const char *name,
                                const bson_t *stored);
void spill_definition_index_list(const spill_definition_index_t *index,
                                 const spill_definition_t *definition, spill_listing_t *names);
void spill_definition_index_clear(spill_definition_index_t *index);

/* The definition was replaced by `stored`, or perhaps; NULL: it was deleted. Takes the lock. */
void spill_definition_index_change(spill_definition_index_t *index, const char *name,
                                   const bson_t *stored);

#endif
