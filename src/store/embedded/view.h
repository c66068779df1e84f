/*
 * What the parts of a READ share: one iterator, so that all of it is seen at one moment.
 *
 *   view.c         records, and which document is meant
 *   read.c         a document: its state, elements, operations, other fields
 *   read_referenced.c   elements apart, and those that rank highest
 */
#ifndef SPILL_STORE_EMBEDDED_VIEW_H
#define SPILL_STORE_EMBEDDED_VIEW_H

#include "store/embedded/codec.h"
#include "store/embedded/embedded.h"

typedef struct spill_view {
    spill_embedded_t *store;
    const spill_request_t *request;
    spill_response_t *response;
    spill_kv_iter_t *iter;
    spill_record_key_t key;
    int64_t page; /* which document it turned out to be */
} spill_view_t;

/* ---- view.c ---------------------------------------------------------------------------------- */

spill_code_t spill_view_corrupt(const spill_view_t *reading, spill_error_t *error,
                                const char *what);

/* Go to reading->key. *found: there is such a record. */
spill_code_t spill_view_seek(spill_view_t *reading, bool *found, spill_error_t *error);

spill_code_t spill_view_read_state(spill_view_t *reading, int64_t page, spill_state_t *state,
                                   spill_error_t *error);

/* The lowest number from `from` on whose element has the request's id; -1: none. */
spill_code_t spill_view_seek_id(spill_view_t *reading, int64_t incarnation, int64_t from,
                                int64_t *seq, spill_error_t *error);

/* The state of the document that the request means. */
spill_code_t spill_view_find_document(spill_view_t *reading, spill_error_t *error);

/* ---- read.c ---------------------------------------------------------------------------------- */

/* The run's elements from place `from` on, in the other order. */
void spill_view_reverse(spill_run_t *run, size_t from);

/* ---- read_referenced.c
 * ---------------------------------------------------------------------------- */

/* READ of SPILL_ELEMENTS. */
spill_code_t spill_view_read_elements(spill_view_t *reading, spill_error_t *error);
spill_code_t spill_view_read_top_n(spill_view_t *reading, spill_error_t *error);

/* The elements that a head shows. */
spill_code_t spill_view_read_top(spill_view_t *reading, spill_error_t *error);

#endif
