/*
 * Updates of documents and their guards. Some appends are a push with a guard (append.c). Requests
 * that depend on the state of their document read the state, compute the one after the request
 * (store/transition.h), and write it if what it depends on has not changed (guarded.c,
 * guarded_write.c). docs/internals/mongodb.md has the requests that take this path.
 */
#ifndef SPILL_STORE_MONGO_GUARDED_H
#define SPILL_STORE_MONGO_GUARDED_H

#include "store/mongo/mongo_document.h"

/* ---- guarded.c, guarded_write.c -------------------------------------------------------------- */

/* One request that is carried out. */
typedef struct spill_mongo_step {
    spill_mongo_t *store;
    const spill_request_t *request;
    spill_mongo_document_t document;
    spill_response_t *read; /* the caller's response: the state before, and elements */
    bool assumed;           /* the state was not read, but assumed: no deleted numbers */
    spill_facts_t facts;
    spill_state_t after;
    spill_effect_t effect;
    spill_top_t ranks; /* layout subset: of the journal's elements; top-N: of all elements */
    spill_run_t top;   /* layout subset: the elements that the head will show */
} spill_mongo_step_t;

/* Write the effect. An APPEND also sets its answer in step->read. *done: the guard has held. */
spill_code_t spill_mongo_write(spill_mongo_step_t *step, bool *done, spill_error_t *error);

/* An APPEND of referenced elements: does it also read the journal, which is short? */
bool spill_mongo_reads_journal(const spill_request_t *append);

/* ---- update.c, rewrite.c --------------------------------------------------------------------- */

/* Append as `field` the array of {id, count, after} of the request's operations, newest first. */
void spill_mongo_append_ops(const spill_request_t *request, const char *field, bson_t *to);

/*
 * List the request's operations as entries of a document without elements, oldest first. `ops` is
 * empty.
 */
void spill_mongo_list_ops(const spill_request_t *request, spill_ops_t *ops);

/* All these functions initialize `update` and add the caller's operators (request->append.update).
 */

/* `open` and `push` (NULL: none): what else the append sets and pushes; may be empty. */
void spill_mongo_update_of_append(const spill_mongo_document_t *document, const bson_t *open,
                                  const bson_t *push, const spill_mongo_roll_t *roll,
                                  bson_t *update);
/* The update of an upsert that makes a head in state `after`, open for quick appends. */
void spill_mongo_update_of_new_head(const spill_mongo_document_t *document, spill_state_t *after,
                                    const spill_mongo_roll_t *roll, bson_t *update);
/* Only the caller's operators. */
void spill_mongo_update_of_fields(const spill_mongo_document_t *document, bson_t *update);

/*
 * The pipeline that turns a document in state `before`, with any later appends, into state `after`:
 * bookkeeping, elements that `effect` removes, and the application's count fields. `top`: the
 * elements that after->top shows, of a subset. Initializes `pipeline`. False: the states are equal,
 * so there is nothing to write.
 */
bool spill_mongo_rewrite(const spill_mongo_document_t *document, const spill_state_t *before,
                         const spill_state_t *after, const spill_effect_t *effect,
                         const spill_run_t *top, bson_t *pipeline);

/* ---- append.c -------------------------------------------------------------------------------- */

/* The array's length after the last append; -1: unknown. */
typedef struct spill_mongo_hint {
    int64_t length;
} spill_mongo_hint_t;

/* Get a hint, if there is one that is probably right. */
bool spill_mongo_hint(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                      spill_mongo_hint_t *hint);
/*
 * Learn the state after an append. With deleted numbers no append is quick, so there is no hint.
 * `defers`: another thread spills a head that is due. Until it has cut the array there is no hint.
 */
void spill_mongo_hint_learn(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                            const spill_state_t *state, bool defers);
/* `by` elements were cut off. */
void spill_mongo_hint_shorten(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                              int64_t by);
/* The hint was wrong, so other clients change the array: give no hint for some time. */
void spill_mongo_hint_doubt(spill_mongo_hints_t *hints, const spill_mongo_document_t *document);

/* Is an APPEND to the document a push? Not if the new state must be computed from the old one. */
bool spill_mongo_is_pushed(const spill_mongo_document_t *document);

/* The caller appends this many elements by a push of its own. */
void spill_mongo_hint_raise(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                            int64_t by);

/* Would the append exceed the document's slots, if the hint is right? Not a capped head's. */
bool spill_mongo_is_full(const spill_request_t *append, const spill_mongo_hint_t *hint);

/* Push with the quick guard, if the request permits it and the document is not known to be full. */
spill_code_t spill_mongo_push_quickly(spill_mongo_t *store, const spill_mongo_document_t *document,
                                      spill_response_t *response, bool *done, spill_error_t *error);

/* spill_store_ops_t.make_push: the same push with the length of a hint, as an update. */
bool spill_mongo_make_push(spill_mongo_t *store, const spill_request_t *append, bson_t *filter,
                           bson_t *update);

/*
 * Push with the exact guard to a document that a READ found, in `response`. It allows other appends
 * in between. Open the document for quick pushes, if possible.
 */
spill_code_t spill_mongo_push_exactly(spill_mongo_t *store, const spill_mongo_document_t *document,
                                      spill_response_t *response, bool *done, spill_error_t *error);

/* ---- guard.c --------------------------------------------------------------------------------- */

/*
 * Append to a filter: the document has room for the request's elements and operations, exactly, and
 * none of its deleted numbers is a stray (store/state.h).
 */
void spill_mongo_append_room(const spill_mongo_document_t *document, bson_t *filter);

/*
 * Append to a filter: the document has the incarnation, rev and length of this state. The array may
 * be missing if it has no elements.
 */
void spill_mongo_append_same_numbers(const spill_mongo_document_t *document,
                                     const spill_state_t *state, bson_t *filter);

/*
 * Append to a filter: if the request is an append with `searched`, the head is the searched one,
 * and has none of the ids of its elements.
 */
void spill_mongo_append_search_guard(const spill_mongo_document_t *document, bson_t *filter);

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
 * Append to a filter: the document is open, has room for the request's elements, and has none of
 * its operations. With a hint (may be NULL), also that the array has this length; the caller checks
 * that it leaves room.
 */
void spill_mongo_append_quick_guard(const spill_mongo_document_t *document,
                                    const spill_mongo_hint_t *hint, bson_t *filter);
/* Append `open` as `field`, by the request's limits; nothing if the bounds are too small. */
void spill_mongo_append_open(const spill_mongo_document_t *document, int64_t incarnation,
                             const char *field, bson_t *to);

/*
 * Append to a filter: none of the request's operation ids (at least one) is in the window, and the
 * window would have each of them if it had been applied.
 */
void spill_mongo_append_op_guard(const spill_mongo_document_t *document, bson_t *filter);
/*
 * Append the same to the operands of $and in an expression, as operands `number` and `number` + 1.
 * The server tests an expression faster than two more conditions of a filter.
 */
void spill_mongo_append_op_conditions(const spill_mongo_document_t *document, uint32_t number,
                                      bson_t *all);

/*
 * Append to the operands of $and in an expression, from operand `number` on: the request's sessions
 * allow it, and there is room for their entries. Returns the next operand's number.
 * (mongo_sessions.c)
 */
uint32_t spill_mongo_append_session_conditions(const spill_mongo_document_t *document,
                                               uint32_t number, bson_t *all);
/*
 * Append to a filter, as `$and`: the head matches and, with `sessions`, these conditions; nothing
 * if the request has neither. (mongo_sessions.c)
 */
void spill_mongo_append_seen_guard(const spill_mongo_document_t *document, bool sessions,
                                   bson_t *filter);
/* Append the entries of the request's sessions to $set, their times to $currentDate.
 * (mongo_sessions.c)
 */
void spill_mongo_set_sessions(const spill_mongo_document_t *document, bson_t *set, bson_t *date);

/* FORGET. (mongo_sessions.c) */
spill_code_t spill_mongo_forget(spill_mongo_t *store, const spill_mongo_document_t *document,
                                bool *done, spill_error_t *error);

/*
 * Append to $and, as operands `number` and `number` + 1: the first elements of the array equal the
 * request's run. Both have the slice: some servers copy a variable at each use, which costs more.
 */
void spill_mongo_append_same_run(const spill_mongo_document_t *document, uint32_t number,
                                 bson_t *all);

/*
 * CUTs of heads of several owners, by one command (spill_store_ops_t.cut_heads). (guarded.c)
 */
spill_code_t spill_mongo_cut_heads(spill_mongo_t *store, const spill_request_t *requests,
                                   size_t count, spill_error_t *error);

/* Make the filter of a write: the document, while it is as the step has read it. */
void spill_mongo_unchanged(const spill_mongo_step_t *step, bson_t *filter);

/* Top-N: collect the elements that stay after an append: those of `old`, and new ones. */
void spill_mongo_gather_top_n(const spill_request_t *append, const spill_run_t *old,
                              const spill_state_t *after, const spill_effect_t *effect,
                              spill_run_t *top_n);

/* ---- heads.c --------------------------------------------------------------------------------- */

/* The incarnation of a new head: the request's or, if a dropped head's is not below it, a later
 * one. */
spill_code_t spill_mongo_date(spill_mongo_t *store, const spill_request_t *request,
                              int64_t *incarnation, spill_error_t *error);

/* Call it before a head with that rev is dropped: later incarnations will be above it. */
spill_code_t spill_mongo_raise_dropped_rev(spill_mongo_t *store, int64_t rev, spill_error_t *error);

/*
 * Make the head that a READ did not find, in state `after`, and set its incarnation. If the
 * document exists with other fields, they stay. *done is false if another client has made a head.
 */
spill_code_t spill_mongo_make_head(spill_mongo_t *store, const spill_mongo_document_t *document,
                                   const spill_mongo_roll_t *roll, spill_state_t *after, bool *done,
                                   spill_error_t *error);

/*
 * Make several heads of one definition, of layout outlier, by two commands
 * (spill_store_ops_t.make_heads).
 */
spill_code_t spill_mongo_make_heads(spill_mongo_t *store, const spill_request_t *requests,
                                    size_t count, spill_error_t *error);

/* Does an UPDATE_FIELDS have operators? Without them it only makes a head. */
bool spill_mongo_has_operators(const spill_request_t *request);
/* UPDATE_FIELDS of an existing head. */
spill_code_t spill_mongo_update_head(spill_mongo_t *store, const spill_mongo_document_t *document,
                                     bool *done, spill_error_t *error);

/* Append a stage to a pipeline: remove `spill` if no array has a field in it. */
void spill_mongo_append_without_spill(const char *key, bson_t *pipeline);

/* DROP_HEAD: remove the array from its document, and a document that then has only its _id. */
spill_code_t spill_mongo_drop_head(const spill_mongo_step_t *step, bool *done,
                                   spill_error_t *error);

#endif
