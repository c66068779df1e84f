/*
 * The MongoDB store: heads and pages are documents of a database on any server that speaks the
 * MongoDB protocol (docs/reference/mongodb.md). A step of request.h is one update command. Its
 * filter is the step's guard. If a step needs to know the document, the store reads it first, and
 * the filter checks that it has not changed.
 *
 * The files, from the wire up:
 *   driver.c            load libmongoc
 *   connect.c           the URI, the pool of clients, the abilities of the server; dispatch
 *   selection.c         why the driver selects no server
 *   pool.c              a pool that belongs to the program (spillway/mongoc.h)
 *   command.c           one command each: find and modify, update, insert, delete, aggregate
 *   answer.c            the meaning of errors; checked documents of cursors
 *   document.c          filters that select documents, and the paths of their fields; statistics
 *   mongo_state.c       the state of a document
 *   mongo_elements.c    the elements in its array: places, runs, ids
 *   mongo_referenced.c  documents of one element, and the head's summary (reference, subset)
 *   read.c              READ of one document, or of several pages
 *   referenced_runs.c   READ of runs of referenced elements
 *   rank.c              READ of the elements that rank next
 *   update.c            the operators of an append, of a new head, of fields
 *   rewrite.c           the update from one state of a document to another
 *   guard.c             guards as filters: there is room; the document is as it was read
 *   append.c            APPEND by a push: one update, mostly without a READ
 *   heads.c             incarnations; make, update and drop heads
 *   guarded.c           all other steps, in one loop: read the state, compute the new one, write it
 *   guarded_write.c     ... the writes
 *   unmanaged.c         unmanaged arrays: ADOPT, ADOPT_SPLIT, UNMANAGE
 *   catalog.c           definitions, imports, indexes; is another store the same database?
 *   owners.c            list owners, and heads that need a reshape
 *   obstacle.c          can the array of a document of nearly the size limit be adopted?
 *   lists.c             list the windows of an owner, and pages without a head
 *   ahead.c             heads that a walk reads soon; ahead_pages.c: their pages
 *   raw_reader.c        read any collection (store/raw_reader.h)
 *   raw_admin.c         write, rename and drop any collection (store/raw_admin.h)
 *
 * This header has the store and its commands, mongo_document.h the documents of requests, and
 * guarded.h their updates.
 */
#ifndef SPILL_STORE_MONGO_MONGO_H
#define SPILL_STORE_MONGO_MONGO_H

#include "bson/value.h"
#include "definition/schema.h"
#include "store/mongo/driver.h"
#include "store/store.h"
#include "store/transition.h"

typedef struct spill_mongo_hints spill_mongo_hints_t;
typedef struct spill_mongo_ahead spill_mongo_ahead_t;

/* Concerns of commands on a borrowed pool, whose clients have none. NULL: the client's apply. */
typedef struct spill_mongo_concerns {
    mongoc_write_concern_t *write;
    mongoc_read_concern_t *read;
    bson_t *write_opts; /* the same, as options of a command */
    bson_t *read_opts;
} spill_mongo_concerns_t;

typedef struct spill_mongo {
    spill_store_t base;
    mongoc_client_pool_t *pool; /* serves threads: one client for the length of a command */
    bool is_borrowed;           /* the pool belongs to the program (pool.c) */
    spill_mongo_concerns_t concerns;
    mongoc_read_prefs_t *primary; /* for reads that must be current, whatever the URI prefers */
    char *database;
    bool sharded;
    bool retries; /* the driver may send a write twice, and reports the second one's result */
    spill_mongo_hints_t *hints;
    spill_mongo_ahead_t *ahead;
    char *place; /* "HOST/DATABASE", for messages; without user or password */
} spill_mongo_t;

/* Numbers of elements, times and sizes in a document are below it, so their sums do not overflow.
 */
#define SPILL_MONGO_NUMBER_MAX ((int64_t)1 << 58)

/* For SPILL_SCOPED: destroy a document that BCON_NEW has made, or none (NULL). */
static inline void spill_mongo_destroy(bson_t **document)
{
    bson_destroy(*document);
}

/* The store's own collections. */
#define SPILL_MONGO_DEFINITIONS "spillway.definitions"
#define SPILL_MONGO_JOBS "spillway.imports"
/*
 * {_id: "dropped", rev}: the highest rev of a dropped head, or a higher number. {_id: <object id>}:
 * a short-lived marker to find out whether two connections are to one database.
 */
#define SPILL_MONGO_DROP_RECORDS "spillway.marks"

/* ---- answer.c -------------------------------------------------------------------------------- */

/*
 * Fill *error from the driver's error of a command on `collection` (NULL: on the database). `reply`
 * may be NULL. `write`: the command writes, so an unknown outcome is SPILL_UNKNOWN.
 */
spill_code_t spill_mongo_fail(const spill_mongo_t *store, const char *collection, bool write,
                              const bson_error_t *cause, const bson_t *reply, spill_error_t *error);

/* Does the server report a duplicate key? */
bool spill_mongo_is_duplicate(const bson_error_t *cause);

/* ---- selection.c ----------------------------------------------------------------------------- */

/*
 * If the driver has selected no server, add the cause to the error, when a probe finds one: the
 * server speaks TLS or not, or is of another replica set. Waits up to 4 s. Returns `code`.
 */
spill_code_t spill_mongo_name_cause(const mongoc_uri_t *uri, const bson_error_t *cause,
                                    spill_code_t code, spill_error_t *error);

/* ---- connect.c ------------------------------------------------------------------------------- */

/* Set concerns and time-outs that the URI does not set: majority, and shorter waits. */
void spill_mongo_fill_defaults(mongoc_uri_t *uri);

/*
 * Make a store without a pool, and with the settings of `uri`. spill_mongo_check then asks the
 * server whether it is new enough and, with must_exist, whether the database has definitions.
 */
spill_mongo_t *spill_mongo_make_store(const mongoc_uri_t *uri, const char *database,
                                      const spill_store_options_t *options);
spill_code_t spill_mongo_check(spill_mongo_t *store, spill_error_t *error);

/* A driver's cursor. Its documents are checked. */
typedef struct spill_mongo_cursor {
    spill_mongo_t *store;
    const char *collection; /* borrowed; NULL: a cursor of the database */
    mongoc_cursor_t *cursor;
    bool unique; /* no document may come twice */
    uint64_t remembered;
    uint64_t count;
    int repeats;
} spill_mongo_cursor_t;

spill_mongo_cursor_t spill_mongo_cursor(spill_mongo_t *store, const char *collection,
                                        mongoc_cursor_t *cursor, bool unique);
void spill_mongo_cursor_end(spill_mongo_cursor_t *cursor);

/*
 * Return the next document, NULL at the end; borrowed until the next call. SPILL_CORRUPT: the
 * document is malformed, or the cursor is of another namespace or does not advance.
 */
spill_code_t spill_mongo_cursor_next(spill_mongo_cursor_t *cursor, const bson_t **document,
                                     spill_error_t *error);

/*
 * The document of a reply to a `find` that asks for one; it is a view of the reply. *found: there
 * is one. SPILL_CORRUPT: it is malformed, or the reply has no cursor of the collection.
 */
spill_code_t spill_mongo_only_document(const spill_mongo_t *store, const char *collection,
                                       const bson_t *reply, bson_t *document, bool *found,
                                       spill_error_t *error);

/*
 * In an answer sorted by _id, may a document with this _id follow the document whose _id is in
 * `place` (no bytes: no document)? Only types with a simple order are compared. Two _ids of another
 * type must differ.
 */
bool spill_mongo_follows(const uint8_t *place, size_t place_bytes, const bson_iter_t *id);

/* Set the position of a listing to that document: {"": _id}. */
void spill_mongo_set_last(spill_listing_t *listing, const bson_iter_t *id);
spill_code_t spill_mongo_fail_order(const spill_mongo_t *store, const char *collection,
                                    spill_error_t *error);

/* For the driver's callback: check the namespace of the cursor in an answer. */
void spill_mongo_check_answer(const bson_t *reply);

/* ---- command.c ------------------------------------------------------------------------------- */

/*
 * Update the document that the filter finds. `update` has operators, or is a pipeline (an array).
 * If `fields` and `after` are not NULL, `after` is the projection of the updated document; the call
 * initializes it, empty if no document was found. One round trip.
 */
spill_code_t spill_mongo_modify(spill_mongo_t *store, const char *collection, const bson_t *filter,
                                const bson_t *update, const bson_t *fields, bson_t *after,
                                bool *found, spill_error_t *error);

/* The same with a time limit on the server, in milliseconds (0: none). */
spill_code_t spill_mongo_modify_within(spill_mongo_t *store, const char *collection,
                                       const bson_t *filter, const bson_t *update,
                                       uint32_t max_time_ms, const bson_t *fields, bson_t *after,
                                       bool *found, spill_error_t *error);

/*
 * Update the document, or insert it if none has the `_id`. *done is false if a document with the
 * `_id` failed the guard. As for a replacement, the driver does not check names and texts.
 */
spill_code_t spill_mongo_upsert(spill_mongo_t *store, const char *collection, const bson_t *filter,
                                const bson_t *update, bool *done, spill_error_t *error);

/*
 * Update `count` different documents, by one unordered command; with `upserts` insert those whose
 * `_id` is not there. The answer does not show which of them failed the guard.
 */
spill_code_t spill_mongo_update_all(spill_mongo_t *store, const char *collection,
                                    const bson_t *const *filters, const bson_t *const *updates,
                                    size_t count, bool upserts, spill_error_t *error);

/*
 * Replace the document that the filter finds by `document`, whose fields may begin with `$`. Here
 * and in an insert the driver does not check names and texts; the server does.
 */
spill_code_t spill_mongo_replace(spill_mongo_t *store, const char *collection, const bson_t *filter,
                                 const bson_t *document, bool *found, spill_error_t *error);

/*
 * After a failed insertion of `count` documents: was each document either inserted, or refused
 * because its _id exists? Set refused[i] = true for the latter.
 */
bool spill_mongo_read_refusals(const bson_error_t *cause, const bson_t *reply, size_t count,
                               bool *refused);

/*
 * Insert several documents into one collection, in no order. Set refused[i] = true if the _id
 * exists. SPILL_UNKNOWN if the result of a document is unknown.
 */
spill_code_t spill_mongo_insert_all(spill_mongo_t *store, const char *collection,
                                    const bson_t *const *documents, size_t count, bool *refused,
                                    spill_error_t *error);

/* Insert a document. *done is false if the _id exists. */
spill_code_t spill_mongo_insert(spill_mongo_t *store, const char *collection,
                                const bson_t *document, bool *done, spill_error_t *error);

spill_code_t spill_mongo_delete(spill_mongo_t *store, const char *collection, const bson_t *filter,
                                bool *found, spill_error_t *error);
/* Delete each document that matches. */
spill_code_t spill_mongo_delete_each(spill_mongo_t *store, const char *collection,
                                     const bson_t *filter, spill_error_t *error);
/* Delete one document for each filter, in their order. *all: each has found one. One command. */
spill_code_t spill_mongo_delete_all(spill_mongo_t *store, const char *collection,
                                    const bson_t *const *filters, size_t count, bool *all,
                                    spill_error_t *error);

/* Return the first result of a pipeline. The call initializes `document`. */
spill_code_t spill_mongo_first(spill_mongo_t *store, const char *collection, const bson_t *pipeline,
                               bson_t *document, bool *found, spill_error_t *error);

/*
 * Call `visit` for each result of a pipeline, in order, until it returns false. Read from the
 * primary or, with may_be_old, by the URI's read preference.
 */
typedef bool (*spill_mongo_visit_fn)(void *context, const bson_t *document);
spill_code_t spill_mongo_each(spill_mongo_t *store, const char *collection, const bson_t *pipeline,
                              bool may_be_old, spill_mongo_visit_fn visit, void *context,
                              spill_error_t *error);

/* A query: documents that match `filter`, projected. */
typedef struct spill_mongo_query {
    const bson_t *filter;
    const bson_t *order; /* NULL or empty: any */
    const bson_t *projection;
    int64_t limit; /* 0: none */
} spill_mongo_query_t;

/* Call `visit` for each document that a query finds, as spill_mongo_each does. */
spill_code_t spill_mongo_find(spill_mongo_t *store, const char *collection,
                              const spill_mongo_query_t *query, bool may_be_old,
                              spill_mongo_visit_fn visit, void *context, spill_error_t *error);

/* How the server executes a pipeline. */
typedef struct spill_mongo_plan {
    const char *index; /* it uses the index of that name, or fails; NULL: any */
    int64_t batch; /* documents of the first answer, if they fit 16 MB; 0: the server's choice */
} spill_mongo_plan_t;

/* As spill_mongo_each, by that plan. */
spill_code_t spill_mongo_each_by(spill_mongo_t *store, const char *collection,
                                 const bson_t *pipeline, const spill_mongo_plan_t *plan,
                                 bool may_be_old, spill_mongo_visit_fn visit, void *context,
                                 spill_error_t *error);

/* Run a command on the database and ignore its reply. */
spill_code_t spill_mongo_command(spill_mongo_t *store, const char *collection,
                                 const bson_t *command, spill_error_t *error);

/* Run a command that changes nothing on the primary. *answer is initialized in every case. */
spill_code_t spill_mongo_ask(spill_mongo_t *store, const bson_t *command, bson_t *answer,
                             spill_error_t *error);

/* ---- the requests ---------------------------------------------------------------------------- */

spill_code_t spill_mongo_read(spill_mongo_t *store, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error);

/* All other kinds but ADOPT, ADOPT_SPLIT and UNMANAGE. (guarded.c) */
spill_code_t spill_mongo_guarded(spill_mongo_t *store, const spill_request_t *request,
                                 spill_response_t *response, spill_error_t *error);

/* The operations of spill_store_ops_t of these names. (drop_notes.c) */
spill_code_t spill_mongo_note_drop(spill_store_t *base, const spill_definition_t *definition,
                                   const spill_value_t *owner, const spill_drop_note_t *note,
                                   spill_error_t *error);
spill_code_t spill_mongo_find_drop(spill_store_t *base, const spill_definition_t *definition,
                                   const spill_value_t *owner, spill_drop_note_t *note,
                                   spill_error_t *error);
spill_code_t spill_mongo_note_drop_all(spill_store_t *base, const spill_definition_t *definition,
                                       const spill_drop_all_t *drop, spill_drop_stage_t stage,
                                       spill_error_t *error);
spill_code_t spill_mongo_forget_drop(spill_store_t *base, const spill_definition_t *definition,
                                     const spill_value_t *owner, const spill_drop_note_t *note,
                                     spill_error_t *error);
spill_code_t spill_mongo_forget_drops(spill_store_t *base, const spill_definition_t *definition,
                                      spill_error_t *error);
spill_code_t spill_mongo_old_drops(spill_store_t *base, const spill_definition_t *definition,
                                   spill_listing_t *owners, spill_error_t *error);

spill_code_t spill_mongo_renumber(spill_mongo_t *store, const spill_request_t *request,
                                  spill_response_t *response, spill_error_t *error);
/* ADOPT and ADOPT_SPLIT; UNMANAGE. */
spill_code_t spill_mongo_adopt(spill_mongo_t *store, const spill_request_t *request,
                               spill_response_t *response, spill_error_t *error);
spill_code_t spill_mongo_unmanage(spill_mongo_t *store, const spill_request_t *request,
                                  spill_response_t *response, spill_error_t *error);

/* spill_store_ops.call_all of PUT_PAGE, of EMPTY_PAGE, and of READ. */
spill_code_t spill_mongo_put_pages(spill_mongo_t *store, const spill_request_t *requests,
                                   size_t count, spill_response_t *responses, spill_error_t *error);
spill_code_t spill_mongo_empty_pages(spill_mongo_t *store, const spill_request_t *requests,
                                     size_t count, spill_response_t *responses,
                                     spill_error_t *error);
spill_code_t spill_mongo_read_pages(spill_mongo_t *store, const spill_request_t *requests,
                                    size_t count, spill_response_t *responses,
                                    spill_error_t *error);

/* About 32 KB. Any thread may use it. */
spill_mongo_hints_t *spill_mongo_hints_new(void);
void spill_mongo_hints_free(spill_mongo_hints_t *hints); /* NULL is allowed */

/* ---- catalog.c ------------------------------------------------------------------------------- */

spill_code_t spill_mongo_bind(spill_store_t *store, const spill_definition_t *definition,
                              spill_binding_t *binding, spill_error_t *error);
spill_code_t spill_mongo_open_entries(spill_store_t *store, const char *name, const char *import,
                                      spill_entries_t *entries, spill_error_t *error);
/* Two entries of imports in one command; NULL for one that does not exist. bson_destroy both. */
spill_code_t spill_mongo_imports_get(spill_store_t *store, const char *const names[2],
                                     bson_t *documents[2], spill_error_t *error);
spill_code_t spill_mongo_catalog_get(spill_store_t *store, spill_catalog_t kind, const char *name,
                                     bson_t **document, spill_error_t *error);
spill_code_t spill_mongo_catalog_put(spill_store_t *store, spill_catalog_t kind, const char *name,
                                     const bson_t *expected, const bson_t *document, bool *done,
                                     spill_error_t *error);
spill_code_t spill_mongo_make_indexes(spill_store_t *store, const spill_definition_t *definition,
                                      spill_error_t *error);
spill_code_t spill_mongo_catalog_delete(spill_store_t *store, spill_catalog_t kind,
                                        const char *name, spill_error_t *error);
spill_code_t spill_mongo_catalog_names(spill_store_t *store, spill_catalog_t kind,
                                       spill_listing_t *names, spill_error_t *error);
spill_code_t spill_mongo_now(spill_store_t *store, int64_t *now_us, spill_error_t *error);
spill_code_t spill_mongo_definitions_beside(spill_store_t *store,
                                            const spill_definition_t *definition,
                                            spill_listing_t *names, spill_error_t *error);

/* Are both connections to the same database? */
spill_code_t spill_mongo_same(spill_store_t *store, spill_store_t *other, bool *same,
                              spill_error_t *error);

/* ---- lists: owners.c, obstacle.c, lists.c ---------------------------------------------------- */

/*
 * Append to a condition on _id: the types in the class of `type` or, with `behind`, all types that
 * servers sort behind that class. False if there are none: the type cannot be an _id, or is last.
 */
bool spill_mongo_append_class(bson_t *condition, int type, bool behind);

/* Functions of spill_store_ops_t.list. Cost of orphans: the server reads all pages behind `after`.
 */
spill_list_fn spill_mongo_owners;
spill_list_fn spill_mongo_oversized;
spill_list_fn spill_mongo_orphans;
spill_list_fn spill_mongo_windows;

/* spill_store_ops_t.windows_of, by one command. (lists.c) */
spill_code_t spill_mongo_windows_of(spill_store_t *store, const spill_definition_t *definition,
                                    const spill_listing_t *owners, size_t limit,
                                    spill_listing_t *windows, bool *all, spill_error_t *error);

/* Append `near` to a projection: measures of a document near the size limit. */
void spill_mongo_project_near(const spill_definition_t *definition, bson_t *projection);
/* `document` is the result of that projection for `found`. Pure function. */
spill_obstacle_t spill_mongo_obstacle(const spill_definition_t *definition,
                                      const spill_list_query_t *query,
                                      const spill_oversized_t *found, const bson_t *document);

/* The bytes of bookkeeping that ADOPT (`pages` == 0) or ADOPT_SPLIT adds under the array's name.
 * (unmanaged.c) */
int64_t spill_mongo_bookkeeping_bytes(const spill_request_t *request, int64_t pages);

#endif
