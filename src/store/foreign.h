/*
 * Collections of a server's database that are the application's own, which no definition is of: to
 * read them in order, to write documents, and to make, rename and drop collections. For tools that
 * move whole collections; browse.h is for those that only look.
 *
 * A table of functions, as store.h has it, so that a test can bring collections of its own, and
 * calls that fail.
 *
 * Threads: one at a time.
 */
#ifndef SPILL_STORE_FOREIGN_H
#define SPILL_STORE_FOREIGN_H

#include <spillway/store.h>
#include <spillway/value.h>

typedef struct spill_foreign spill_foreign_t;

/* Which documents to read. */
typedef struct spill_foreign_read {
    const char *collection;
    const bson_t *filter; /* a query; NULL: all. Of `field: value` and `field: {$nin: [...]}` */
    const spill_value_t *after; /* those whose _id sorts behind this one; NULL: from the first */
    const bson_t *ids;          /* those of these _ids, an array; NULL: all. Not with `after` */
    bool ids_only;              /* nothing but the _id of each */
    int64_t limit;              /* documents at most; with `ids` 0: no limit */
} spill_foreign_read_t;

/* Documents, owned; a batch has some MiB, or one document. */
typedef struct spill_foreign_batch {
    bson_t **documents;
    size_t count;
    bool end; /* no more documents lay behind these */
} spill_foreign_batch_t;

void spill_foreign_batch_add(spill_foreign_batch_t *batch, const bson_t *document);
void spill_foreign_batch_release(spill_foreign_batch_t *batch);

typedef enum spill_foreign_kind {
    SPILL_FOREIGN_INSERT,
    SPILL_FOREIGN_REPLACE, /* nothing where there is no such document */
    SPILL_FOREIGN_DELETE   /* likewise */
} spill_foreign_kind_t;

/* A change of one document. Borrows. */
typedef struct spill_foreign_write {
    spill_foreign_kind_t kind;
    spill_value_t id;       /* replace, delete: of this _id ... */
    const bson_t *filter;   /* ... if it is found by this, too; or NULL */
    const bson_t *document; /* insert, replace */
    bool duplicate;         /* the answer: not done, a unique index has its keys already */
} spill_foreign_write_t;

typedef struct spill_foreign_ops {
    /*
     * What is there, as an array of {name, type: "collection" | "view" | ..., options}, initialized
     * by the call. One command.
     */
    spill_code_t (*list)(spill_foreign_t *foreign, bson_t *descriptions, spill_error_t *error);

    /* What the catalog has of saved definitions: {_id: NAME, entry}s, as list. One command. */
    spill_code_t (*definitions)(spill_foreign_t *foreign, bson_t *found, spill_error_t *error);

    /* The indexes of a collection as an array, initialized by the call; empty where it is none. */
    spill_code_t (*indexes)(spill_foreign_t *foreign, const char *collection, bson_t *indexes,
                            spill_error_t *error);

    /* How many documents the server believes it has; 0 where it is none, -1: it does not say. */
    int64_t (*count)(spill_foreign_t *foreign, const char *collection);

    /*
     * Documents in the order of _id (with `ids` in any), `batch` being initialized by the call. One
     * command, two where _ids are of several types.
     */
    spill_code_t (*read)(spill_foreign_t *foreign, const spill_foreign_read_t *what,
                         spill_foreign_batch_t *batch, spill_error_t *error);

    /*
     * Carry the changes out, in any order, each by itself. After an error any of them may have
     * been. As few commands as can be.
     */
    spill_code_t (*write)(spill_foreign_t *foreign, const char *collection,
                          spill_foreign_write_t *writes, size_t count, spill_error_t *error);

    /* Make a collection with indexes (an array of {key, name, ...}); those that are there, stay. */
    spill_code_t (*create)(spill_foreign_t *foreign, const char *collection, const bson_t *indexes,
                           spill_error_t *error);
    spill_code_t (*create_view)(spill_foreign_t *foreign, const char *name, const char *on,
                                const bson_t *pipeline, spill_error_t *error);
    /* An error where the new name is taken, or there is no such collection. */
    spill_code_t (*rename)(spill_foreign_t *foreign, const char *from, const char *to,
                           spill_error_t *error);
    spill_code_t (*drop)(spill_foreign_t *foreign, const char *collection, spill_error_t *error);

    /* Small documents of the tool's own. As catalog_get, _put and _delete of store.h. */
    spill_code_t (*mark_get)(spill_foreign_t *foreign, const char *name, bson_t **document,
                             spill_error_t *error);
    spill_code_t (*mark_put)(spill_foreign_t *foreign, const char *name, const bson_t *expected,
                             const bson_t *document, bool *done, spill_error_t *error);
    spill_code_t (*mark_delete)(spill_foreign_t *foreign, const char *name, spill_error_t *error);

    void (*close)(spill_foreign_t *foreign); /* frees it */
} spill_foreign_ops_t;

struct spill_foreign {
    const spill_foreign_ops_t *ops;
    char *place; /* "localhost:27017/shop": without user or password; of the implementation */
};

/*
 * Open a database by its URI, which names it. SPILL_INVALID: it is not that of a server; and what
 * opening a store fails with.
 */
spill_code_t spill_foreign_open(const char *uri, spill_foreign_t **foreign, spill_error_t *error);
void spill_foreign_close(spill_foreign_t *foreign); /* NULL is allowed */

#endif
