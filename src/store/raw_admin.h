/*
 * Read and change the application's own collections on a server, which have no definition: read
 * documents in order, write them, and create, rename and drop collections. For tools that move
 * whole collections. Tools that only read use raw_reader.h.
 *
 * Like store.h it is a table of functions, so that a test can have its own collections and make
 * calls fail.
 *
 * Threads: any; each call uses a connection of its own.
 */
#ifndef SPILL_STORE_RAW_ADMIN_H
#define SPILL_STORE_RAW_ADMIN_H

#include <spillway/store.h>
#include <spillway/value.h>

typedef struct spill_raw_admin spill_raw_admin_t;

/* Which documents to read. */
typedef struct spill_raw_admin_read {
    const char *collection;
    const bson_t *filter; /* a query of `field: value` and `field: {$nin: [...]}`; NULL: all */
    const spill_value_t *after; /* only _ids that sort behind this one; NULL: from the first */
    const bson_t *ids;          /* only these _ids, an array; NULL: all. Not with `after` */
    bool ids_only;              /* only the _id of each document */
    int64_t limit;              /* most documents; with `ids`, 0: no limit */
} spill_raw_admin_read_t;

/* Documents, owned. A batch has a few MiB, or a single document. */
typedef struct spill_raw_admin_batch {
    bson_t **documents;
    size_t count;
    bool end; /* no document follows */
} spill_raw_admin_batch_t;

void spill_raw_admin_batch_add(spill_raw_admin_batch_t *batch, const bson_t *document);
void spill_raw_admin_batch_release(spill_raw_admin_batch_t *batch);

typedef enum spill_raw_admin_kind {
    SPILL_RAW_ADMIN_INSERT,
    SPILL_RAW_ADMIN_REPLACE, /* no effect if there is no such document */
    SPILL_RAW_ADMIN_DELETE   /* no effect if there is no such document */
} spill_raw_admin_kind_t;

/* A change of one document. Borrows. */
typedef struct spill_raw_admin_write {
    spill_raw_admin_kind_t kind;
    spill_value_t id;       /* replace, delete: the document's _id */
    const bson_t *filter;   /* replace, delete: only if the document matches it; or NULL */
    const bson_t *document; /* insert, replace */
    bool duplicate;         /* result: not done, because a unique index already has a key of it */
} spill_raw_admin_write_t;

typedef struct spill_raw_admin_ops {
    /*
     * List collections and views as an array of {name, type: "collection" | "view" | ..., options},
     * initialized by the call. `type`: only these; or NULL. One command.
     */
    spill_code_t (*list)(spill_raw_admin_t *admin, const char *type, bson_t *descriptions,
                         spill_error_t *error);

    /* List the saved definitions of the catalog as an array of {_id: NAME, entry}. One command. */
    spill_code_t (*definitions)(spill_raw_admin_t *admin, bson_t *found, spill_error_t *error);

    /* List a collection's indexes as an array, initialized by the call; empty if it is absent. */
    spill_code_t (*indexes)(spill_raw_admin_t *admin, const char *collection, bson_t *indexes,
                            spill_error_t *error);

    /* The server's estimate of the number of documents; 0 if there is no collection, -1: unknown.
     */
    int64_t (*count)(spill_raw_admin_t *admin, const char *collection);

    /*
     * Read documents in the order of _id (with `ids`, in any order) into `batch`, which the call
     * initializes. One command, or two if _ids have several types.
     */
    spill_code_t (*read)(spill_raw_admin_t *admin, const spill_raw_admin_read_t *what,
                         spill_raw_admin_batch_t *batch, spill_error_t *error);

    /*
     * Carry out the changes in any order, each by itself, in as few commands as possible. After an
     * error any of them may have been carried out.
     */
    spill_code_t (*write)(spill_raw_admin_t *admin, const char *collection,
                          spill_raw_admin_write_t *writes, size_t count, spill_error_t *error);

    /* Make a collection with indexes (an array of {key, name, ...}). Existing indexes stay. */
    spill_code_t (*create)(spill_raw_admin_t *admin, const char *collection, const bson_t *indexes,
                           spill_error_t *error);
    spill_code_t (*create_view)(spill_raw_admin_t *admin, const char *name, const char *on,
                                const bson_t *pipeline, spill_error_t *error);
    /* Fail if the new name is in use, or if there is no such collection. */
    spill_code_t (*rename)(spill_raw_admin_t *admin, const char *from, const char *to,
                           spill_error_t *error);
    spill_code_t (*drop)(spill_raw_admin_t *admin, const char *collection, spill_error_t *error);

    /* The tool's own small documents. See catalog_get, _put and _delete in store.h. */
    spill_code_t (*checkpoint_get)(spill_raw_admin_t *admin, const char *name, bson_t **document,
                                   spill_error_t *error);
    /* Two at once: one command. The documents are NULL or new also after an error. */
    spill_code_t (*checkpoints_get)(spill_raw_admin_t *admin, const char *const names[2],
                                    bson_t *documents[2], spill_error_t *error);
    spill_code_t (*checkpoint_put)(spill_raw_admin_t *admin, const char *name,
                                   const bson_t *expected, const bson_t *document, bool *done,
                                   spill_error_t *error);
    spill_code_t (*checkpoint_delete)(spill_raw_admin_t *admin, const char *name,
                                      spill_error_t *error);

    void (*close)(spill_raw_admin_t *admin); /* frees it */
} spill_raw_admin_ops_t;

struct spill_raw_admin {
    const spill_raw_admin_ops_t *ops;
    char *place; /* "localhost:27017/shop", without user or password; owned by the implementation */
};

/*
 * Open a database by its URI, which names it. SPILL_INVALID if it is not the URI of a server;
 * otherwise the errors of opening a store.
 */
spill_code_t spill_raw_admin_open(const char *uri, spill_raw_admin_t **admin, spill_error_t *error);
void spill_raw_admin_close(spill_raw_admin_t *admin); /* NULL is allowed */

#endif
