/*
 * The shape of a collection, which is its fields and its indexes, and groups of collections of the
 * same shape.
 */
#ifndef SPILL_TOOLS_SCAN_SHAPE_H
#define SPILL_TOOLS_SCAN_SHAPE_H

#include <bson/bson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- fields ---------------------------------------------------------------------------------- */

/*
 * The shape of a collection: the names of the fields that most of its documents have. sprawl.c
 * groups collections of the same shape and indexes whose names differ by an identifier.
 */

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

/* ---- indexes --------------------------------------------------------------------------------- */

/* A collection's indexes, as listed by a server or by a dump's description of the collection. */

typedef struct spill_scan_index {
    char *name;
    bson_t *key;   /* {"posts.tag": 1, "at": -1} */
    int64_t bytes; /* -1: unknown, as in a dump */
} spill_scan_index_t;

/* Zero it to begin: no indexes are known. */
typedef struct spill_scan_indexes {
    bool known;
    spill_scan_index_t *items;
    size_t count;
    uint64_t hash; /* of keys and options, in any order and under any names; 0: unknown */
} spill_scan_indexes_t;

void spill_scan_indexes_release(spill_scan_indexes_t *indexes);

/* Add an index as listIndexes describes it: {"key": {...}, "name": ...}. False: it is no index. */
bool spill_scan_indexes_add(spill_scan_indexes_t *indexes, const bson_t *description,
                            int64_t bytes);

/* Parse mongodump's JSON description of a collection, perhaps without indexes. False: it is none.
 */
bool spill_scan_indexes_parse(spill_scan_indexes_t *indexes, const char *metadata, size_t size);

/* The sum of the known sizes. */
int64_t spill_scan_indexes_bytes(const spill_scan_indexes_t *indexes);

/*
 * Report whether a field of the key is in the array of that path, "posts" or "groups[].members".
 * Then each element of the array has an entry in the index.
 */
bool spill_scan_index_covers(const spill_scan_index_t *index, const char *path);

/* ---- sprawl: groups of collections ----------------------------------------------------------- */

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

/* "names", "numbers" or "dates". */
const char *spill_sprawl_kind_name(spill_sprawl_kind_t kind);

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
