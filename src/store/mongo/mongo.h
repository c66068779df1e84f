/*
 * The MongoDB store: heads and pages are documents of a database on any server that speaks the
 * MongoDB protocol (docs/reference/mongodb.md). A step of request.h is one update command whose
 * filter is the step's guard. If a step needs to know the document, the store reads it first, and
 * the filter checks that it has not changed.
 *
 * The files, from the wire up:
 *   connect.c           the URI, the pool of clients, the abilities of the server
 *   command.c           one command each: find and modify, update, insert, delete, aggregate
 *   cursor.c            checked results of cursors
 *   failure.c           the meaning of an error of the driver or the server
 *   document.c          the paths of a document's fields, and its state
 *   place.c             the places of elements in an array, by its order
 *   read.c              READ
 *   by_id.c             READ of an element by its id
 *   ops.c               the operations in a document, and the guard against a second try
 *   size_guard.c        the guard "there is room": exact, and the quick one of most appends
 *   hint.c              the lengths of arrays after their last append
 *   update.c            the operators of an append, of a new head, of fields
 *   bucket.c            layout bucket: appends, statistics and windows
 *   computed.c          appends whose effect is computed here; the filter excludes other changes
 *   append.c            APPEND, UPDATE_FIELDS, and making a head
 *   append_top_n.c      APPEND to a top-N capped head
 *   rewrite.c           the update from one state of a document to another
 *   mongo_referenced.c  documents of one element, and the head's summary (reference, subset)
 *   top.c               the highest-ranked elements in the summary (subset)
 *   rank.c              the search for the elements that rank next
 *   pages.c             put and read several pages at once
 *   change.c            all other steps: read the state, call transition.c, compare and set
 *   unmanaged.c         unmanaged arrays: ADOPT, ADOPT_SPLIT, UNMANAGE
 *   catalog.c           definitions, imports, indexes
 *   owners.c            list owners, and heads that need a reshape
 *   obstacle.c          can the array of a document of nearly the size limit be adopted?
 *   orphans.c           list pages without a head
 *   raw_reader.c        read any collection (store/raw_reader.h)
 *   raw_admin.c         write, rename and drop any collection (store/raw_admin.h)
 *   unbounded.c         a document with an unbounded array (store/unbounded.h)
 *   same_elements.c     is another connection to the same database?
 */
#ifndef SPILL_STORE_MONGO_MONGO_H
#define SPILL_STORE_MONGO_MONGO_H

#include "bson/number.h"
#include "definition/stored_element.h"
#include "store/store.h"
#include "store/transition.h"

#include <mongoc/mongoc.h>

typedef struct spill_mongo_hints spill_mongo_hints_t;

typedef struct spill_mongo {
    spill_store_t base;
    mongoc_client_pool_t *pool;   /* serves threads: one client for the length of a command */
    mongoc_read_prefs_t *primary; /* for reads that must be current, whatever the URI prefers */
    char *database;
    bool sharded;
    bool retries; /* the driver may send a write twice, and reports the second one's result */
    spill_mongo_hints_t *hints;
    char *place; /* "HOST/DATABASE", for messages; without user or password */
} spill_mongo_t;

/* The store's own collections. */
#define SPILL_MONGO_DEFINITIONS "spillway.definitions"
#define SPILL_MONGO_IMPORTS "spillway.imports"
/*
 * {_id: "dropped", rev}: the highest rev of a dropped head, or a higher number. {_id: <object id>}:
 * a short-lived marker to find out whether two connections are to one database.
 */
#define SPILL_MONGO_CHECKPOINTS "spillway.marks"

/* ---- failure.c ------------------------------------------------------------------------------- */

/*
 * Fill *error from the driver's error of a command on `collection` (NULL: on the database). `reply`
 * may be NULL. `write`: the command writes, so an unknown outcome is SPILL_UNKNOWN.
 */
spill_code_t spill_mongo_fail(const spill_mongo_t *store, const char *collection, bool write,
                              const bson_error_t *cause, const bson_t *reply, spill_error_t *error);

/* Does the server report a duplicate key? */
bool spill_mongo_is_duplicate(const bson_error_t *cause);

/* ---- connect.c ------------------------------------------------------------------------------- */

/* Set concerns and time-outs that the URI does not set: majority, and shorter waits. */
void spill_mongo_fill_defaults(mongoc_uri_t *uri);

/* ---- cursor.c -------------------------------------------------------------------------------- */

/* A driver's cursor whose documents are checked. */
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
 * In an answer sorted by _id, may a document with this _id follow the document whose _id is in
 * `place` (no bytes: no document)? Only types with a simple order are compared. Two _ids of another
 * type must differ.
 */
bool spill_mongo_follows(const uint8_t *place, size_t place_bytes, const bson_iter_t *id);
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

/* The same, using the index of that name; an error if it does not exist. */
spill_code_t spill_mongo_each_by(spill_mongo_t *store, const char *collection,
                                 const bson_t *pipeline, const char *index, bool may_be_old,
                                 spill_mongo_visit_fn visit, void *context, spill_error_t *error);

/* Run a command on the database and ignore its reply. */
spill_code_t spill_mongo_command(spill_mongo_t *store, const char *collection,
                                 const bson_t *command, spill_error_t *error);

/* ---- obstacle.c ------------------------------------------------------------------------------ */

/* Append `near` to a projection: measures of a document near the size limit. */
void spill_mongo_project_near(const spill_definition_t *definition, bson_t *projection);
/* `document` is the result of that projection for `found`. Pure function. */
spill_obstacle_t spill_mongo_obstacle(const spill_definition_t *definition,
                                      const spill_oversized_query_t *query,
                                      const spill_oversized_t *found, const bson_t *document);

/* ---- document.c ------------------------------------------------------------------------------ */

#define SPILL_MONGO_PATH_SIZE (SPILL_NAME_SIZE + 32)

/* Numbers of elements, times and sizes in a document are below it, so their sums do not overflow.
 */
#define SPILL_MONGO_NUMBER_MAX ((int64_t)1 << 58)

/* The document that a request selects. Borrows from the request; owns nothing. */
typedef struct spill_mongo_document {
    const spill_request_t *request;
    bool head;
    bool referenced; /* layouts reference, subset: a page is one element and has no array */
    bool sharded;
    const char *collection;
    const char *array; /* field of the elements; referenced elements: the head's journal */
    const char *count; /* field that counts them, or "" */
    char spill[SPILL_NAME_SIZE + 16];    /* path of its bookkeeping: "spill.activities" */
    char journal[SPILL_MONGO_PATH_SIZE]; /* "spill.reviewSummary.journal" */
} spill_mongo_document_t;

void spill_mongo_document_init(spill_mongo_document_t *document, const spill_mongo_t *store,
                               const spill_request_t *request);

/*
 * Append to a filter: pages of the request's owner, by their owner field. In layouts reference and
 * subset the document of a removed element has no such field, so the filter excludes it.
 */
void spill_mongo_append_page_owner(const spill_request_t *request, bson_t *filter);

/*
 * Append to a condition on `_id` a comparison with an id that lies above, or below, the ids of all
 * pages of an owner (layout bucket: of a window).
 */
void spill_mongo_append_page_bound(const spill_definition_t *definition, const spill_value_t *owner,
                                   const char *operator, bool above, bson_t *condition);

/* Append to a condition on `_id`: all pages of an owner, whatever fields they have. */
void spill_mongo_append_page_ids(const spill_definition_t *definition, const spill_value_t *owner,
                                 bson_t *condition);

/* Append to a filter: in a sharded cluster, the owner of a page, so that one shard runs the
 * command.
 */
void spill_mongo_append_shard(const spill_mongo_document_t *document, bson_t *filter);

/* Append to a filter: pages with numbers below `pages`. */
void spill_mongo_append_pages(const spill_definition_t *definition, int64_t pages, bson_t *filter);

/* Make a filter {_id: {$eq: ...}}; for a page in a sharded cluster, add its owner. */
void spill_mongo_select(const spill_mongo_document_t *document, bson_t *filter);
/* Make a filter of several pages of the owner. */
void spill_mongo_select_pages(const spill_mongo_document_t *document, const int64_t *pages,
                              size_t count, bson_t *filter);

/* "spill.activities.rev" for "rev". `path` is returned. */
const char *spill_mongo_path(const spill_mongo_document_t *document, const char *name,
                             char path[SPILL_MONGO_PATH_SIZE]);
/* The same as an expression: "$spill.activities.rev". */
const char *spill_mongo_ref(const spill_mongo_document_t *document, const char *name,
                            char path[SPILL_MONGO_PATH_SIZE]);

/* The name of the field with the deleted numbers: `gone`, or `gaps`. */
const char *spill_mongo_deleted_name(const spill_state_t *state);
/* Append that field to a $set, if there are deleted numbers. */
void spill_mongo_set_deleted(const spill_mongo_document_t *document, const spill_state_t *state,
                             bson_t *set);

/* The fields of a head that belong to the array, without `spill`. Returns their number. */
enum { SPILL_MONGO_OWN_FIELDS = 5 };
size_t spill_mongo_own_fields(const spill_definition_t *definition,
                              const char *names[SPILL_MONGO_OWN_FIELDS]);
/* The size of {a: []}: an array is measured as a field of a document. */
enum { SPILL_MONGO_EMPTY_ARRAY = 5 + 3 + 5 };
/* Append as `key` an expression: the size of these fields and `spill`, with or without the array.
 */
void spill_mongo_append_own_size(const spill_definition_t *definition, bool array, const char *key,
                                 bson_t *to);
/* Append to an expression of a document: {field: "$field"}. */
void spill_mongo_append_reference(bson_t *document, const char *field);
/* Append as `key` an expression: the length of the array `ref` ("$field"), 0 if it is missing. */
void spill_mongo_append_length(const char *ref, const char *key, bson_t *to);

/*
 * Append to a projection the fields that spill_mongo_state reads (`state`, `live` and so on). The
 * server computes them from the document.
 */
void spill_mongo_project_state(const spill_mongo_document_t *document, bool ops,
                               bson_t *projection);

/* The same for the answer to an append, but cheaper: only incarnation, first, op_count, deleted and
 * live. */
void spill_mongo_project_end(const spill_mongo_document_t *document, bson_t *projection);

/*
 * Is the answer the whole document instead of such a projection? A replica set answers so if the
 * driver sends a findAndModify again after a lost connection and the first one was carried out.
 */
bool spill_mongo_is_unprojected(const bson_t *answer);

/* Read them into `state` (zeroed or released) and `ops` (may be NULL). SPILL_CORRUPT: a field is
 * wrong. */
spill_code_t spill_mongo_state(const spill_mongo_document_t *document, const bson_t *projected,
                               spill_state_t *state, spill_ops_t *ops, spill_error_t *error);

/* ---- ops.c ----------------------------------------------------------------------------------- */

/* Append as `field` the array of {id, count, after} of the request's operations, newest first. */
void spill_mongo_append_ops(const spill_request_t *request, const char *field, bson_t *to);

/*
 * Append to a filter: none of the request's operation ids (at least one) is in the window, and the
 * window would have each of them if it had been applied.
 */
void spill_mongo_append_op_guard(const spill_mongo_document_t *document, bson_t *filter);

/* List the request's operations as entries of a document without elements, oldest first. `ops` is
 * empty. */
void spill_mongo_list_ops(const spill_request_t *request, spill_ops_t *ops);

/* ---- place.c --------------------------------------------------------------------------------- */

/* The place of live element `seq` in the array of a document in `state`. */
int64_t spill_mongo_place_of(const spill_mongo_document_t *document, const spill_state_t *state,
                             int64_t seq);

/* The effect of an append to a capped head whose length is known. */
typedef struct spill_mongo_roll {
    int64_t skipped; /* so many of the request's first elements are not stored */
    int64_t moved;   /* increase of `first` and `watermark` */
    int64_t live;    /* elements after the append */
    bool counted;    /* the caller sets the count */
    bool clears;     /* the deleted numbers are removed */
    /* Top-N: the whole array after the append, ascending, and the state. NULL: keep the newest. */
    const spill_run_t *top_n;
    const spill_state_t *after;
    bool same; /* top-N: the array does not change */
} spill_mongo_roll_t;

/* Set the array to the elements of an ascending run, in the definition's order. */
void spill_mongo_set_array(const spill_mongo_document_t *document, const spill_run_t *run,
                           bson_t *set);

/*
 * Append to the operands of $push: the request's elements, at the growing end of the array. With a
 * roll (may be NULL) elements at the other end are dropped.
 */
void spill_mongo_push(const spill_mongo_document_t *document, const spill_mongo_roll_t *roll,
                      bson_t *push);

/* An expression, to be destroyed: the number of elements, 0 if the field is not an array. */
bson_t *spill_mongo_live(const spill_mongo_document_t *document);

/*
 * An expression, to be destroyed: the elements of ranks rank ... rank + count - 1 of the array of
 * `live` elements, in the order of the array. All arguments are expressions. It refers to the array
 * directly, because some servers copy the result of an expression around it.
 */
bson_t *spill_mongo_slice(const spill_mongo_document_t *document, const bson_t *live,
                          const bson_t *rank, const bson_t *count);

/* Append to the operands of $set: the array without `count` elements from that rank on. */
void spill_mongo_append_without(const spill_mongo_document_t *document, int64_t rank, int64_t count,
                                bson_t *set);

/* ---- hint.c ---------------------------------------------------------------------------------- */

/* The array's length after the last append; -1: unknown. */
typedef struct spill_mongo_hint {
    int64_t length;
} spill_mongo_hint_t;

/* About 32 KB. Any thread may use it. */
spill_mongo_hints_t *spill_mongo_hints_new(void);
void spill_mongo_hints_free(spill_mongo_hints_t *hints); /* NULL is allowed */

/* Get a hint, if there is one that is probably right. */
bool spill_mongo_hint(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                      spill_mongo_hint_t *hint);
/* Learn the state after an append. With deleted numbers no append is quick, so there is no hint. */
void spill_mongo_hint_learn(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                            const spill_state_t *state);
/* `by` elements were cut off. */
void spill_mongo_hint_shorten(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                              int64_t by);
/* The hint was wrong, so other clients change the array: give no hint for some time. */
void spill_mongo_hint_doubt(spill_mongo_hints_t *hints, const spill_mongo_document_t *document);

/* ---- size_guard.c ---------------------------------------------------------------------------- */

/* Append to a filter: the document has room for the request's elements and operations, exactly. */
void spill_mongo_append_room(const spill_mongo_document_t *document, bson_t *filter);

/*
 * A quick append has a cheap guard. The document's bookkeeping has
 *
 *   open: {b<bytes_max>: N}        of a page {b<bytes_max>e<incarnation>: N}
 *
 * while the document is managed, is not sealed, and has no deleted numbers. It accepts quick
 * appends with the bound bytes_max while its size is at most N. So one comparison of its size
 * checks all of this, and is false if the field is missing. If it is false, and near the bound, an
 * append needs the exact guard. An append with the exact guard opens the document.
 */
/* Is the request small enough, and the document's bound large enough, for a quick append? */
bool spill_mongo_is_quick(const spill_mongo_document_t *document);
/*
 * Append to a filter: the document is open, and has room for the request's elements. With a hint
 * (may be NULL), also that the array has this length; the caller checks that it leaves room.
 */
void spill_mongo_append_quick_guard(const spill_mongo_document_t *document,
                                    const spill_mongo_hint_t *hint, bson_t *filter);
/* Append `open` as `field`, by the request's limits; nothing if the bounds are too small. */
void spill_mongo_append_open(const spill_mongo_document_t *document, int64_t incarnation,
                             const char *field, bson_t *to);

/* ---- update.c -------------------------------------------------------------------------------- */

/* All these functions initialize `update` and add the caller's operators (request->update). */

/* `open` and `push` (NULL: none): what else the append sets and pushes; may be empty. */
void spill_mongo_update_of_append(const spill_mongo_document_t *document, const bson_t *open,
                                  const bson_t *push, const spill_mongo_roll_t *roll,
                                  bson_t *update);
/* The update of an upsert that makes a head with the request's elements, open for quick appends. */
void spill_mongo_update_of_new_head(const spill_mongo_document_t *document, int64_t incarnation,
                                    const spill_mongo_roll_t *roll, bson_t *update);
/* Only the caller's operators. */
void spill_mongo_update_of_fields(const spill_mongo_document_t *document, bson_t *update);

/* ---- computed.c ------------------------------------------------------------------------------ */

/*
 * Append to a filter: the document still has the incarnation, rev and number of elements that were
 * read (in a capped head also `first`). Each change of elements changes one of them.
 */
void spill_mongo_append_as_read(const spill_mongo_document_t *document, const spill_state_t *state,
                                bson_t *filter);
/*
 * Append to a filter: the document still has the length and the deleted numbers that were read.
 * With `first` and rev this excludes each change of a top-N head, because each append uses numbers.
 */
void spill_mongo_append_as_numbered(const spill_mongo_document_t *document,
                                    const spill_state_t *state, bson_t *filter);

/* Append {name: {...}} as {path: {...}} to `set`; `literal` (for a stage): {path: {$literal: ...}}.
 */
void spill_mongo_set_document(const char *path, const bson_t *holder, bool literal, bson_t *set);

/*
 * Carry out an APPEND: write `after`, which transition.c computed from the read state `before`, and
 * its statistics or summary. If the document has changed since, *done = false.
 */
spill_code_t spill_mongo_append_computed(spill_mongo_t *store,
                                         const spill_mongo_document_t *document,
                                         const spill_response_t *before, spill_state_t *after,
                                         bool *done, spill_error_t *error);

/* ---- helpers of several files, and mongo_referenced.c ---------------------------------------- */

/* APPEND to a top-N capped head. (append_top_n.c) */
spill_code_t spill_mongo_append_top_n(spill_mongo_t *store, const spill_mongo_document_t *document,
                                      spill_response_t *response, spill_error_t *error);

/* The incarnation of a new head: the request's, or a later one, above those of all dropped heads.
 * (append.c) */
spill_code_t spill_mongo_date(spill_mongo_t *store, const spill_request_t *request,
                              int64_t *incarnation, spill_error_t *error);

/* Call it before a head with that rev is dropped: later incarnations will be above it. (change.c)
 */
spill_code_t spill_mongo_raise_dropped_rev(spill_mongo_t *store, int64_t rev, spill_error_t *error);

/* Append a stage to a pipeline: remove `spill` if no array has a field in it. (change.c) */
void spill_mongo_append_without_spill(const char *key, bson_t *pipeline);

/* Make the head that a READ (in `response`) did not find. (append.c) */
spill_code_t spill_mongo_make_head(spill_mongo_t *store, const spill_mongo_document_t *document,
                                   const spill_mongo_roll_t *roll, spill_response_t *response,
                                   spill_error_t *error);

/*
 * APPEND to a head with a summary. No update operator can compute a summary. So it is computed here
 * from a READ, and written if the head has not changed since.
 */
spill_code_t spill_mongo_append_referenced(spill_mongo_t *store,
                                           const spill_mongo_document_t *document,
                                           spill_response_t *response, spill_error_t *error);

/* Does the summary differ, because the sum or the count has changed? */
bool spill_mongo_summary_changes(const spill_mongo_document_t *document,
                                 const spill_state_t *before, const spill_state_t *after);

/*
 * Append summary, sum and top of a head in state `after` to the operands of a $set (`literal`: of a
 * stage). `top`: the elements that after->top shows.
 */
void spill_mongo_set_summary(const spill_mongo_document_t *document, const spill_state_t *after,
                             const spill_run_t *top, bool literal, bson_t *set);

/* Append only the sum. */
void spill_mongo_set_sum(const spill_mongo_document_t *document, const spill_state_t *after,
                         bool literal, bson_t *set);

/* Append to a projection of a page what the next function reads. */
void spill_mongo_project_referenced(bson_t *projection);
/* Read the element of a page, if it has one: live and live_bytes of the state; if wanted, the run.
 */
void spill_mongo_decode_referenced(const spill_mongo_document_t *document, const bson_t *projected,
                                   spill_state_t *state, spill_run_t *run);

/* Get number and element (to be destroyed) of a document of one element; false if it has none. */
bool spill_mongo_element_of(const spill_definition_t *definition, const bson_t *document,
                            int64_t *seq, bson_t *element);

/* READ of SPILL_ELEMENTS. */
spill_code_t spill_mongo_read_elements(spill_mongo_t *store, const spill_request_t *request,
                                       spill_response_t *response, spill_error_t *error);

/* EMPTY_PAGE, DROP_PAGE: one command. */
spill_code_t spill_mongo_delete_element(spill_mongo_t *store,
                                        const spill_mongo_document_t *document, bool *done,
                                        spill_error_t *error);

/* ---- top.c ----------------------------------------------------------------------------------- */

/* Append to a projection what the next two functions read: the top of a head; with want_top, its
 * run. */
void spill_mongo_project_top(const spill_mongo_document_t *document, bson_t *projection);
spill_code_t spill_mongo_decode_top(const spill_mongo_document_t *document, const bson_t *projected,
                                    spill_state_t *state, spill_error_t *error);
void spill_mongo_decode_top_run(const bson_t *projected, const spill_state_t *state,
                                spill_run_t *run);

/*
 * Collect the elements that a top shows in `values`: from the request (an append's have numbers
 * from `from` on), from its refill, and from the head that was read. If one is missing, show fewer.
 */
void spill_mongo_gather_top(const spill_request_t *request, int64_t from,
                            const spill_response_t *read, spill_top_t *top, spill_run_t *values);

/* Append the entries of the top to the operands of a $set. */
void spill_mongo_set_top(const spill_mongo_document_t *document, const spill_top_t *top,
                         bool literal, bson_t *set);

/*
 * Append to the operands of $set and $push what an append changes in the summary of a head that was
 * read and will be in state `after`.
 */
void spill_mongo_append_to_summary(const spill_mongo_document_t *document,
                                   const spill_response_t *read, spill_state_t *after, bson_t *set,
                                   bson_t *push);

/* Find element `seq` in a run. */
bool spill_mongo_find_in(const spill_run_t *run, int64_t seq, spill_value_t *value);

/* ---- rank.c ---------------------------------------------------------------------------------- */

/* READ of SPILL_ELEMENTS with SPILL_WANT_TOP_N. */
spill_code_t spill_mongo_read_top_n(spill_mongo_t *store, const spill_request_t *request,
                                    spill_response_t *response, spill_error_t *error);

/* ---- bucket.c -------------------------------------------------------------------------------- */

/* Is it a document of layout bucket? */
bool spill_mongo_is_bucket(const spill_mongo_document_t *document);

/*
 * Layout bucket: APPEND to a document that a READ found, in `response`. Statistics depend on the
 * elements, so the write requires that the document has not changed since.
 */
spill_code_t spill_mongo_append_to_bucket(spill_mongo_t *store,
                                          const spill_mongo_document_t *document,
                                          spill_response_t *response, spill_error_t *error);

/* Insert the head of a window with the request's elements and that incarnation. */
spill_code_t spill_mongo_insert_bucket(spill_mongo_t *store, const spill_mongo_document_t *document,
                                       int64_t incarnation, bool *done, spill_error_t *error);

/*
 * Append the statistics of a document in state `after`, and their `tally`, to the operands of a
 * $set; as expressions of a pipeline, if `literal`.
 */
void spill_mongo_set_statistics(const spill_mongo_document_t *document, const spill_state_t *after,
                                bool literal, bson_t *set);

/* Convert fields with an _id of {owner, window, part} to the form of other stores. */
void spill_mongo_bucket_fields(const spill_mongo_document_t *document, bson_t **fields);

spill_code_t spill_mongo_windows(spill_store_t *store, const spill_definition_t *definition,
                                 const spill_binding_t *binding, const spill_window_query_t *query,
                                 bson_t *texts, spill_error_t *error);

/* ---- pages.c --------------------------------------------------------------------------------- */

/* spill_store_ops.call_all of PUT_PAGE and of READ. */
spill_code_t spill_mongo_put_pages(spill_mongo_t *store, const spill_request_t *requests,
                                   size_t count, spill_response_t *responses, spill_error_t *error);
spill_code_t spill_mongo_read_pages(spill_mongo_t *store, const spill_request_t *requests,
                                    size_t count, spill_response_t *responses,
                                    spill_error_t *error);

/* ---- unmanaged.c ----------------------------------------------------------------------------- */

/* The bytes of bookkeeping that ADOPT (`pages` == 0) or ADOPT_SPLIT adds under the array's name. */
int64_t spill_mongo_bookkeeping_bytes(const spill_request_t *request, int64_t pages);

/* ADOPT and ADOPT_SPLIT; UNMANAGE. */
spill_code_t spill_mongo_adopt(spill_mongo_t *store, const spill_request_t *request,
                               spill_response_t *response, spill_error_t *error);
spill_code_t spill_mongo_unmanage(spill_mongo_t *store, const spill_request_t *request,
                                  spill_response_t *response, spill_error_t *error);

/*
 * CUT with a run: append to a filter that the head is still as in `before`, and that the slots to
 * cut hold the run's elements. Two numbers of one value and size are equal, whatever their type.
 * `assumed`: the head was not read, and has no deleted numbers.
 */
void spill_mongo_append_cut_guard(const spill_mongo_document_t *document,
                                  const spill_state_t *before, bool assumed, bson_t *filter);

/* ---- rewrite.c ------------------------------------------------------------------------------- */

/*
 * The pipeline that turns a document in state `before`, with any later appends, into state `after`:
 * bookkeeping, elements that `effect` removes, and the application's count fields. `top`: the
 * elements that after->top shows, of a subset. Initializes `pipeline`. False: the states are equal,
 * so there is nothing to write.
 */
bool spill_mongo_rewrite(const spill_mongo_document_t *document, const spill_state_t *before,
                         const spill_state_t *after, const spill_effect_t *effect,
                         const spill_run_t *top, bson_t *pipeline);

/* ---- read.c ---------------------------------------------------------------------------------- */

/* Append the projection of a READ of one document. */
void spill_mongo_project_read(const spill_mongo_document_t *document, bson_t *projection);
/* Read its answer: as spill_mongo_state, and if wanted, the elements into `run`. */
spill_code_t spill_mongo_decode_reply(const spill_mongo_document_t *document,
                                      const bson_t *projected, spill_state_t *state,
                                      spill_run_t *run, spill_ops_t *ops, spill_error_t *error);

/* An expression of the document: the number of live elements with numbers below `seq`. */
bson_t *spill_mongo_live_below(const spill_mongo_document_t *document, int64_t seq,
                               const bson_t *live);

/* ---- by_id.c --------------------------------------------------------------------------------- */

/* The path of the ids of a page's elements, for a filter and an index. */
#define SPILL_MONGO_ID_PATH_SIZE SPILL_STORED_PATH_SIZE
void spill_mongo_id_path(const spill_definition_t *definition, char path[SPILL_MONGO_ID_PATH_SIZE]);

/* SPILL_PAGE_WITH_ID: the stages that find pages with the id anywhere, the oldest first. */
void spill_mongo_match_id(const spill_mongo_document_t *document, bson_t *stages);

/* SPILL_WANT_ID. Project `from`, the rank of the first such element from seq on, or -1; and `run`,
 * that element or none. */
void spill_mongo_project_element(const spill_mongo_document_t *document, bson_t *projection);

/* ---- the steps ------------------------------------------------------------------------------- */

spill_code_t spill_mongo_read(spill_mongo_t *store, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error);
spill_code_t spill_mongo_append(spill_mongo_t *store, const spill_request_t *request,
                                spill_response_t *response, spill_error_t *error);
spill_code_t spill_mongo_update_fields(spill_mongo_t *store, const spill_request_t *request,
                                       spill_response_t *response, spill_error_t *error);
spill_code_t spill_mongo_change(spill_mongo_t *store, const spill_request_t *request,
                                spill_response_t *response, spill_error_t *error);

/* ---- catalog.c ------------------------------------------------------------------------------- */

spill_code_t spill_mongo_bind(spill_store_t *store, const spill_definition_t *definition,
                              spill_binding_t *binding, spill_error_t *error);
spill_code_t spill_mongo_catalog_get(spill_store_t *store, spill_catalog_t kind, const char *name,
                                     bson_t **document, spill_error_t *error);
spill_code_t spill_mongo_catalog_put(spill_store_t *store, spill_catalog_t kind, const char *name,
                                     const bson_t *expected, const bson_t *document, bool *done,
                                     spill_error_t *error);
spill_code_t spill_mongo_catalog_delete(spill_store_t *store, spill_catalog_t kind,
                                        const char *name, spill_error_t *error);
spill_code_t spill_mongo_catalog_names(spill_store_t *store, spill_catalog_t kind, bson_t *names,
                                       spill_error_t *error);

/* ---- owners.c -------------------------------------------------------------------------------- */

/*
 * Append to a condition on _id: the types in the class of `type` or, with `behind`, all types that
 * servers sort behind that class. False if there are none: the type cannot be an _id, or is last.
 */
bool spill_mongo_append_class(bson_t *condition, int type, bool behind);

spill_code_t spill_mongo_owners(spill_store_t *store, const spill_definition_t *definition,
                                const spill_binding_t *binding, const uint8_t *after,
                                size_t after_bytes, size_t limit, bson_t *owners,
                                spill_buffer_t *last, spill_error_t *error);
spill_code_t spill_mongo_oversized(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_binding_t *binding,
                                   const spill_oversized_query_t *query, bson_t *found,
                                   spill_buffer_t *last, spill_error_t *error);

/* ---- orphans.c ------------------------------------------------------------------------------ */

/* Cost: one aggregation, in which the server reads all pages from the position on. */
spill_code_t spill_mongo_orphans(spill_store_t *store, const spill_definition_t *definition,
                                 const spill_binding_t *binding, const spill_orphan_query_t *query,
                                 bson_t *found, spill_buffer_t *last, spill_error_t *error);

/* ---- same_elements.c ------------------------------------------------------------------------- */

spill_code_t spill_mongo_same(spill_store_t *store, spill_store_t *other, bool *same,
                              spill_error_t *error);

#endif
