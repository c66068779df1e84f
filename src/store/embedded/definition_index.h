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
#include <stdatomic.h>
#include <stdbool.h>

typedef struct spill_definition_index {
    pthread_mutex_t lock; /* of the fields below */
    char **slots;         /* a hash table of "collection\0name" by collection; NULL: free */
    size_t capacity;      /* a power of two, or 0 */
    size_t count;         /* at most half of them */
    size_t deleted;       /* definitions that were deleted since it was built */
    bool is_built;        /* false: it is empty, and must be built before the next use */
    atomic_int changing;  /* changes that have begun and not ended */
    atomic_llong version; /* changes that have ended since the store was opened */
} spill_definition_index_t;

void spill_definition_index_init(spill_definition_index_t *index);
void spill_definition_index_release(spill_definition_index_t *index);

/* Call these three with the lock. NULL for `stored`: it cannot be read, and is always listed. */
void spill_definition_index_add(spill_definition_index_t *index, const char *name,
                                const bson_t *stored);
void spill_definition_index_list(const spill_definition_index_t *index,
                                 const spill_definition_t *definition, spill_listing_t *names);
void spill_definition_index_clear(spill_definition_index_t *index);

/*
 * Call `begin` before a change of a definition is written, and `end` after it, also if it failed.
 * The definition was replaced by `stored`, or perhaps; NULL: it was deleted. Both take the lock. In
 * between, an index is not used: readers may see the change, and the index has it after the end.
 */
void spill_definition_index_begin(spill_definition_index_t *index);
void spill_definition_index_end(spill_definition_index_t *index, const char *name,
                                const bson_t *stored);

/* Can the index be listed? If not, build it first. Call it with the lock. */
bool spill_definition_index_is_good(const spill_definition_index_t *index);

/* spill_store_ops_t.definitions_version */
int64_t spill_definition_index_version(spill_definition_index_t *index);

#endif
