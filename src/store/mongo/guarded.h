/*
 * Requests that depend on the state of their document: read the state, compute the one after the
 * request (store/transition.h), and write it if what it depends on has not changed (guarded.c,
 * guarded_write.c). docs/internals/mongodb.md has the requests that take this path.
 */
#ifndef SPILL_STORE_MONGO_GUARDED_H
#define SPILL_STORE_MONGO_GUARDED_H

#include "store/mongo/mongo_document.h"

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

/* ---- guard.c --------------------------------------------------------------------------------- */

/* Make the filter of a write: the document, while it is as the step has read it. */
void spill_mongo_unchanged(const spill_mongo_step_t *step, bson_t *filter);

/* ---- heads.c --------------------------------------------------------------------------------- */

/* DROP_HEAD: remove the array from its document, and a document that then has only its _id. */
spill_code_t spill_mongo_drop_head(const spill_mongo_step_t *step, bool *done,
                                   spill_error_t *error);

/* ---- guarded_write.c ------------------------------------------------------------------------- */

/* Write the effect. An APPEND also sets its answer in step->read. *done: the guard has held. */
spill_code_t spill_mongo_write(spill_mongo_step_t *step, bool *done, spill_error_t *error);

/* An APPEND of referenced elements: does it also read the journal, which is short? */
bool spill_mongo_reads_journal(const spill_request_t *append);

#endif
