/*
 * The shape of a collection: the names of the fields that most of its documents have. sprawl.h
 * groups collections of the same shape and indexes whose names differ by an identifier.
 */
#ifndef SPILL_TOOLS_SCAN_SHAPE_H
#define SPILL_TOOLS_SCAN_SHAPE_H

#include <stddef.h>
#include <stdint.h>

enum {
    SPILL_SHAPE_FIELDS = 64,    /* only the first names are kept */
    SPILL_SHAPE_DOCUMENTS = 200 /* only the first documents are read */
};

/* Zero it to begin; nothing to release. */
typedef struct spill_shape {
    uint64_t names[SPILL_SHAPE_FIELDS]; /* hashes, ascending */
    uint16_t seen[SPILL_SHAPE_FIELDS];  /* documents that have it */
    uint16_t count;
    uint16_t documents;
} spill_shape_t;

/* Add a document, which is well-formed. O(fields). */
void spill_shape_add(spill_shape_t *shape, const uint8_t *document);

/* Add the documents of another part of the collection. */
void spill_shape_merge(spill_shape_t *shape, const spill_shape_t *from);

/*
 * How alike two shapes are, 0 to 1: the number of names that at least half of the documents of both
 * have, divided by the number that half of the documents of either have (Jaccard). 0 if a shape has
 * none.
 */
double spill_shape_likeness(const spill_shape_t *left, const spill_shape_t *right);

#endif
