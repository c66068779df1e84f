/*
 * Collections of a server's database that are the application's own, which no definition is of: to
 * read them in order, to write documents, and to make, rename and drop collections. For tools that
 * move whole collections; raw_reader.h is for those that only look.
 *
 * A table of functions, as store.h has it, so that a test can bring collections of its own, and
 * calls that fail.
 *
 * Threads: one at a time.
 */
#ifndef SPILL_STORE_RAW_ADMIN_H
#define SPILL_STORE_RAW_ADMIN_H

#include <spillway/store.h>
#include <spillway/value.h>

typedef struct spill_raw_admin spill_raw_admin_t;

/* Which documents to read. */
typedef struct spill_raw_admin_read {
    const char *collection;
    const bson_t *filter; /* a query; NULL: all. Of `field: value` and `field: {$nin: [...]}` */
    const spill_value_t *after; /* those whose _id sorts behind this one; NULL: from the first */
    const bson_t *ids;          /* those of these _ids, an array; NULL: all. Not with `after` */
    bool ids_only;              /* nothing but the _id of each */
    int64_t limit;              /* documents at most; with `ids` 0: no limit */
} spill_raw_admin_read_t;

/* Documents, owned; a batch has some MiB, or one document. */
typedef struct spill_raw_admin_batch {
    bson_t **documents;
    size_t count;
    bool end; /* no more documents lay behind these */
} spill_raw_admin_batch_t;

void spill_raw_admin_batch_add(spill_raw_admin_batch_t *batch, const bson_t *document);
void spill_raw_admin_batch_release(spill_raw_admin_batch_t *batch);

typedef enum spill_raw_admin_kind {
    SPILL_RAW_ADMIN_INSERT,
    SPILL_RAW_ADMIN_REPLACE, /* nothing where there is no such document */
    SPILL_RAW_ADMIN_DELETE   /* likewise */
} spill_raw_admin_kind_t;

/* A change of one document. Borrows. */
typedef struct spill_raw_admin_write {
    spill_raw_admin_kind_t kind;
    spill_value_t id;       /* replace, delete: of this _id ... */
    const bson_t *filter;   /* ... if it is found by this, too; or NULL */
    const bson_t *document; /* insert, replace */
    bool duplicate;         /* the answer: not done, a unique index has its keys already */
} spill_raw_admin_write_t;

typedef struct spill_raw_admin_ops {
    /*
     * What is there, as an array of {name, type: "collection" | "view" | ..., options}, initialized
     * by the call. One command.
     */
    spill_code_t (*list)(spill_raw_admin_t *admin, bson_t *descriptions, spill_error_t *error);

    /* What the catalog has of saved definitions: {_id: NAME, entry}s, as list. One command. */
    spill_code_t (*definitions)(spill_raw_admin_t *admin, bson_t *found, spill_error_t *error);

    /* The indexes of a collection as an array, initialized by the call; empty where it is none. */
    spill_code_t (*indexes)(spill_raw_admin_t *admin, const char *collection, bson_t *indexes,
                            spill_error_t *error);

    /* How many documents the server believes it has; 0 where it is none, -1: it does not say. */
    int64_t (*count)(spill_raw_admin_t *admin, const char *collection);

    /*
     * Documents in the order of _id (with `ids` in any), `batch` being initialized by the call. One
     * command, two where _ids are of several types.
     */
    spill_code_t (*read)(spill_raw_admin_t *admin, const spill_raw_admin_read_t *what,
                         spill_raw_admin_batch_t *batch, spill_error_t *error);

    /*
     * Carry the changes out, in any order, each by itself. After an error any of them may have
     * been. As few commands as can be.
     */
    spill_code_t (*write)(spill_raw_admin_t *admin, const char *collection,
                          spill_raw_admin_write_t *writes, size_t count, spill_error_t *error);

    /* Make a collection with indexes (an array of {key, name, ...}); those that are there, stay. */
    spill_code_t (*create)(spill_raw_admin_t *admin, const char *collection, const bson_t *indexes,
                           spill_error_t *error);
    spill_code_t (*create_view)(spill_raw_admin_t *admin, const char *name, const char *on,
                                const bson_t *pipeline, spill_error_t *error);
    /* An error where the new name is taken, or there is no such collection. */
    spill_code_t (*rename)(spill_raw_admin_t *admin, const char *from, const char *to,
                           spill_error_t *error);
    spill_code_t (*drop)(spill_raw_admin_t *admin, const char *collection, spill_error_t *error);

    /* Small documents of the tool's own. As catalog_get, _put and _delete of store.h. */
    spill_code_t (*checkpoint_get)(spill_raw_admin_t *admin, const char *name, bson_t **document,
                                   spill_error_t *error);
    spill_code_t (*checkpoint_put)(spill_raw_admin_t *admin, const char *name,
                                   const bson_t *expected, const bson_t *document, bool *done,
                                   spill_error_t *error);
    spill_code_t (*checkpoint_delete)(spill_raw_admin_t *admin, const char *name,
                                      spill_error_t *error);

    void (*close)(spill_raw_admin_t *admin); /* frees it */
} spill_raw_admin_ops_t;

struct spill_raw_admin {
    const spill_raw_admin_ops_t *ops;
    char *place; /* "localhost:27017/shop": without user or password; of the implementation */
};

/*
 * Open a database by its URI, which names it. SPILL_INVALID: it is not that of a server; and what
 * opening a store fails with.
 */
spill_code_t spill_raw_admin_open(const char *uri, spill_raw_admin_t **admin, spill_error_t *error);
void spill_raw_admin_close(spill_raw_admin_t *admin); /* NULL is allowed */

#endif
