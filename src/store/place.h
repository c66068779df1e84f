/*
 * Where elements stand in a document's array. Everywhere else elements are counted from the oldest
 * on, which is an element's rank; an array that grows at the front (order: newest-first) has them
 * the other way round. This is the arithmetic, once; store/mongo/place.c has it as expressions.
 */
#ifndef SPILL_STORE_PLACE_H
#define SPILL_STORE_PLACE_H

#include <spillway/definition.h>

#include <stdbool.h>
#include <stdint.h>

static inline bool spill_grows_at_front(const spill_definition_t *definition)
{
    return definition->order == SPILL_ARRAY_NEWEST_FIRST;
}

/* The place of the element of that rank among `count`; and the rank of the one at that place. */
static inline int64_t spill_place(const spill_definition_t *definition, int64_t count, int64_t rank)
{
    return spill_grows_at_front(definition) ? count - 1 - rank : rank;
}

#endif
