/*
 * The documents that requests select, as the server sees them: filters, projections, and what the
 * store reads from answers. guarded.h has the updates.
 */
#ifndef SPILL_STORE_MONGO_MONGO_DOCUMENT_H
#define SPILL_STORE_MONGO_MONGO_DOCUMENT_H

#include "definition/schema.h"
#include "store/mongo/mongo.h"

/* ---- document.c ------------------------------------------------------------------------------ */

#define SPILL_MONGO_PATH_SIZE SPILL_BOOKKEEPING_PATH_SIZE

/* The document that a request selects. Borrows from the request; owns nothing. */
typedef struct spill_mongo_document {
    const spill_request_t *request;
    bool head;
    bool referenced; /* layouts reference, subset: a page is one element and has no array */
    bool sharded;
    const char *collection;
    const char *array; /* field of the elements; referenced elements: the head's journal */
    const char *count; /* field that counts them, or "" */
    /* The READ that judged the request's session; NULL: assume the most likely entry. */
    const spill_response_t *judged;
    char spill[SPILL_MONGO_PATH_SIZE];   /* path of its bookkeeping: "spill.activities" */
    char journal[SPILL_MONGO_PATH_SIZE]; /* "spill.reviewSummary.journal" */
} spill_mongo_document_t;

void spill_mongo_document_init(spill_mongo_document_t *document, const spill_mongo_t *store,
                               const spill_request_t *request);

/* Is it a document of layout bucket? */
bool spill_mongo_is_bucket(const spill_mongo_document_t *document);

/* Append to `to` the `_id` of the owner's head (SPILL_HEAD) or page. */
void spill_mongo_append_id(const spill_definition_t *definition, const spill_value_t *owner,
                           int64_t page, const char *key, bson_t *to);

/*
 * Read a whole number of any type, from 0. Return -1 if it is another value, or larger than any
 * number of a valid document.
 */
int64_t spill_mongo_whole_number(const bson_iter_t *iter);

/*
 * Split the _id of a page or of a window's document. *page is its number, or SPILL_HEAD for the
 * head of a window. *window is "" in other layouts. False: it is no such _id. An _id with another
 * field, another order of the fields or another number is none, because READs by _id do not find
 * its document, and READs that search by other fields do.
 */
bool spill_mongo_split_id(const spill_definition_t *definition, const bson_iter_t *id,
                          spill_value_t *owner, const char **window, int64_t *page);

/* The field of a page's _id in projections, which no page has itself. */
#define SPILL_MONGO_PAGE_ID "spillwayId"

/* Split the _id of a document of the request's owner. False: it is no such _id. */
bool spill_mongo_read_id(const spill_request_t *request, const bson_iter_t *id, int64_t *page);

/* SPILL_CORRUPT: a document with this _id has the fields of a page of the request's owner. */
spill_code_t spill_mongo_fail_id(const char *collection, const bson_iter_t *id,
                                 spill_error_t *error);

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

/*
 * An expression, to be destroyed: does a document have the _id of a page (layout bucket: of a
 * window's document) of some owner, and if it is a referenced element, of its own number?
 */
bson_t *spill_mongo_has_page_id(const spill_definition_t *definition);

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

/* Append {name: {...}} as {path: {...}} to `set`; `literal` (for a stage): {path: {$literal: ...}}.
 */
void spill_mongo_set_document(const char *path, const bson_t *holder, bool literal, bson_t *set);

/* The size of {a: []}: an array is measured as a field of a document. */
enum { SPILL_MONGO_EMPTY_ARRAY = 5 + 3 + 5 };
/* Append as `key` an expression: the size of these fields and `spill`, with or without the array.
 */
void spill_mongo_append_own_size(const spill_definition_t *definition, bool array, const char *key,
                                 bson_t *to);
/* Append to an expression of a document: {field: "$field"}. */
void spill_mongo_append_reference(bson_t *document, const char *field);
/*
 * The documents around the array's own fields, each before those in it. Returns their number: 0 if
 * no field has a path.
 */
enum { SPILL_MONGO_PARENTS_MAX = SPILL_OWN_FIELDS_MAX * SPILL_PATH_PARTS_MAX };
size_t spill_mongo_own_parents(const spill_definition_t *definition,
                               char parents[SPILL_MONGO_PARENTS_MAX][SPILL_NAME_SIZE]);
/*
 * Append to a filter: these are documents, or missing. A stage would set a field in each member of
 * an array, and replace another value.
 */
void spill_mongo_append_viable(const spill_definition_t *definition, bson_t *filter);
/*
 * The code of an append. SPILL_REFUSED with an explanation if a classic operator has met such an
 * array or value (SPILL_SERVER_PATH_NOT_VIABLE).
 */
spill_code_t spill_mongo_blocked(const spill_mongo_document_t *document, spill_code_t code,
                                 spill_error_t *error);
/* Append as `key` an expression: the length of the array `ref` ("$field"), 0 if it is missing. */
void spill_mongo_append_length(const char *ref, const char *key, bson_t *to);

/*
 * Append the statistics of a document in state `after`, and their `tally`, to the operands of a
 * $set; as expressions of a pipeline, if `literal`.
 */
void spill_mongo_set_statistics(const spill_mongo_document_t *document, const spill_state_t *after,
                                bool literal, bson_t *set);

/* Convert fields with an _id of {owner, window, part} to the form of other stores. */
void spill_mongo_bucket_fields(const spill_mongo_document_t *document, bson_t **fields);

/* ---- mongo_state.c --------------------------------------------------------------------------- */

/* What a server answers if it is asked for the length of a field that is not an array. */
enum { SPILL_MONGO_NO_ARRAY = 17124 };

/*
 * Append to a projection the fields that spill_mongo_state reads (the numbers, `live` and so on).
 * The server computes them from the document. `finds`: a cheaper projection for a `find`, which may
 * fail with SPILL_MONGO_NO_ARRAY if the array's field is not an array.
 */
void spill_mongo_project_state(const spill_mongo_document_t *document, bool ops, bool finds,
                               bson_t *projection);

/* Find the numbers of the state in the answer. */
bool spill_mongo_find_state(const spill_mongo_document_t *document, const bson_t *projected,
                            bson_iter_t *state);

/* The same for the answer to an append, but cheaper: only incarnation, first, op_count, deleted and
 * live. */
void spill_mongo_project_end(const spill_mongo_document_t *document, bson_t *projection);

/*
 * Is the answer the whole document instead of such a projection? A replica set answers so if the
 * driver sends a findAndModify again after a lost connection and the first one was carried out.
 */
bool spill_mongo_is_unprojected(const bson_t *answer);

/*
 * Read them into `state` (zeroed or released) and `ops` (may be NULL). `whole`: the projection was
 * spill_mongo_project_state's, so the numbers that every document has must be there. SPILL_CORRUPT:
 * a field is wrong.
 */
spill_code_t spill_mongo_state(const spill_mongo_document_t *document, const bson_t *projected,
                               bool whole, spill_state_t *state, spill_ops_t *ops,
                               spill_error_t *error);

/* ---- mongo_sessions.c ----------------------------------------------------------------------- */

/* Do heads of this definition have sessions? */
bool spill_mongo_has_sessions(const spill_definition_t *definition);

/* Append to a projection what a READ with a session needs, and judge the session by the answer. */
void spill_mongo_project_session(const spill_mongo_document_t *document, bson_t *projection);
spill_code_t spill_mongo_read_session(const spill_mongo_document_t *document,
                                      const bson_t *projected, spill_response_t *response,
                                      spill_error_t *error);

/* READ with a match: does the document match, now? One command, unless the match is empty. */
spill_code_t spill_mongo_read_match(spill_mongo_t *store, const spill_mongo_document_t *document,
                                    spill_response_t *response, spill_error_t *error);

/* ---- mongo_elements.c ------------------------------------------------------------------------ */

/* The place of live element `seq` in the array of a document in `state`. */
int64_t spill_mongo_place_of(const spill_mongo_document_t *document, const spill_state_t *state,
                             int64_t seq);

/* The effect of an append to a capped head of known length. */
typedef struct spill_mongo_roll {
    int64_t skipped; /* how many of the request's first elements are not stored */
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

/*
 * Does a `find` answer a READ with the array's own field, cut to its newest elements? Not if a
 * projection has another field of that name.
 */
bool spill_mongo_is_sliced(const spill_mongo_document_t *document);

/*
 * Append to a projection the elements that a READ wants: `run`, in the order of the array, and
 * `from`, the rank of the oldest of them.
 */
void spill_mongo_project_run(const spill_mongo_document_t *document, bool finds,
                             bson_t *projection);
/* Read them into `run`; false if the answer is wrong. */
bool spill_mongo_decode_run(const spill_mongo_document_t *document, const bson_t *projected,
                            const spill_state_t *state, spill_run_t *run);

/* The id of an element that an expression names $$this. */
#define SPILL_MONGO_THIS_ID_SIZE (SPILL_NAME_SIZE + 8)
void spill_mongo_this_id(const spill_definition_t *definition, char ref[SPILL_MONGO_THIS_ID_SIZE]);

/* The path of the ids of a page's elements, for a filter and an index. */
#define SPILL_MONGO_ID_PATH_SIZE SPILL_STORED_PATH_SIZE
void spill_mongo_id_path(const spill_definition_t *definition, char path[SPILL_MONGO_ID_PATH_SIZE]);

/*
 * Append to a filter, for SPILL_PAGE_WITH_ID: pages that have the id anywhere, by the index
 * `spillway_id`. The projection then shows if an element has it as its id (bson/element_fields.h).
 */
void spill_mongo_match_id(const spill_mongo_document_t *document, bson_t *filter);

/* ---- mongo_referenced.c ---------------------------------------------------------------------- */

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

/*
 * Get number and element of a document of one element; false if it has none. The element borrows
 * from the document and from `memory`, which the caller destroys.
 */
bool spill_mongo_element_of(const spill_definition_t *definition, const bson_t *document,
                            int64_t *seq, bson_t *memory, spill_value_t *element);

/* SPILL_CORRUPT if a document of one element has not the _id of element `seq`. */
spill_code_t spill_mongo_check_element(const spill_request_t *request, const bson_t *document,
                                       int64_t seq, spill_error_t *error);

/* Add a referenced element to the run, and check its document. */
spill_code_t spill_mongo_add_element(const spill_request_t *request, const bson_t *document,
                                     spill_run_t *run, spill_error_t *error);

/* READ of SPILL_ELEMENTS. */
spill_code_t spill_mongo_read_elements(spill_mongo_t *store, const spill_request_t *request,
                                       spill_response_t *response, spill_error_t *error);

/* EMPTY_PAGE, DROP_PAGE: one command. */
spill_code_t spill_mongo_delete_element(spill_mongo_t *store,
                                        const spill_mongo_document_t *document, bool *done,
                                        spill_error_t *error);

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

/*
 * Append to the operands of $set and $push what an append changes in the summary of a head that was
 * read and will be in state `after`.
 */
void spill_mongo_append_to_summary(const spill_mongo_document_t *document,
                                   const spill_response_t *read, spill_state_t *after, bson_t *set,
                                   bson_t *push);

/* Find element `seq` in a run. */
bool spill_mongo_find_in(const spill_run_t *run, int64_t seq, spill_value_t *value);

/* ---- ahead.c, ahead_pages.c ------------------------------------------------------------------ */

spill_mongo_ahead_t *spill_mongo_ahead_new(void);
void spill_mongo_ahead_free(spill_mongo_ahead_t *ahead); /* NULL is allowed */

/* The calling thread has listed these owners, which are the next of its walk. */
void spill_mongo_ahead_list(spill_mongo_ahead_t *ahead, const spill_definition_t *definition,
                            const spill_listing_t *listing);

/*
 * Answer a READ of a head with request.read.ahead, by a `find` with that projection: *head, to be
 * destroyed, or NULL if there is no head. `excluded`: NULL, or the second projection of an
 * aggregation. False: send the READ alone.
 */
bool spill_mongo_ahead_read(spill_mongo_t *store, const spill_mongo_document_t *document,
                            const bson_t *projection, const bson_t *excluded, bson_t **head);

/*
 * Answer READs of the owner's pages with numbers in [from, end) and request.read.ahead, by a `find`
 * with that projection. pages[i] becomes page from + i, to be destroyed, or NULL if there is none.
 * False: send the READs alone. (ahead_pages.c)
 */
bool spill_mongo_ahead_pages(spill_mongo_t *store, const spill_mongo_document_t *document,
                             const bson_t *projection, int64_t from, int64_t end, bson_t **pages);

/*
 * The next READs of the owner's head are sent alone. Call it after every change of the owner,
 * before the change is acknowledged, and before every READ of its pages that was not answered from
 * read-ahead.
 */
void spill_mongo_ahead_changed(spill_mongo_ahead_t *ahead, const spill_value_t *owner);

/* ---- read.c, referenced_runs.c, rank.c ------------------------------------------------------- */

/* Append the projection of a READ of one document. `finds`: of a `find`, which slices an array. */
void spill_mongo_project_read(const spill_mongo_document_t *document, bool finds,
                              bson_t *projection);
/* Read its answer: as spill_mongo_state, and if wanted, the elements into `run`. */
spill_code_t spill_mongo_decode_reply(const spill_mongo_document_t *document,
                                      const bson_t *projected, spill_state_t *state,
                                      spill_run_t *run, spill_ops_t *ops, spill_error_t *error);

/* READ of SPILL_ELEMENTS with SPILL_WANT_TOP_N. */
spill_code_t spill_mongo_read_top_n(spill_mongo_t *store, const spill_request_t *request,
                                    spill_response_t *response, spill_error_t *error);

/* Append to a projection: exclude the array's own fields from `fields`. (heads.c) */
void spill_mongo_exclude_own(const spill_definition_t *definition, bson_t *projection);
/* Read `fields` of an answer into *fields, which the caller destroys. */
void spill_mongo_decode_fields(const bson_t *projected, bson_t **fields);

/* SPILL_PAGE_HOLDING: how far below its number the page usually begins. (document.c) */
int64_t spill_mongo_usual_reach(const spill_request_t *request);

/* SPILL_PAGE_HOLDING: the highest number at which a page that is found may begin. (document.c) */
int64_t spill_mongo_last_begin(const spill_request_t *request);

#endif
