/* A collection's indexes, as listed by a server or by a dump's description of the collection. */
#ifndef SPILL_TOOLS_SCAN_INDEXES_H
#define SPILL_TOOLS_SCAN_INDEXES_H

#include <bson/bson.h>
#include <stdbool.h>

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

#endif
