/*
 * The parts of a READ share one iterator, so that they read the store as of one moment.
 *
 *   view.c           records; find the document
 *   embedded_read.c  a document: state, elements, operations, other fields, referenced elements
 */
#ifndef SPILL_STORE_EMBEDDED_VIEW_H
#define SPILL_STORE_EMBEDDED_VIEW_H

#include "store/embedded/embedded.h"
#include "store/embedded/embedded_codec.h"

typedef struct spill_view {
    spill_embedded_t *store;
    const spill_request_t *request;
    spill_response_t *response;
    spill_kv_t *kv; /* the engine, or the owner's records in a span */
    spill_kv_iter_t *iter;
    spill_record_key_t key;
    int64_t page; /* the document that was found */
} spill_view_t;

/* ---- view.c ---------------------------------------------------------------------------------- */

spill_code_t spill_view_corrupt(const spill_view_t *reading, spill_error_t *error,
                                const char *what);

/* Go to reading->key. *found: the record exists. */
spill_code_t spill_view_seek(spill_view_t *reading, bool *found, spill_error_t *error);

spill_code_t spill_view_read_state(spill_view_t *reading, int64_t page, spill_state_t *state,
                                   spill_error_t *error);

/* The lowest number >= `from` of an element with the request's id; -1: none. */
spill_code_t spill_view_seek_id(spill_view_t *reading, int64_t incarnation, int64_t from,
                                int64_t *seq, spill_error_t *error);

/* Read the state of the document that the request selects. */
spill_code_t spill_view_find_document(spill_view_t *reading, spill_error_t *error);

/* ---- embedded_read.c ------------------------------------------------------------------------- */

/* Reverse the run's elements from index `from` on. */
void spill_view_reverse(spill_run_t *run, size_t from);

#endif
