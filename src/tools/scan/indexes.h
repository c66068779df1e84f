/* A collection's indexes, as a server lists them, or a dump's description of the collection. */
#ifndef SPILL_TOOLS_SCAN_INDEXES_H
#define SPILL_TOOLS_SCAN_INDEXES_H

#include <bson/bson.h>
#include <stdbool.h>

typedef struct spill_scan_index {
    char *name;
    bson_t *key;   /* {"posts.tag": 1, "at": -1} */
    int64_t bytes; /* -1: not known, as of a dump */
} spill_scan_index_t;

/* Zero it to begin: nothing is known. */
typedef struct spill_scan_indexes {
    bool known;
    spill_scan_index_t *items;
    size_t count;
    uint64_t hash; /* of keys and options, whatever their order and names; 0: not known */
} spill_scan_indexes_t;

void spill_scan_indexes_release(spill_scan_indexes_t *indexes);

/* One more, as listIndexes describes it: {"key": {...}, "name": ...}. False where it is none. */
bool spill_scan_indexes_add(spill_scan_indexes_t *indexes, const bson_t *description,
                            int64_t bytes);

/* What mongodump writes of a collection, in JSON, perhaps without indexes; false where it is not
 * that. */
bool spill_scan_indexes_parse(spill_scan_indexes_t *indexes, const char *metadata, size_t size);

/* Bytes of all of them that are known. */
int64_t spill_scan_indexes_bytes(const spill_scan_indexes_t *indexes);

/*
 * Does a field of the key lie in the array of that path, "posts" or "groups[].members"? Each of its
 * elements has an entry in the index then.
 */
bool spill_scan_index_covers(const spill_scan_index_t *index, const char *path);

#endif
