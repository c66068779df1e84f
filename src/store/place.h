/*
 * The place of an element in a document's array. An element's rank counts from the oldest element;
 * other code uses ranks. An array that grows at the front (order: newest-first) has the elements in
 * reverse. This file has the arithmetic; store/mongo/mongo_elements.c has it as server expressions.
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

/* The place of the element with that rank among `count`; also the rank of the one at a place. */
static inline int64_t spill_place(const spill_definition_t *definition, int64_t count, int64_t rank)
{
    return spill_grows_at_front(definition) ? count - 1 - rank : rank;
}

#endif
