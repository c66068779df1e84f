/*
 * The shape of a collection: the names of the fields that most of its documents have. What is alike
 * in shape and in indexes, and differs by an identifier in its name, is sprawl.h's.
 */
#ifndef SPILL_TOOLS_SCAN_SHAPE_H
#define SPILL_TOOLS_SCAN_SHAPE_H

#include <stddef.h>
#include <stdint.h>

enum {
    SPILL_SHAPE_FIELDS = 64,    /* the first names that are seen */
    SPILL_SHAPE_DOCUMENTS = 200 /* more are not looked at */
};

/* Zero it to begin; nothing to release. */
typedef struct spill_shape {
    uint64_t names[SPILL_SHAPE_FIELDS]; /* hashes, ascending */
    uint16_t seen[SPILL_SHAPE_FIELDS];  /* documents that have it */
    uint16_t count;
    uint16_t documents;
} spill_shape_t;

/* A document's bytes, which are well-formed. O(fields). */
void spill_shape_add(spill_shape_t *shape, const uint8_t *document);

/* Add the documents of another part of the collection. */
void spill_shape_merge(spill_shape_t *shape, const spill_shape_t *from);

/*
 * How alike two shapes are, 0 to 1: names that at least half of the documents of both have, as a
 * part of those that half of the documents of one have (Jaccard). 0 where one has none.
 */
double spill_shape_likeness(const spill_shape_t *left, const spill_shape_t *right);

#endif
