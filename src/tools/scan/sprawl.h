/*
 * Collection sprawl: groups of collections that differ only by an identifier in their names (a
 * tenant, a user, a device, a date). One collection with the identifier in a field would serve
 * better.
 *
 * Collections are alike if their documents have the same fields (shape.h) and they have the same
 * indexes. Collections that are alike are grouped by name: the identifier is the part between the
 * same beginning and the same end, at word borders. If the names have nothing in common, a group
 * needs five times as many collections. Collections of different shapes are never grouped, whatever
 * their number and names.
 */
#ifndef SPILL_TOOLS_SCAN_SPRAWL_H
#define SPILL_TOOLS_SCAN_SPRAWL_H

#include "tools/scan/shape.h"

#include <stdbool.h>

/* Fewer collections than this are no sprawl. */
#define SPILL_SPRAWL_MIN 10

/* Shapes with less likeness than this are different. */
#define SPILL_SPRAWL_LIKENESS 0.75

typedef struct spill_sprawl_collection {
    const char *name;
    const spill_shape_t *shape; /* without documents: empty, and ignored */
    uint64_t indexes;           /* a hash of their keys and options; 0: unknown */
    int64_t index_count;
    int64_t index_bytes; /* 0: unknown */
    int64_t documents;
    int64_t bytes; /* of the documents */
} spill_sprawl_collection_t;

/* What the identifiers look like. */
typedef enum spill_sprawl_kind {
    SPILL_SPRAWL_NAMES,
    SPILL_SPRAWL_NUMBERS, /* only digits */
    SPILL_SPRAWL_DATES    /* digits from a year 1970 to 2099 on, perhaps with punctuation */
} spill_sprawl_kind_t;

/* "names", "numbers" or "dates"; and back, with SPILL_SPRAWL_NAMES for any other text. */
const char *spill_sprawl_kind_name(spill_sprawl_kind_t kind);
spill_sprawl_kind_t spill_sprawl_kind_of(const char *name);

typedef struct spill_sprawl_group {
    char *pattern; /* "customer_*_orders"; "*" if names have nothing in common */
    spill_sprawl_kind_t kind;
    size_t *members; /* indexes, ascending */
    size_t count;
    int64_t index_count;
    int64_t index_bytes;
    int64_t documents;
    int64_t bytes;
} spill_sprawl_group_t;

typedef struct spill_sprawl {
    spill_sprawl_group_t *groups; /* the largest group first */
    size_t count;
} spill_sprawl_t;

/*
 * Find the groups of at least `min` (at least 2) collections. `qualified`: names begin with their
 * database's and a dot, which is ignored. Cost: compares each collection's shape with the shapes of
 * all clusters found so far, and sorts the names.
 */
spill_sprawl_t spill_sprawl_find(const spill_sprawl_collection_t *collections, size_t count,
                                 size_t min, bool qualified);
void spill_sprawl_release(spill_sprawl_t *sprawl);

#endif
