/*
 * Collections of a database in memory, behind the interface of store/foreign.h: with views, unique
 * indexes, writers between any two calls, and calls that fail.
 */
#ifndef TESTS_SUPPORT_FOREIGN_H
#define TESTS_SUPPORT_FOREIGN_H

#include "store/foreign.h"

enum { FOREIGN_COLLECTIONS = 64 };

typedef struct foreign_collection {
    char *name; /* NULL: a free place */
    bool view;
    bson_t *options;
    bson_t *indexes;
    spill_foreign_batch_t documents; /* in no order */
} foreign_collection_t;

typedef struct foreign_memory {
    spill_foreign_t base;
    foreign_collection_t collections[FOREIGN_COLLECTIONS];
    foreign_collection_t marks; /* {_id: NAME, entry} */
    int64_t calls;
    int64_t fail_at;    /* that call fails; 0: none */
    bool fail_applied;  /* it is carried out, and its answer lost */
    bool fail_for_good; /* all later calls fail, too: the program was killed */
    bool no_views;      /* make a collection in the place of a view, and say nothing */
    bool changing;      /* the call under way changes a collection: write, rename or drop */
    void (*before)(struct foreign_memory *memory); /* each call; may be NULL */
    void *context;                                 /* of `before` */
} foreign_memory_t;

foreign_memory_t *foreign_memory_new(void);
/* The rest of the interface is ops of `base`; close frees it. */

/* NULL where there is none. */
foreign_collection_t *foreign_memory_find(foreign_memory_t *memory, const char *name);

/* As an application writes: insert, replace (by _id) and delete. False: a unique index refuses. */
bool foreign_memory_put(foreign_memory_t *memory, const char *collection, const char *json);
void foreign_memory_delete(foreign_memory_t *memory, const char *collection, const char *id_json);

/* How many documents; 0 where it is none. */
size_t foreign_memory_count(foreign_memory_t *memory, const char *collection);

/* All documents of a collection as lines of JSON in the order of _id. Free with bson_free. */
char *foreign_memory_text(foreign_memory_t *memory, const char *collection);

#endif
