/*
 * Layout reference: each element is a document in a separate collection, and the head has a
 * summary. The protocol is keep newest with pages of one element; the page's number is the
 * element's number. The head holds a journal of the newest elements. They are written to documents
 * before the journal grows. docs/internals/protocol.md explains why each step is safe.
 *
 *        APPEND                                       PREPARE  (removal, edit)
 *         |  ^                                          |
 *         v  |                                          v
 *   [journal] --PUT_PAGE each--> [documents]      DELETE or PUT_PAGE --> COMPLETE
 *         ^                           |
 *         +------------CUT------------+
 *
 * Layout subset is the same. Its head also has a top: the elements that rank highest.
 */
#ifndef SPILL_LAYOUT_REFERENCED_H
#define SPILL_LAYOUT_REFERENCED_H

#include "layout/locate.h"

spill_code_t spill_referenced_edit(spill_owner_t *owner, spill_which_t *which,
                                   const spill_value_t *element, spill_error_t *error);
spill_code_t spill_referenced_remove(spill_owner_t *owner, spill_which_t *which,
                                     spill_error_t *error);

/* Find [*from, head->watermark), the documents that an unfinished trim left. One read for each. */
spill_code_t spill_referenced_trimmed(const spill_owner_t *owner, const spill_state_t *head,
                                      int64_t *from, spill_error_t *error);

/*
 * The edit of element `seq` was prepared: put `element` into its document, read the document into
 * `there`, then COMPLETE with the element that it has. That may be another client's element.
 * `source_rev` is the intent's; `rev` is the rev of the head with the intent. (change_element.h)
 */
spill_code_t spill_intent_finish_edit(const spill_owner_t *owner, const spill_state_t *head,
                                      int64_t seq, int64_t source_rev, int64_t rev,
                                      const spill_value_t *element, spill_response_t *there,
                                      spill_error_t *error);

/*
 * read_with: read a document with element `seq`, if it has the element. has: does the answer have
 * the element? value: what the element adds to the sum. (referenced_read.c)
 */
spill_code_t spill_referenced_read_with(const spill_owner_t *owner, int64_t page, int64_t seq,
                                        spill_response_t *response, spill_error_t *error);
bool spill_referenced_has(const spill_response_t *response, int64_t seq);
spill_sum_t spill_referenced_value(const spill_owner_t *owner, const spill_response_t *response);

/*
 * Read elements from their documents into response->run: those with numbers in [watermark, end), up
 * to `limit` of them, from `seq` on in the direction of `want`. `head` is the head's state. One
 * operation.
 */
spill_code_t spill_referenced_read(const spill_owner_t *owner, const spill_state_t *head,
                                   int64_t watermark, int64_t end, int64_t seq, spill_want_t want,
                                   int64_t limit, spill_response_t *response, spill_error_t *error);

/*
 * For different owners of one array, with their heads as they were read with the whole journal:
 * write out each journal that an append would write out, all by two requests to the store. Whether
 * that has succeeded shows when the heads are read; what is left, the next append writes out.
 * Stores that change one document at a time need a request for each. (referenced.c)
 */
spill_code_t spill_referenced_write_out_all(const spill_owner_t *owners,
                                            const spill_response_t *heads, size_t count,
                                            spill_error_t *error);

/* A walk over elements in documents, oldest first. Set `next` to the first number, `limit` to 0. */
typedef struct spill_referenced_walk {
    int64_t next;  /* the next number; `end` after the last element */
    int64_t limit; /* elements of the next read, from the sizes of earlier ones */
} spill_referenced_walk_t;

/*
 * Read the next run of elements with numbers below `end`: up to SPILL_REFERENCED_RUN elements, and
 * about SPILL_REFERENCED_RUN_BYTES. The run may be empty. Cost: one operation.
 */
enum { SPILL_REFERENCED_RUN = 1000, SPILL_REFERENCED_RUN_BYTES = 4 * 1024 * 1024 };
spill_code_t spill_referenced_walk(const spill_owner_t *owner, const spill_state_t *head,
                                   int64_t end, spill_referenced_walk_t *walk,
                                   spill_response_t *response, spill_error_t *error);

/* Layout subset: a step that removes elements from the top needs these
 * (spill_request.change.refill). */
typedef struct spill_refill {
    spill_top_t top;
    spill_run_t run;
} spill_refill_t;

void spill_refill_release(spill_refill_t *refill);

/*
 * Make a step on the head. If it removes an element from the top of `head`, it carries the elements
 * that take its place. *done: the guard held. Cost of these: two operations, and one for each
 * element of the top that the head has no room to show. (referenced_read.c)
 */
spill_code_t spill_referenced_step(const spill_owner_t *owner, const spill_state_t *head,
                                   spill_request_t *request, bool *done, spill_error_t *error);

/*
 * An error in the head's summary, and the correct summary. Zero it first, release it last. `text`
 * is the finding; "" if the summary is correct, or if that is not known.
 */
typedef struct spill_recount {
    char text[160];
    spill_sum_t sum;
    spill_refill_t refill;           /* layout subset: the top, and the elements that it shows */
    int64_t rev, end;                /* of the head that was compared */
    struct spill_counting *counting; /* the count so far, which the next call continues */
} spill_recount_t;

/*
 * Count the elements, and compare the head's sum and top with them as of one moment. The count
 * follows appends. If elements change again and again, or after 200 rounds of appends, it gives up
 * with a warning to the store's log. If the store refused *recount, call the function again with
 * it: the count continues. With `look_only` the function does not complete an intent; if there is
 * one, it reports nothing.
 *
 * Cost: with a value field, reads every element once, and later only appended ones. The top comes
 * from an index. (referenced_recount.c)
 */
spill_code_t spill_referenced_count(const spill_owner_t *owner, bool look_only,
                                    spill_recount_t *recount, spill_error_t *error);
/* Write the correct summary if the head is still the one that was compared. */
spill_code_t spill_referenced_recount(const spill_owner_t *owner, const spill_recount_t *recount,
                                      bool *done, spill_error_t *error);
void spill_recount_release(spill_recount_t *recount);

#endif
