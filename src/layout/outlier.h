/*
 * The outlier layout: a bounded head and bounded pages, in two protocols. Also the steps that
 * layouts share. docs/internals/protocol.md explains why each step is safe. It names each step
 * after its request kind.
 *
 *   keep newest (newest.c)                          keep oldest (oldest.c)
 *   pages 0 .. k-1 hold the oldest, the head        the head holds the oldest, pages 0 .. k-1 the
 *   the newest elements; every append goes to       rest; appends go to the last document, the
 *   the head, which spills its oldest run:          tail, which is sealed when it is full:
 *
 *        APPEND                                          APPEND
 *         |  ^                                            |  ^
 *         v  |                                            v  |
 *   [head long] --PUT_PAGE k--> [page put]          [tail full] --SEAL--> [sealed]
 *         ^                        |                      ^                   | ADVANCE
 *         +---------CUT------------+                      +---CREATE_PAGE-----+
 */
#ifndef SPILL_LAYOUT_OUTLIER_H
#define SPILL_LAYOUT_OUTLIER_H

#include "definition/schema.h"
#include "layout/owner.h"
#include "store/transition.h"

/* One atomic append: a whole batch, or one part of a batch that is larger than a page. */
typedef struct spill_part {
    const spill_value_t *elements;
    size_t count;
    int64_t bytes;       /* sum of the elements' sizes */
    int64_t skip;        /* top-N capped: spill_request.append.skip; count may then be 0 */
    const int64_t *seqs; /* spill_request.append.seqs, with `end`; or NULL */
    int64_t end;
    const spill_op_t *op; /* or NULL */
    const bson_t *update; /* or NULL */
    /* To a head that keeps the newest (spill_append_options_t); or NULL. */
    const spill_session_op_t *session;
    const bson_t *match;
    /* An array that keeps each id once: the guard, and a hash of each element's id; or NULL. */
    const spill_searched_t *searched;
    const uint64_t *ids;
    /*
     * Keep oldest: if the tail has room for the first elements only, append these. result->count is
     * their number, and the caller appends the rest.
     */
    bool fill;
    /* Several parts as one (spill_request.append.members). If that fails, the result's count is 0.
     */
    const spill_member_t *members;
    size_t member_count;
} spill_part_t;

/* The size of a document that holds only these elements and a full window of operations. */
int64_t spill_part_bytes_alone(const spill_owner_t *owner, bool head, int64_t count, int64_t bytes);

/*
 * May `count` elements be one part? Layouts without pages: always. With pages they must fit a page.
 * If appends go to the head, they must also fit half a head, because other fields need room.
 */
bool spill_part_fits(const spill_owner_t *owner, int64_t count, int64_t bytes);

/* Limits of a head and of a page. Verify passes the largest bounds that the definition ever had. */
spill_limits_t spill_head_limits(const spill_definition_t *definition,
                                 const spill_bounds_t *bounds);
spill_limits_t spill_page_limits(const spill_bounds_t *bounds);
spill_limits_t spill_document_limits(const spill_definition_t *definition,
                                     const spill_bounds_t *bounds, bool head);

/* The array's next document after `page` in sequence order: SPILL_HEAD, a page, or none. */
#define SPILL_NO_DOCUMENT (-100) /* not a number of request.h */
int64_t spill_document_after(const spill_schema_t *schema, int64_t page, int64_t pages);
int64_t spill_document_before(const spill_schema_t *schema, int64_t page, int64_t pages);

/*
 * How many numbers a page of this owner has on average, as its head counts them, if that is much
 * less than a page may have: the elements are large. 0: it is not, or the head does not tell.
 */
int64_t spill_page_length(const spill_definition_t *definition, const spill_state_t *head);

/* A READ of the page that holds the number, as the head counts pages. The caller sets `want`. */
spill_request_t spill_outlier_request_holding(const spill_owner_t *owner, const spill_state_t *head,
                                              int64_t seq);

/* Make the request that appends a part to a document within the definition's bounds. */
spill_request_t spill_append_request(const spill_owner_t *owner, int64_t page,
                                     const spill_part_t *part);

/*
 * After a store refused an append: read the document again into `response` and return the reason.
 * With REPEATED *result is filled. STALE, and REPEATED with another batch size, are errors.
 */
spill_code_t spill_append_classify_refusal(const spill_owner_t *owner,
                                           const spill_request_t *append,
                                           spill_response_t *response, spill_refusal_t *refusal,
                                           spill_append_result_t *result, spill_error_t *error);

/* Most bytes that the part adds to a head besides its elements. */
int64_t spill_part_growth(const spill_part_t *part);

/* The error of a refusal TOO_OLD, NO_MATCH or SESSIONS, with its reason. */
spill_code_t spill_refuse(const spill_owner_t *owner, spill_refusal_t refusal,
                          spill_error_t *error);

/*
 * Remove the sessions' entries that are older than the operation's horizon. If that fails, the next
 * call removes them.
 */
void spill_forget_sessions(const spill_owner_t *owner, const spill_session_op_t *session);

/* Fill the result of an append that was DONE. */
void spill_append_done(const spill_part_t *part, const spill_response_t *response,
                       spill_append_result_t *result);

/* What an append to the head does in a layout. */
typedef struct spill_head_append {
    spill_request_t (*request)(const spill_owner_t *owner, const spill_part_t *part);
    /* After an append was acknowledged; `head` is the store's answer. May be NULL. */
    void (*done)(spill_owner_t *owner, const spill_request_t *append, spill_response_t *head);
    /* `head` shows no room: make room, or return the error. */
    spill_code_t (*full)(spill_owner_t *owner, const spill_part_t *part, spill_response_t *head,
                         spill_error_t *error);
} spill_head_append_t;

/*
 * Append a part to the head. Repeat it until it succeeds, or an earlier try is known to have
 * succeeded, or an error is final. (append.c)
 */
spill_code_t spill_append_to_head(spill_owner_t *owner, const spill_part_t *part,
                                  const spill_head_append_t *steps, spill_append_result_t *result,
                                  spill_error_t *error);

/* The size of a head with these elements and with one more operation. */
int64_t spill_append_head_bytes(const spill_owner_t *owner, const spill_state_t *head, int64_t live,
                                int64_t live_bytes);

/* SPILL_TOO_BIG if the head's other fields leave no room for the part, even in an empty array. */
spill_code_t spill_append_check_head(const spill_owner_t *owner, const spill_part_t *part,
                                     const spill_state_t *head, spill_error_t *error);

/* READ of the head with its oldest run, of up to a page's elements. (newest.c) */
spill_code_t spill_newest_read_run(const spill_owner_t *owner, spill_response_t *head,
                                   spill_error_t *error);

/*
 * Make a CUT of the first `slots` slots of a head as it was read. Their elements have `bytes`
 * bytes. (newest.c)
 */
spill_request_t spill_newest_cut_request(const spill_owner_t *owner, const spill_state_t *head,
                                         int64_t slots, int64_t bytes);

/*
 * Keep newest: the most bytes of a head after a spill that its size caused. The share of
 * head_bytes_max equals the share of elements that a spill by count leaves. (newest.c)
 */
int64_t spill_newest_bytes_target(const spill_bounds_t *bounds);

/* Keep newest: must any client spill this head now? (newest.c) */
bool spill_newest_is_due(const spill_owner_t *owner, const spill_state_t *head);

/*
 * Spill the head until it is no longer due. Another client may have spilled it. If `head` shows a
 * read, begin with that. (newest.c)
 */
spill_code_t spill_newest_spill_due(spill_owner_t *owner, spill_response_t *head,
                                    spill_error_t *error);

/* Most bytes of elements that are moved at a time, unless one page has more. */
#define SPILL_MOVE_BYTES (8 * 1024 * 1024)

/* What a step moved: the first `live` elements of a head, to pages from `page` on. */
typedef struct spill_moved {
    int64_t page, pages; /* pages is 0 if nothing was moved */
    size_t live;
    int64_t bytes;
} spill_moved_t;

/*
 * Make one try to move the oldest elements of a long head to full pages. `head` holds them in its
 * run. *finished: nothing is left to move. Otherwise read the head again: another client has
 * changed it, or it is still too long. (newest.c)
 */
spill_code_t spill_newest_move(const spill_owner_t *owner, spill_response_t *head,
                               spill_moved_t *moved, bool *finished, spill_error_t *error);

/* For layouts that append to the head: compute `count` and `next` from its state. (locate.c) */
void spill_head_count(const spill_state_t *head, spill_count_t *count);

/* spill_layout_ops.count of each layout. (locate.c) */
spill_code_t spill_count_newest(spill_owner_t *owner, spill_response_t *head, spill_count_t *count,
                                spill_error_t *error);
spill_code_t spill_count_oldest(spill_owner_t *owner, spill_response_t *head, spill_count_t *count,
                                spill_error_t *error);
spill_code_t spill_count_referenced(spill_owner_t *owner, spill_response_t *response,
                                    spill_count_t *count, spill_error_t *error);

/*
 * Read the head, with the element of an id (NULL: only its state). If it has an intent, finish that
 * and read again. Afterwards `head` has no intent, or is absent. (change.c)
 */
spill_code_t spill_read_head_without_intent(const spill_owner_t *owner, const spill_value_t *id,
                                            spill_response_t *head, spill_error_t *error);

/*
 * The removal of element `seq` in a page was prepared: DELETE it there, then COMPLETE. `rev` is the
 * rev of the head with the intent. (change.c)
 */
spill_code_t spill_intent_finish_removal(const spill_owner_t *owner, int64_t incarnation,
                                         int64_t seq, int64_t page, int64_t rev,
                                         spill_error_t *error);

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
 * the id. Cost: at most one read. (locate.c)
 */
spill_code_t spill_outlier_find_id(const spill_owner_t *owner, const spill_response_t *head,
                                   spill_which_t *which, spill_response_t *page, int64_t *where,
                                   spill_error_t *error);

/*
 * The same among the pages only, of a head as it was read: *where is SPILL_NO_DOCUMENT if no page
 * has the id. (locate.c)
 */
spill_code_t spill_outlier_find_in_pages(const spill_owner_t *owner, const spill_state_t *head,
                                         spill_which_t *which, spill_response_t *page,
                                         int64_t *where, spill_error_t *error);

/* Read the head, with the element of an id (NULL: only its state). (locate.c) */
spill_code_t spill_outlier_read_head(const spill_owner_t *owner, const spill_value_t *id,
                                     spill_response_t *head, spill_error_t *error);

/* Which elements a trim deletes: those that every condition allows. */
typedef struct spill_trim {
    int64_t below;   /* numbers below it; INT64_MAX: any */
    int64_t keep;    /* all but the newest `keep` elements; 0: any */
    bool by_time;    /* from the oldest on, up to the first one that is not before time_ms */
    int64_t time_ms; /* an element's time is in the definition's time_field */
} spill_trim_t;

/*
 * Find the first number that the trim keeps. `head` and `count` were read at the same rev. *bound
 * becomes head->watermark if the trim deletes nothing, and -1 if documents changed meanwhile. Cost:
 * one read for each page that is deleted, and one more. (trim_bound.c)
 */
spill_code_t spill_outlier_trim_bound(const spill_owner_t *owner, const spill_trim_t *trim,
                                      const spill_state_t *head, const spill_count_t *count,
                                      int64_t *bound, spill_error_t *error);

/*
 * spill_layout_ops.edit, remove and trim of layouts with several elements in a document. (change.c,
 * trim.c)
 */
spill_code_t spill_documents_edit(spill_owner_t *owner, spill_which_t *which,
                                  const spill_value_t *element, spill_error_t *error);
spill_code_t spill_documents_remove(spill_owner_t *owner, spill_which_t *which,
                                    spill_error_t *error);
spill_code_t spill_documents_trim(spill_owner_t *owner, const spill_trim_t *trim,
                                  int64_t *watermark, spill_error_t *error);

/*
 * Let the elements of an owner that has none begin at a number above its next one. Make its head if
 * there is none. *done: the next number is `number`. Not done if it has elements, or pages that
 * were trimmed, or if another client came first. Cost: two reads and two steps. (trim.c)
 */
spill_code_t spill_documents_begin(const spill_owner_t *owner, int64_t number, bool *done,
                                   spill_error_t *error);

/* spill_layout_ops.drop of each layout. (drop.c) */
spill_code_t spill_newest_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                               spill_error_t *error);
spill_code_t spill_capped_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                               spill_error_t *error);
spill_code_t spill_referenced_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                                   spill_error_t *error);

/*
 * Keep oldest: did a drop close the tail and not yet delete the head? All elements still exist, and
 * any client that reads the tail may finish the drop. False for other layouts. Cost: two reads.
 * (oldest.c)
 */
spill_code_t spill_outlier_drop_has_begun(const spill_owner_t *owner, bool *begun,
                                          spill_error_t *error);

/*
 * Find the trim that deletes what the definition does not keep. *excess: there may be such
 * elements. Cost: at most one small read. (trim.c)
 */
spill_code_t spill_retain_find_excess(const spill_owner_t *owner, spill_trim_t *trim, bool *excess,
                                      spill_error_t *error);

/*
 * For layouts without spills and seals: does an append of `count` elements from number `first` pass
 * a multiple of `step`? (trim.c)
 */
bool spill_retain_is_due(int64_t first, int64_t count, int64_t step);

/*
 * Find the pages [*from, *end) that have only elements below the head's watermark. A trim must
 * empty them, the oldest first. Cost: one small read for each page, and two more. (trim.c)
 */
spill_code_t spill_outlier_trimmed_pages(const spill_owner_t *owner, const spill_state_t *head,
                                         int64_t *from, int64_t *end, spill_error_t *error);
spill_code_t spill_outlier_empty_pages(const spill_owner_t *owner, int64_t incarnation,
                                       int64_t from, int64_t end, spill_error_t *error);

/*
 * Find a page of an ended incarnation up to `incarnation`; `page` is absent if there is none. The
 * second function deletes all such pages; *any becomes true if there was one. (drop.c)
 */
spill_code_t spill_outlier_find_left_over(const spill_owner_t *owner, int64_t incarnation,
                                          spill_response_t *page, spill_error_t *error);
spill_code_t spill_outlier_drop_left_over(const spill_owner_t *owner, int64_t incarnation,
                                          bool *any, spill_error_t *error);

/*
 * Up to which incarnation does a note say that the owner was dropped (store/drop_note.h)? 0: there
 * is no note, or the head lives, or it lived on after the note.
 */
spill_code_t spill_outlier_find_dropped(const spill_owner_t *owner, int64_t *incarnation,
                                        spill_error_t *error);
/* Finish the drop that such a note announces or reports, if there is one. */
spill_code_t spill_outlier_finish_noted(const spill_owner_t *owner, spill_error_t *error);
/*
 * The same, and forget the note, which has stayed for its time. If it is not believed by now, only
 * forget what it announces. Cost: about five small requests.
 */
spill_code_t spill_outlier_finish_old(const spill_owner_t *owner, spill_error_t *error);

/*
 * Read a page's state and the store's time (want_now). The second function says whether that page's
 * lease has not ended yet.
 */
spill_code_t spill_outlier_read_leased(const spill_owner_t *owner, int64_t number,
                                       spill_response_t *page, spill_error_t *error);
bool spill_page_is_leased(const spill_response_t *page);

/*
 * SPILL_CONFLICT if page 0 exists and its lease has not ended. The incarnation must not end before
 * the lease, because the update that created this incarnation, or that creates another one, may
 * still arrive. Cost: one small read if there are pages or other programs write to the store.
 */
spill_code_t spill_outlier_may_end(const spill_owner_t *owner, const spill_state_t *head,
                                   spill_error_t *error);

/* Without a head: find the incarnations that have ended, and delete their pages. (drop.c) */
spill_code_t spill_outlier_finish_drop(const spill_owner_t *owner, bool *any, spill_error_t *error);

/*
 * Finish the operations that dead clients left unfinished: changes, seals, trims, and a drop that
 * has closed the tail. `report` gets each one first, with its document and a text. With `look_only`
 * the function only reports. An operation of a living client may be among them; both clients then
 * do its steps. The store finds pages without a head (SPILL_LIST_ORPHANS). `summed`: the caller has
 * compared the summary with the elements; it is compared again only if something was found.
 * (repair.c)
 */
typedef void (*spill_half_done_fn)(void *context, int64_t page, const char *text);
spill_code_t spill_outlier_repair(spill_owner_t *owner, bool look_only, bool summed,
                                  spill_half_done_fn report, void *context, spill_error_t *error);

/* Describe pages without a head; delete them if a drop left them. (repair.c) */
void spill_orphan_describe(const spill_orphan_t *orphan, char *text, size_t text_bytes);
spill_code_t spill_outlier_repair_orphan(const spill_owner_t *owner, const spill_orphan_t *orphan,
                                         spill_error_t *error);

/* Read the head's state. An unmanaged array (SPILL_REFUSED) counts as an absent head. (drop.c) */
spill_code_t spill_drop_read_head(const spill_owner_t *owner, spill_response_t *head,
                                  spill_error_t *error);

/*
 * DROP_HEAD. If the store did it (*done), delete the pages count - 1 .. from, then all others that
 * ended incarnations left. A store with notes of drops gets one. (drop.c)
 */
spill_code_t spill_drop_documents(const spill_owner_t *owner, const spill_state_t *head,
                                  int64_t from, int64_t count, bool *done, spill_error_t *error);

/* Keep oldest: finish the drop of an incarnation that has a closed tail. (drop.c) */
spill_code_t spill_outlier_drop_closed(spill_owner_t *owner, int64_t incarnation, int64_t pages,
                                       spill_error_t *error);

/*
 * Create the page after the sealed document `page`. `response` is the answer to a READ of that
 * document with want_ops, unless the store keeps the window itself. SPILL_OK also if another client
 * created the page or dropped the owner. (oldest.c)
 */
spill_code_t spill_oldest_grow(spill_owner_t *owner, int64_t page, spill_response_t *response,
                               spill_error_t *error);

/* Live elements of a document with numbers in [from, end). O(log of deleted runs). (locate.c) */
int64_t spill_state_live_within(const spill_state_t *state, int64_t from, int64_t end);

/*
 * Find the document that holds `seq`. `head` is the head's state. *where becomes SPILL_HEAD, a page
 * number, or SPILL_NO_DOCUMENT. For a page, `page` gets its state and, by `want`, up to `limit`
 * elements from `seq` on. Cost: at most one read. (locate.c)
 */
spill_code_t spill_outlier_locate(const spill_owner_t *owner, const spill_state_t *head,
                                  int64_t seq, spill_want_t want, int64_t limit,
                                  spill_response_t *page, int64_t *where, spill_error_t *error);

#endif
