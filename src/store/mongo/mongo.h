/*
 * The MongoDB store: heads and pages are documents of a database on any server that speaks the
 * MongoDB protocol, as docs/reference/mongodb.md shows them. A step of request.h is one update
 * command, whose filter is the step's guard; what a step has to know beforehand is read first, and
 * guarded by.
 *
 * The files, from the wire up:
 *   connect.c      the URI, the pool of clients, what the server can do
 *   command.c      one command each: find and modify, update, insert, delete, aggregate
 *   cursor.c       what cursors return, checked
 *   failure.c      what an error of the driver or server means
 *   document.c     where things stand in a document, and a document's state
 *   place.c        where elements stand in an array, by its order
 *   read.c         READ
 *   by_id.c        ... of an element by its id
 *   ops.c          the operations that documents list, and the guard against a second try
 *   size_guard.c         the guard "there is room": exact, and the quick one of most appends
 *   hint.c         how long arrays were after their last append
 *   update.c       the operators of an append, of a new head, of fields
 *   bucket.c       documents of layout bucket: their appends, statistics and windows
 *   computed.c     appends whose effect is computed here, under the guard that nothing came between
 *   append.c       APPEND, UPDATE_FIELDS, and making a head
 *   rewrite.c      the update from one state of a document to another
 *   mongo_referenced.c        documents of one element, and the head's summary (layouts reference,
 * subset) top.c          ... with the elements that rank highest (layout subset) rank.c         ...
 * and the search for what ranks next pages.c        several pages at once: put and read change.c
 * all other steps: read the state, ask transition.c, compare and set unmanaged.c        arrays that
 * others keep: TAKE, TAKE_CUT, GIVE_BACK catalog.c      definitions, imports, indexes owners.c
 * owners, and heads that are to be laid out obstacle.c     ... and whether the array of a document
 * of nearly the limit can be adopted orphans.c      pages without a head raw_reader.c       any
 * collection's documents, as they are (store/raw_reader.h) raw_admin.c      ... and written,
 * renamed, dropped (store/raw_admin.h) unbounded.c    ... with an array that nobody bounds
 * (store/unbounded.h) same_elements.c         whether another connection is to the same database
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
    mongoc_read_prefs_t *primary; /* for what must not be old, whatever the URI prefers */
    char *database;
    bool sharded;
    bool retries; /* the driver may send a write a second time: what it says is of that one */
    spill_mongo_hints_t *hints;
    char *place; /* "HOST/DATABASE", for messages; without user or password */
} spill_mongo_t;

/* Collections of the store's own, beside the users'. */
#define SPILL_MONGO_DEFINITIONS "spillway.definitions"
#define SPILL_MONGO_IMPORTS "spillway.imports"
/*
 * {_id: "dropped", rev}: no head was ever dropped whose rev was higher. {_id: <object id>}: for a
 * moment, where it is to be found out whether two connections are to one database.
 */
#define SPILL_MONGO_CHECKPOINTS "spillway.marks"

/* ---- failure.c ------------------------------------------------------------------------------- */

/*
 * Fill *error from what the driver reports of a command on `collection`, or of the database where
 * that is NULL; `reply` may be NULL.
 * `write`: an outcome that cannot be known is SPILL_UNKNOWN.
 */
spill_code_t spill_mongo_fail(const spill_mongo_t *store, const char *collection, bool write,
                              const bson_error_t *cause, const bson_t *reply, spill_error_t *error);

/* Is it the server's word for a second document of one _id? */
bool spill_mongo_is_duplicate(const bson_error_t *cause);

/* ---- connect.c ------------------------------------------------------------------------------- */

/* Concerns and time-outs that the URI does not speak of: majority, and shorter waits. */
void spill_mongo_fill_defaults(mongoc_uri_t *uri);

/* ---- cursor.c -------------------------------------------------------------------------------- */

/* A driver's cursor, which the documents come from. */
typedef struct spill_mongo_cursor {
    spill_mongo_t *store;
    const char *collection; /* borrowed; NULL: it is of the database */
    mongoc_cursor_t *cursor;
    bool unique; /* a document does not come twice */
    uint64_t remembered;
    uint64_t count;
    int repeats;
} spill_mongo_cursor_t;

spill_mongo_cursor_t spill_mongo_cursor(spill_mongo_t *store, const char *collection,
                                        mongoc_cursor_t *cursor, bool unique);
void spill_mongo_cursor_end(spill_mongo_cursor_t *cursor);

/*
 * *document is the next one, NULL at the end; borrowed until the next call. SPILL_CORRUPT: the
 * document is malformed, the cursor is of another namespace, or does not advance.
 */
spill_code_t spill_mongo_cursor_next(spill_mongo_cursor_t *cursor, const bson_t **document,
                                     spill_error_t *error);

/*
 * May a document with this _id follow the one whose _id is the field of `place` (no bytes: none),
 * in an answer that is sorted by it? Compared are the types whose order is simple. Two of another
 * type may not be equal.
 */
bool spill_mongo_follows(const uint8_t *place, size_t place_bytes, const bson_iter_t *id);
spill_code_t spill_mongo_fail_order(const spill_mongo_t *store, const char *collection,
                                    spill_error_t *error);

/* For the driver's callback: note the namespace of the cursor in an answer. */
void spill_mongo_check_answer(const bson_t *reply);

/* ---- command.c ------------------------------------------------------------------------------- */

/*
 * Update the document that the filter finds. `update` has operators, or is a pipeline (an array).
 * With `fields` and `after` (may be NULL), the document afterwards, so projected: `after` is
 * initialized by the call, empty where none was found. One round trip.
 */
spill_code_t spill_mongo_modify(spill_mongo_t *store, const char *collection, const bson_t *filter,
                                const bson_t *update, const bson_t *fields, bson_t *after,
                                bool *found, spill_error_t *error);

/* The same, which the server is to end after so many milliseconds (0: it is not). */
spill_code_t spill_mongo_modify_within(spill_mongo_t *store, const char *collection,
                                       const bson_t *filter, const bson_t *update,
                                       uint32_t max_time_ms, const bson_t *fields, bson_t *after,
                                       bool *found, spill_error_t *error);

/*
 * Update, or insert if no document has the `_id`. *done is false if a document with the `_id`
 * failed the guard. As for a replacement, the driver does not check names and texts.
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
 * After an insertion of `count` documents that failed: was each answered, inserted or refused for
 * one of its _id that is there? refused[i] becomes true for the latter.
 */
bool spill_mongo_read_refusals(const bson_error_t *cause, const bson_t *reply, size_t count,
                               bool *refused);

/*
 * Several of one collection, in no order. refused[i] becomes true where there is a document of that
 * _id. SPILL_UNKNOWN where not all were answered.
 */
spill_code_t spill_mongo_insert_all(spill_mongo_t *store, const char *collection,
                                    const bson_t *const *documents, size_t count, bool *refused,
                                    spill_error_t *error);

/* *done is false where there is a document of that _id. */
spill_code_t spill_mongo_insert(spill_mongo_t *store, const char *collection,
                                const bson_t *document, bool *done, spill_error_t *error);

spill_code_t spill_mongo_delete(spill_mongo_t *store, const char *collection, const bson_t *filter,
                                bool *found, spill_error_t *error);

/* The first document that a pipeline gives: `document` is initialized by the call. */
spill_code_t spill_mongo_first(spill_mongo_t *store, const char *collection, const bson_t *pipeline,
                               bson_t *document, bool *found, spill_error_t *error);

/*
 * Every document that a pipeline gives, to `visit`, in order, until it returns false. From the
 * primary, where writes go, or with may_be_old by the URI's read preference.
 */
typedef bool (*spill_mongo_visit_fn)(void *context, const bson_t *document);
spill_code_t spill_mongo_each(spill_mongo_t *store, const char *collection, const bson_t *pipeline,
                              bool may_be_old, spill_mongo_visit_fn visit, void *context,
                              spill_error_t *error);

/* The same through the index of that name; an error where there is none. */
spill_code_t spill_mongo_each_by(spill_mongo_t *store, const char *collection,
                                 const bson_t *pipeline, const char *index, bool may_be_old,
                                 spill_mongo_visit_fn visit, void *context, spill_error_t *error);

/* A command on the database, whose reply does not matter. */
spill_code_t spill_mongo_command(spill_mongo_t *store, const char *collection,
                                 const bson_t *command, spill_error_t *error);

/* ---- obstacle.c ------------------------------------------------------------------------------ */

/* Append `near` to a projection: measures of a document that nearly has the size limit. */
void spill_mongo_project_near(const spill_definition_t *definition, bson_t *projection);
/* `document`: what the projection gave for `found`. Pure. */
spill_obstacle_t spill_mongo_obstacle(const spill_definition_t *definition,
                                      const spill_oversized_query_t *query,
                                      const spill_oversized_t *found, const bson_t *document);

/* ---- document.c ------------------------------------------------------------------------------ */

#define SPILL_MONGO_PATH_SIZE (SPILL_NAME_SIZE + 32)

/* Numbers of elements, times and sizes in a document are below: their sums do not overflow. */
#define SPILL_MONGO_NUMBER_MAX ((int64_t)1 << 58)

/* The document that a request means. Borrows from the request; owns nothing. */
typedef struct spill_mongo_document {
    const spill_request_t *request;
    bool head;
    bool referenced; /* layouts reference, subset: a page has no array, but is an element */
    bool sharded;
    const char *collection;
    const char *array; /* field of the elements; elements apart: the head's journal */
    const char *count; /* field that counts them, or "" */
    char spill[SPILL_NAME_SIZE + 16];    /* where its bookkeeping stands: "spill.activities" */
    char journal[SPILL_MONGO_PATH_SIZE]; /* "spill.reviewSummary.journal" */
} spill_mongo_document_t;

void spill_mongo_document_init(spill_mongo_document_t *document, const spill_mongo_t *store,
                               const spill_request_t *request);

/*
 * Append to a filter: pages of request's owner, by their owner field. In layouts reference and
 * subset the document of a removed element has no such field, so the filter leaves it out.
 */
void spill_mongo_append_page_owner(const spill_request_t *request, bson_t *filter);

/*
 * Append to a condition on `_id` a comparison with an id that lies above, or below, the ids of all
 * pages of an owner (layout bucket: of a window).
 */
void spill_mongo_append_page_bound(const spill_definition_t *definition, const spill_value_t *owner,
                                   const char *operator, bool above, bson_t *condition);

/* Append to a condition on `_id`: every page of an owner, whatever fields it has. */
void spill_mongo_append_page_ids(const spill_definition_t *definition, const spill_value_t *owner,
                                 bson_t *condition);

/* Append to a filter: in a sharded cluster, where pages are sharded by their owner, what brings the
 * command to one shard. */
void spill_mongo_append_shard(const spill_mongo_document_t *document, bson_t *filter);

/* Append to a filter: pages, of numbers below `pages`. */
void spill_mongo_append_pages(const spill_definition_t *definition, int64_t pages, bson_t *filter);

/* {_id: {$eq: ...}}, of a page in a sharded cluster also its owner, into `filter`. */
void spill_mongo_select(const spill_mongo_document_t *document, bson_t *filter);
/* Pages of the same owner. */
void spill_mongo_select_pages(const spill_mongo_document_t *document, const int64_t *pages,
                              size_t count, bson_t *filter);

/* "spill.activities.rev" for "rev". `path` is returned. */
const char *spill_mongo_path(const spill_mongo_document_t *document, const char *name,
                             char path[SPILL_MONGO_PATH_SIZE]);
/* The same as an expression: "$spill.activities.rev". */
const char *spill_mongo_ref(const spill_mongo_document_t *document, const char *name,
                            char path[SPILL_MONGO_PATH_SIZE]);

/* What of a document has its removed numbers: `gone`, or `gaps`. */
const char *spill_mongo_deleted_name(const spill_state_t *state);
/* Set that, where there are any. */
void spill_mongo_set_deleted(const spill_mongo_document_t *document, const spill_state_t *state,
                             bson_t *set);

/* The fields of a head that are the array's own, but for `spill`. Returns how many there are. */
enum { SPILL_MONGO_OWN_FIELDS = 5 };
size_t spill_mongo_own_fields(const spill_definition_t *definition,
                              const char *names[SPILL_MONGO_OWN_FIELDS]);
/* The size of {a: []}: arrays are measured as the field of a document. */
enum { SPILL_MONGO_EMPTY_ARRAY = 5 + 3 + 5 };
/* key: the size of a document of them, with or without the array, and of `spill`: an expression. */
void spill_mongo_append_own_size(const spill_definition_t *definition, bool array, const char *key,
                                 bson_t *to);
/* Append to an expression of a document: {field: "$field"}. */
void spill_mongo_append_reference(bson_t *document, const char *field);
/* key: the length of the array that `ref` ("$field") refers to, 0 where it is missing. */
void spill_mongo_append_length(const char *ref, const char *key, bson_t *to);

/*
 * Append to a projection what spill_mongo_state reads: `state`, `live` and so on, computed from the
 * document.
 */
void spill_mongo_project_state(const spill_mongo_document_t *document, bool ops,
                               bson_t *projection);

/* The same for the answer to an append, which is to be quick: incarnation, first, n, gone and
 * `live`. */
void spill_mongo_project_end(const spill_mongo_document_t *document, bson_t *projection);

/*
 * Is it none of these projections, but the document as it is? So a replica set answers a
 * findAndModify that it has carried out already and that the driver, whose connection was lost,
 * has sent once more.
 */
bool spill_mongo_is_unprojected(const bson_t *answer);

/* Read them into `state` (zeroed or released) and `ops` (may be NULL). SPILL_CORRUPT: a field. */
spill_code_t spill_mongo_state(const spill_mongo_document_t *document, const bson_t *projected,
                               spill_state_t *state, spill_ops_t *ops, spill_error_t *error);

/* ---- ops.c ----------------------------------------------------------------------------------- */

/* Under `field`, the array of {id, count, after} of request's operations, the newest first. */
void spill_mongo_append_ops(const spill_request_t *request, const char *field, bson_t *to);

/*
 * Append to a filter: none of request's operations, of which there are some, was seen, and each of
 * them would be known if it had been.
 */
void spill_mongo_append_op_guard(const spill_mongo_document_t *document, bson_t *filter);

/* The same as entries, of a document that has no element yet, oldest first; `ops` is empty. */
void spill_mongo_list_ops(const spill_request_t *request, spill_ops_t *ops);

/* ---- place.c --------------------------------------------------------------------------------- */

/* Place in the array, as it is in `state`, of live element `seq`. */
int64_t spill_mongo_place_of(const spill_mongo_document_t *document, const spill_state_t *state,
                             int64_t seq);

/* What an append to a capped head does to it, where its length is known before. */
typedef struct spill_mongo_roll {
    int64_t skipped; /* so many of request's elements, the first ones, are not stored */
    int64_t moved;   /* `first` and `low` rise by so much */
    int64_t live;    /* elements afterwards */
    bool counted;    /* the caller sets the count */
    bool clears;     /* `gone` is to be removed */
    /*
     * Keeping the best: the whole array as it then is, ascending, and the state; NULL: the roll is
     * of the newest.
     */
    const spill_run_t *top_n;
    const spill_state_t *after;
    bool same; /* ... which is the array as it was */
} spill_mongo_roll_t;

/* Set the array to the elements of an ascending run, in the definition's order. */
void spill_mongo_set_array(const spill_mongo_document_t *document, const spill_run_t *run,
                           bson_t *set);

/*
 * Append to the operands of $push: request's elements, at the end where the array grows. With a
 * roll (or NULL) elements fall off the other end.
 */
void spill_mongo_push(const spill_mongo_document_t *document, const spill_mongo_roll_t *roll,
                      bson_t *push);

/* How many elements the array has, 0 where it is none: an expression, to be destroyed. */
bson_t *spill_mongo_live(const spill_mongo_document_t *document);

/*
 * The elements of ranks rank ... rank + count - 1 of the array, which has `live`: an expression of
 * expressions, to be destroyed. What stands first in it stands first in the array. The array is
 * named as it is: some servers copy what an expression around it would give.
 */
bson_t *spill_mongo_slice(const spill_mongo_document_t *document, const bson_t *live,
                          const bson_t *rank, const bson_t *count);

/* Append to the operands of $set: the array without `count` elements from that rank on. */
void spill_mongo_append_without(const spill_mongo_document_t *document, int64_t rank, int64_t count,
                                bson_t *set);

/* ---- hint.c ---------------------------------------------------------------------------------- */

/* After the last append: the array's length (-1: unknown), and spill...n or an older value. */
typedef struct spill_mongo_hint {
    int64_t length;
} spill_mongo_hint_t;

/* Some 32 KB. Any thread may use it. */
spill_mongo_hints_t *spill_mongo_hints_new(void);
void spill_mongo_hints_free(spill_mongo_hints_t *hints); /* NULL is allowed */

/* Is there a hint that is worth a try? */
bool spill_mongo_hint(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                      spill_mongo_hint_t *hint);
/* An append left the document so. Where numbers are gone no append is quick: there is no hint. */
void spill_mongo_hint_learn(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                            const spill_state_t *state);
/* So many elements were cut off. */
void spill_mongo_hint_shorten(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                              int64_t by);
/* The hint was wrong: others change the array, and for some time there is none. */
void spill_mongo_hint_doubt(spill_mongo_hints_t *hints, const spill_mongo_document_t *document);

/* ---- size_guard.c
 * ---------------------------------------------------------------------------------- */

/* Append to a filter: the document has room for request's elements and operations, exactly. */
void spill_mongo_append_room(const spill_mongo_document_t *document, bson_t *filter);

/*
 * A quick append asks the server for little. The document's bookkeeping has
 *
 *   open: {b<bytes_max>: N}        of a page {b<bytes_max>e<epoch>: N}
 *
 * while the document is one of ours, is not sealed, and no number among its slots is gone: up to N
 * bytes of size it takes appends that are quick under the bound of bytes_max. So one comparison of
 * its size is a guard for all of this, and false where the field is missing: then, and near the
 * bound, an append has to be judged exactly. An append that was so judged opens the document.
 */
/* Is the request small enough, and a document's bound wide enough? */
bool spill_mongo_is_quick(const spill_mongo_document_t *document);
/*
 * Append to a filter: the document is open, and has room for request's elements. With a hint (or
 * NULL), that its array has this length, for which there has to be room.
 */
void spill_mongo_append_quick_guard(const spill_mongo_document_t *document,
                                    const spill_mongo_hint_t *hint, bson_t *filter);
/* Append `open` under the name `field`, by request's limits; nothing where bounds are too narrow.
 */
void spill_mongo_append_open(const spill_mongo_document_t *document, int64_t incarnation,
                             const char *field, bson_t *to);

/* ---- update.c -------------------------------------------------------------------------------- */

/* All initialize `update`, which has the caller's operators (request->update) too. */

/* `open` and `push` (or NULL): what the append sets and pushes beside itself; may be empty. */
void spill_mongo_update_of_append(const spill_mongo_document_t *document, const bson_t *open,
                                  const bson_t *push, const spill_mongo_roll_t *roll,
                                  bson_t *update);
/* An upsert's, that makes a head with request's elements; it is open for quick appends. */
void spill_mongo_update_of_new_head(const spill_mongo_document_t *document, int64_t incarnation,
                                    const spill_mongo_roll_t *roll, bson_t *update);
/* The caller's operators alone. */
void spill_mongo_update_of_fields(const spill_mongo_document_t *document, bson_t *update);

/* ---- computed.c ------------------------------------------------------------------------------ */

/*
 * Append to a filter: the document is as it was read, in its incarnation, rev and number of
 * elements, of which each change of elements changes one (in a capped head also `first`).
 */
void spill_mongo_append_as_read(const spill_mongo_document_t *document, const spill_state_t *state,
                                bson_t *filter);
/*
 * ... the same numbers: its length and which are gone. With `first` and rev that is a condition on
 * all of a head that keeps the best, for each append gives numbers.
 */
void spill_mongo_append_as_numbered(const spill_mongo_document_t *document,
                                    const spill_state_t *state, bson_t *filter);

/* {name: {...}} becomes {path: {...}} in `set`; `literal`, in a stage's: {path: {$literal: ...}}.
 */
void spill_mongo_set_document(const char *path, const bson_t *holder, bool literal, bson_t *set);

/*
 * An APPEND that transition.c takes from `before`, as it was read, to `after`, with the statistics
 * or the summary that go with it; on condition that nothing came between, else not *done.
 */
spill_code_t spill_mongo_append_computed(spill_mongo_t *store,
                                         const spill_mongo_document_t *document,
                                         const spill_response_t *before, spill_state_t *after,
                                         bool *done, spill_error_t *error);

/* ---- mongo_referenced.c
 * --------------------------------------------------------------------------------- */

/* APPEND to a capped head that keeps the best. (append_top_n.c) */
spill_code_t spill_mongo_append_top_n(spill_mongo_t *store, const spill_mongo_document_t *document,
                                      spill_response_t *response, spill_error_t *error);

/* The incarnation of a head made now: `request`'s, or a later one, after all that were dropped.
 * (append.c)
 */
spill_code_t spill_mongo_date(spill_mongo_t *store, const spill_request_t *request,
                              int64_t *incarnation, spill_error_t *error);

/* Before an incarnation ends whose head has that rev: later ones are dated after it. (change.c) */
spill_code_t spill_mongo_raise_dropped_rev(spill_mongo_t *store, int64_t rev, spill_error_t *error);

/* A pipeline's stage: `spill` goes, where no array has anything in it. (change.c) */
void spill_mongo_append_without_spill(const char *key, bson_t *pipeline);

/* Make the head that a READ (in `response`) did not find. (append.c) */
spill_code_t spill_mongo_make_head(spill_mongo_t *store, const spill_mongo_document_t *document,
                                   const spill_mongo_roll_t *roll, spill_response_t *response,
                                   spill_error_t *error);

/*
 * APPEND where the head has a summary, which no update operator makes: it is computed here from
 * what a READ shows, and written on condition that this is what is there still.
 */
spill_code_t spill_mongo_append_referenced(spill_mongo_t *store,
                                           const spill_mongo_document_t *document,
                                           spill_response_t *response, spill_error_t *error);

/* Does the summary follow from another sum or count than before? */
bool spill_mongo_summary_changes(const spill_mongo_document_t *document,
                                 const spill_state_t *before, const spill_state_t *after);

/*
 * Summary, sum and top of a head in state `after`, into the operands of a $set; `literal`: a
 * stage's. `top`: the elements that after->top shows.
 */
void spill_mongo_set_summary(const spill_mongo_document_t *document, const spill_state_t *after,
                             const spill_run_t *top, bool literal, bson_t *set);

/* The sum alone. */
void spill_mongo_set_sum(const spill_mongo_document_t *document, const spill_state_t *after,
                         bool literal, bson_t *set);

/* Of a page, to a projection: what the next function takes. */
void spill_mongo_project_referenced(bson_t *projection);
/* The element of a page, if it has one: live and live_bytes of its state, and with want its run. */
void spill_mongo_decode_referenced(const spill_mongo_document_t *document, const bson_t *projected,
                                   spill_state_t *state, spill_run_t *run);

/* The number and the element of such a document; false where it has none. To be destroyed. */
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

/* Append to a projection what the next two take: the top of a head's state; with want_top its run.
 */
void spill_mongo_project_top(const spill_mongo_document_t *document, bson_t *projection);
spill_code_t spill_mongo_decode_top(const spill_mongo_document_t *document, const bson_t *projected,
                                    spill_state_t *state, spill_error_t *error);
void spill_mongo_decode_top_run(const bson_t *projected, const spill_state_t *state,
                                spill_run_t *run);

/*
 * The elements that a top shows, into `values`: the request's own (an append's have numbers from
 * `from` on), its refill, and what was read of the head. Should one be nowhere, less is shown.
 */
void spill_mongo_gather_top(const spill_request_t *request, int64_t from,
                            const spill_response_t *read, spill_top_t *top, spill_run_t *values);

/* What is noted of them, into the operands of a $set. */
void spill_mongo_set_top(const spill_mongo_document_t *document, const spill_top_t *top,
                         bool literal, bson_t *set);

/*
 * An append's part of the summary of the head that was read, and is then as in `after`: into the
 * operands of $set and $push. Only what changes is written.
 */
void spill_mongo_append_to_summary(const spill_mongo_document_t *document,
                                   const spill_response_t *read, spill_state_t *after, bson_t *set,
                                   bson_t *push);

/* The element of that number in a run. */
bool spill_mongo_find_in(const spill_run_t *run, int64_t seq, spill_value_t *value);

/* ---- rank.c ---------------------------------------------------------------------------------- */

/* READ of SPILL_ELEMENTS with SPILL_WANT_TOP_N. */
spill_code_t spill_mongo_read_top_n(spill_mongo_t *store, const spill_request_t *request,
                                    spill_response_t *response, spill_error_t *error);

/* ---- bucket.c -------------------------------------------------------------------------------- */

/* Does the request mean a document of layout bucket? */
bool spill_mongo_is_bucket(const spill_mongo_document_t *document);

/*
 * Layout bucket: APPEND to a document that a READ found, in `response`. Statistics depend on what
 * is there, so it is read and written on condition that it has not changed.
 */
spill_code_t spill_mongo_append_to_bucket(spill_mongo_t *store,
                                          const spill_mongo_document_t *document,
                                          spill_response_t *response, spill_error_t *error);

/* Insert the head of a window with request's elements, of the incarnation `incarnation`. */
spill_code_t spill_mongo_insert_bucket(spill_mongo_t *store, const spill_mongo_document_t *document,
                                       int64_t incarnation, bool *done, spill_error_t *error);

/*
 * Append the statistics of a document in state `after`, and what they are made of, to the operands
 * of a $set; as expressions of a pipeline, if `literal`.
 */
void spill_mongo_set_statistics(const spill_mongo_document_t *document, const spill_state_t *after,
                                bool literal, bson_t *set);

/* Fields that were read with an _id of {owner, window, part}: as other stores have them. */
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

/* ---- unmanaged.c
 * --------------------------------------------------------------------------------- */

/* How many bytes of bookkeeping ADOPT (`pages` == 0) or ADOPT_SPLIT puts under the array's name. */
int64_t spill_mongo_bookkeeping_bytes(const spill_request_t *request, int64_t pages);

/* ADOPT and ADOPT_SPLIT; UNMANAGE. */
spill_code_t spill_mongo_adopt(spill_mongo_t *store, const spill_request_t *request,
                               spill_response_t *response, spill_error_t *error);
spill_code_t spill_mongo_unmanage(spill_mongo_t *store, const spill_request_t *request,
                                  spill_response_t *response, spill_error_t *error);

/*
 * CUT with a run, to a filter: the head is as it was in `before`, and the slots that go hold the
 * run's elements. Numbers of one value and one size are equal whatever their type. `assumed`: the
 * head was not read, and has no gone numbers.
 */
void spill_mongo_append_cut_guard(const spill_mongo_document_t *document,
                                  const spill_state_t *before, bool assumed, bson_t *filter);

/* ---- rewrite.c ------------------------------------------------------------------------------- */

/*
 * The pipeline that makes of a document in state `before`, whatever was appended to it meanwhile,
 * one in state `after`: bookkeeping, elements that go by `effect`, and the sources' own fields.
 * `top`: the elements that after->top shows, of a subset.
 * Initializes `pipeline`. False: the states do not differ, there is nothing to write.
 */
bool spill_mongo_rewrite(const spill_mongo_document_t *document, const spill_state_t *before,
                         const spill_state_t *after, const spill_effect_t *effect,
                         const spill_run_t *top, bson_t *pipeline);

/* ---- read.c ---------------------------------------------------------------------------------- */

/* What a READ of one document projects. */
void spill_mongo_project_read(const spill_mongo_document_t *document, bson_t *projection);
/* What it makes of the answer: as spill_mongo_state, and with want the elements, into `run`. */
spill_code_t spill_mongo_decode_reply(const spill_mongo_document_t *document,
                                      const bson_t *projected, spill_state_t *state,
                                      spill_run_t *run, spill_ops_t *ops, spill_error_t *error);

/* How many live elements have numbers below `seq`, as an expression of the document. */
bson_t *spill_mongo_live_below(const spill_mongo_document_t *document, int64_t seq,
                               const bson_t *live);

/* ---- by_id.c --------------------------------------------------------------------------------- */

/* Where a page's elements have their ids, for a filter and an index. */
#define SPILL_MONGO_ID_PATH_SIZE SPILL_STORED_PATH_SIZE
void spill_mongo_id_path(const spill_definition_t *definition, char path[SPILL_MONGO_ID_PATH_SIZE]);

/* SPILL_PAGE_WITH_ID: the stages that find pages which have the id somewhere, the oldest first. */
void spill_mongo_match_id(const spill_mongo_document_t *document, bson_t *stages);

/* SPILL_WANT_ID. from: the rank of the first such element not below seq, or -1; run: it, or none.
 */
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
 * Append to a condition on _id: of the class of types that `type` is of, or `behind` it of all that
 * servers sort behind that. False where there is none: it cannot be an _id, or sorts last.
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

/* Cost: one aggregation, in which the server goes through all pages from the place on. */
spill_code_t spill_mongo_orphans(spill_store_t *store, const spill_definition_t *definition,
                                 const spill_binding_t *binding, const spill_orphan_query_t *query,
                                 bson_t *found, spill_buffer_t *last, spill_error_t *error);

/* ---- same_elements.c
 * ---------------------------------------------------------------------------------- */

spill_code_t spill_mongo_same(spill_store_t *store, spill_store_t *other, bool *same,
                              spill_error_t *error);

#endif
