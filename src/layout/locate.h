/* Which document of an owner has an element: by number, by id; and the counts of elements. */
#ifndef SPILL_LAYOUT_LOCATE_H
#define SPILL_LAYOUT_LOCATE_H

#include "definition/schema.h"
#include "layout/owner.h"

/* The array's next document after `page` in sequence order: SPILL_HEAD, a page, or none. */
#define SPILL_NO_DOCUMENT (-100) /* not a number of request.h */
int64_t spill_document_after(const spill_schema_t *schema, int64_t page, int64_t pages);
int64_t spill_document_before(const spill_schema_t *schema, int64_t page, int64_t pages);

/*
 * How many numbers a page of this owner has on average, as its head counts them, if that is much
 * less than a page may have: the elements are large. 0: it is not, or the head does not show it.
 */
int64_t spill_page_length(const spill_definition_t *definition, const spill_state_t *head);

/* A READ of the page that holds the number, as the head counts pages. The caller sets `want`. */
spill_request_t spill_outlier_request_holding(const spill_owner_t *owner, const spill_state_t *head,
                                              int64_t seq);

/* Read the head, with the element of an id (NULL: only its state). */
spill_code_t spill_outlier_read_head(const spill_owner_t *owner, const spill_value_t *id,
                                     spill_response_t *head, spill_error_t *error);

/*
 * Find the document that holds `seq`. `head` is the head's state. *where becomes SPILL_HEAD, a page
 * number, or SPILL_NO_DOCUMENT. For a page, `page` gets its state and, by `want`, up to `limit`
 * elements from `seq` on. Cost: at most one read.
 */
spill_code_t spill_outlier_locate(const spill_owner_t *owner, const spill_state_t *head,
                                  int64_t seq, spill_want_t want, int64_t limit,
                                  spill_response_t *page, int64_t *where, spill_error_t *error);

/* Live elements of a document with numbers in [from, end). O(log of deleted runs). */
int64_t spill_state_live_within(const spill_state_t *state, int64_t from, int64_t end);

/* For layouts that append to the head: compute `count` and `next` from its state. */
void spill_head_count(const spill_state_t *head, spill_count_t *count);

/* spill_layout_ops.count of each layout. */
spill_code_t spill_count_newest(spill_owner_t *owner, spill_response_t *head, spill_count_t *count,
                                spill_error_t *error);
spill_code_t spill_count_oldest(spill_owner_t *owner, spill_response_t *head, spill_count_t *count,
                                spill_error_t *error);
spill_code_t spill_count_referenced(spill_owner_t *owner, spill_response_t *response,
                                    spill_count_t *count, spill_error_t *error);

/* Names an element: by its sequence number, or (id not NULL) the first element with that id. */
typedef struct spill_which {
    const spill_value_t *id;
    int64_t seq; /* with an id: set to the number of the element that was found */
} spill_which_t;

/* Make the error SPILL_NOT_FOUND for an absent owner or element. */
spill_code_t spill_outlier_absent_element(const spill_owner_t *owner, const spill_which_t *which,
                                          spill_error_t *error);

/*
 * Find the element with which->id. `head` was read with SPILL_WANT_ID. Sets which->seq, and *where
 * to its document: SPILL_HEAD, or a page, which is then in `page`. SPILL_NOT_FOUND: no element has
 * the id. Cost: at most one read.
 */
spill_code_t spill_outlier_find_id(const spill_owner_t *owner, const spill_response_t *head,
                                   spill_which_t *which, spill_response_t *page, int64_t *where,
                                   spill_error_t *error);

/*
 * The same among the pages only, of a head as it was read: *where is SPILL_NO_DOCUMENT if no page
 * has the id.
 */
spill_code_t spill_outlier_find_in_pages(const spill_owner_t *owner, const spill_state_t *head,
                                         spill_which_t *which, spill_response_t *page,
                                         int64_t *where, spill_error_t *error);

#endif
