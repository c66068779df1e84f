/*
 * Collection sprawl: groups of collections that are one in all but an identifier in their names (a
 * tenant, a user, a device, a date), which would be better off as one collection with the
 * identifier in a field.
 *
 * Collections are alike when their documents have the same fields (shape.h) and they have the same
 * indexes. Of those that are alike, groups are formed by names: what is between the same beginning
 * and the same end, at the borders of words, is the identifier; where they have nothing in common,
 * five times as many have to be alike. Collections of different shapes are never one group, however
 * many and however named.
 */
#ifndef SPILL_TOOLS_SCAN_SPRAWL_H
#define SPILL_TOOLS_SCAN_SPRAWL_H

#include "tools/scan/shape.h"

#include <stdbool.h>

/* Fewer collections are no sprawl. */
#define SPILL_SPRAWL_MIN 10

/* Shapes that are less alike than this are different. */
#define SPILL_SPRAWL_LIKENESS 0.75

typedef struct spill_sprawl_collection {
    const char *name;
    const spill_shape_t *shape; /* without documents: empty, and left alone */
    uint64_t indexes;           /* a hash of their keys and options; 0: not known */
    int64_t index_count;
    int64_t index_bytes; /* 0: not known */
    int64_t documents;
    int64_t bytes; /* of the documents */
} spill_sprawl_collection_t;

/* What the identifiers look like. */
typedef enum spill_sprawl_kind {
    SPILL_SPRAWL_NAMES,
    SPILL_SPRAWL_NUMBERS, /* nothing but digits */
    SPILL_SPRAWL_DATES    /* digits that begin with a year from 1970 to 2099, perhaps with marks */
} spill_sprawl_kind_t;

/* "names", "numbers" or "dates"; and back, names where it is another. */
const char *spill_sprawl_kind_name(spill_sprawl_kind_t kind);
spill_sprawl_kind_t spill_sprawl_kind_of(const char *name);

typedef struct spill_sprawl_group {
    char *pattern; /* "customer_*_orders"; "*" where names have nothing in common */
    spill_sprawl_kind_t kind;
    size_t *members; /* indexes, ascending */
    size_t count;
    int64_t index_count;
    int64_t index_bytes;
    int64_t documents;
    int64_t bytes;
} spill_sprawl_group_t;

typedef struct spill_sprawl {
    spill_sprawl_group_t *groups; /* the most collections first */
    size_t count;
} spill_sprawl_t;

/*
 * Find the groups of at least `min` (at least 2) collections. `qualified`: names begin with their
 * database's and a dot, which say nothing. Cost: that of
 * comparing each collection's shape with those of the clusters found so far, and O(n log n) names.
 */
spill_sprawl_t spill_sprawl_find(const spill_sprawl_collection_t *collections, size_t count,
                                 size_t min, bool qualified);
void spill_sprawl_release(spill_sprawl_t *sprawl);

#endif
