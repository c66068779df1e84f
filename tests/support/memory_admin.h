/*
 * Collections of a database in memory, behind the interface of store/raw_admin.h: with views,
 * unique indexes, writers between any two calls, and calls that fail.
 */
#ifndef TESTS_SUPPORT_MEMORY_ADMIN_H
#define TESTS_SUPPORT_MEMORY_ADMIN_H

#include "store/raw_admin.h"

#include <pthread.h>

enum { FOREIGN_COLLECTIONS = 64 };

typedef struct foreign_collection {
    char *name; /* NULL: a free place */
    bool view;
    bson_t *options;
    bson_t *indexes;
    spill_raw_admin_batch_t documents; /* in no order */
} foreign_collection_t;

typedef struct memory_admin {
    spill_raw_admin_t base;
    foreign_collection_t collections[FOREIGN_COLLECTIONS];
    foreign_collection_t marks; /* {_id: NAME, entry} */
    int64_t calls;
    int64_t fail_at;    /* that call fails; 0: none */
    bool fail_applied;  /* the call takes effect, but returns an error */
    bool fail_for_good; /* all later calls fail, too, as if the program was killed */
    bool no_views;      /* create a collection instead of a view, without an error */
    bool changing;      /* the current call writes, renames or drops a collection */
    void (*before)(struct memory_admin *memory); /* each call; may be NULL */
    void *context;                               /* of `before` */
    pthread_mutex_t lock;                        /* held during each call */
} memory_admin_t;

memory_admin_t *memory_admin_new(void);
/* For all else call the ops of `base`. Its close frees the object. */

/* NULL: there is no such collection. */
foreign_collection_t *memory_admin_find(memory_admin_t *memory, const char *name);

/* Write like an application: insert, replace (by _id) or delete. False: a unique index refuses. */
bool memory_admin_put(memory_admin_t *memory, const char *collection, const char *json);
void memory_admin_delete(memory_admin_t *memory, const char *collection, const char *id_json);

/* The number of documents; 0 if there is no such collection. */
size_t memory_admin_count(memory_admin_t *memory, const char *collection);

/* All documents of a collection as lines of JSON in the order of _id. Free with bson_free. */
char *memory_admin_text(memory_admin_t *memory, const char *collection);

#endif
