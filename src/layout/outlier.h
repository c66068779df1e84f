/*
 * The outlier layout: a bounded head and bounded pages, in two protocols.
 * docs/internals/protocol.md tells why each step is safe; a step's name there is the request kind
 * here.
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

#include "definition/fields.h"
#include "definition/schema.h"
#include "layout/owner.h"
#include "store/transition.h"

/* One atomic append: a whole batch, or one part of a batch that is larger than a page. */
typedef struct spill_part {
    const spill_value_t *elements;
    size_t count;
    int64_t bytes;        /* sum of the elements' sizes */
    int64_t skip;         /* capped, keeping the best: spill_request.skip; count may be 0 then */
    const spill_op_t *op; /* or NULL */
    const bson_t *update; /* or NULL */
    /*
     * Keep oldest: where the tail has room for the first elements alone, these are appended and
     * result->count says how many; the rest is the caller's to append next.
     */
    bool fill;
    /* Several parts as one (spill_request.members): where that fails, the result's count is 0. */
    const spill_member_t *members;
    size_t member_count;
} spill_part_t;

/* The bytes of a document that would hold nothing but these elements, and a full window. */
int64_t spill_part_bytes_alone(const spill_owner_t *owner, bool head, int64_t count, int64_t bytes);

/*
 * May `count` elements be one part? Capped: always. Else they have to fit a page; with keep newest
 * also half a head, so that other fields, which the head may have, leave room for them.
 */
bool spill_part_fits(const spill_owner_t *owner, int64_t count, int64_t bytes);

/* Bounds of a head and of a page, for appends and edits, and (with the largest ever) for verify. */
spill_limits_t spill_head_limits(const spill_definition_t *definition,
                                 const spill_bounds_t *bounds);
spill_limits_t spill_page_limits(const spill_bounds_t *bounds);
spill_limits_t spill_document_limits(const spill_definition_t *definition,
                                     const spill_bounds_t *bounds, bool head);

/* Is the array's next document after `page` in sequence order the head (-1), a page, or none? */
#define SPILL_NO_DOCUMENT (-3)
int64_t spill_document_after(const spill_schema_t *schema, int64_t page, int64_t pages);
int64_t spill_document_before(const spill_schema_t *schema, int64_t page, int64_t pages);

/* The request that appends a part to a document; room is judged by the definition's bounds. */
spill_request_t spill_append_request(const spill_owner_t *owner, int64_t page,
                                     const spill_part_t *part);

/*
 * After an append was refused: read the document again (into `response`) and say why. On REPEATED
 * *result is filled; on STALE, and on REPEATED with another size of batch, the error is.
 */
spill_code_t spill_append_classify_refusal(const spill_owner_t *owner,
                                           const spill_request_t *append,
                                           spill_response_t *response, spill_refusal_t *refusal,
                                           spill_append_result_t *result, spill_error_t *error);

/* Fill the result of an append that was DONE. */
void spill_append_done(const spill_part_t *part, const spill_response_t *response,
                       spill_append_result_t *result);

/* What differs between layouts whose appends all go to the head. */
typedef struct spill_head_append {
    spill_request_t (*request)(const spill_owner_t *owner, const spill_part_t *part);
    /* It was DONE, and is acknowledged: `head` is the answer. May be NULL. */
    void (*done)(spill_owner_t *owner, const spill_request_t *append, spill_response_t *head);
    /* `head` shows no room: make some, or say why none can be made. */
    spill_code_t (*full)(spill_owner_t *owner, const spill_part_t *part, spill_response_t *head,
                         spill_error_t *error);
} spill_head_append_t;

/* Append a part to the head: try until it is carried out, or known, or cannot be. (append.c) */
spill_code_t spill_append_to_head(spill_owner_t *owner, const spill_part_t *part,
                                  const spill_head_append_t *steps, spill_append_result_t *result,
                                  spill_error_t *error);

/* The bytes of a head with these elements, as an append judges it: with one operation more. */
int64_t spill_append_head_bytes(const spill_owner_t *owner, const spill_state_t *head, int64_t live,
                                int64_t live_bytes);

/* SPILL_TOO_BIG: beside the head's other fields there would be no room for the part alone. */
spill_code_t spill_append_check_head(const spill_owner_t *owner, const spill_part_t *part,
                                     const spill_state_t *head, spill_error_t *error);

/* READ of the head with its oldest run, of up to a page's elements. (newest.c) */
spill_code_t spill_newest_read_run(const spill_owner_t *owner, spill_response_t *head,
                                   spill_error_t *error);

/* CUT of the head that was read: its first `slots` slots, whose elements have `bytes`. (newest.c)
 */
spill_request_t spill_newest_cut_request(const spill_owner_t *owner, const spill_state_t *head,
                                         int64_t slots, int64_t bytes);

/*
 * Keep newest: most bytes of a head after a spill that bytes caused: it is then as full in bytes as
 * it is meant to be in count. (newest.c)
 */
int64_t spill_newest_bytes_target(const spill_bounds_t *bounds);

/* Keep newest: is it time to spill, whoever does it? (newest.c) */
bool spill_newest_is_due(const spill_owner_t *owner, const spill_state_t *head);

/* Most bytes of elements that are moved at a time, unless one page has more. */
#define SPILL_MOVE_BYTES (8 * 1024 * 1024)

/* What was moved from a head to pages: its first `live` elements, to pages from `page` on. */
typedef struct spill_moved {
    int64_t page, pages; /* no pages: nothing */
    size_t live;
    int64_t bytes;
} spill_moved_t;

/*
 * One try to move the oldest elements of a head that is too long to pages, as many as its run,
 * which `head` holds, has for full ones. *settled: nothing is left to do; else read the head again:
 * others have changed it, or it is still too long. (newest.c)
 */
spill_code_t spill_newest_move(const spill_owner_t *owner, spill_response_t *head,
                               spill_moved_t *moved, bool *settled, spill_error_t *error);

/* Keep newest: count and next, as the head tells them. (locate.c) */
void spill_head_count(const spill_state_t *head, spill_count_t *count);

/* spill_layout_ops.count of layouts whose head counts all elements, and of those with a tail. */
spill_code_t spill_count_newest(spill_owner_t *owner, spill_response_t *head, spill_count_t *count,
                                spill_error_t *error);
spill_code_t spill_count_oldest(spill_owner_t *owner, spill_response_t *head, spill_count_t *count,
                                spill_error_t *error);
spill_code_t spill_count_referenced(spill_owner_t *owner, spill_response_t *response,
                                    spill_count_t *count, spill_error_t *error);

/*
 * Read the head; where a removal in a page is under way, finish it and read again: the head in
 * `head` has no intent, or is absent. (change.c)
 */
spill_code_t spill_outlier_settled_head(const spill_owner_t *owner, spill_response_t *head,
                                        spill_error_t *error);

/* Which element is meant: that of a number, or (id not NULL) the first one of an id. */
typedef struct spill_which {
    const spill_value_t *id;
    int64_t seq; /* with an id: set to the number of the element that was found */
} spill_which_t;

/* SPILL_NOT_FOUND: the owner, or such an element, is not there. */
spill_code_t spill_outlier_absent_element(const spill_owner_t *owner, const spill_which_t *which,
                                          spill_error_t *error);

/*
 * Find the element that which->id means, `head` having been read with SPILL_WANT_ID: set which->seq
 * and *where to its document (SPILL_HEAD, or a page, which is then in `page`), as it was read.
 * SPILL_NOT_FOUND where there is none. Cost: one read at most. (by_id.c)
 */
spill_code_t spill_outlier_find_id(const spill_owner_t *owner, const spill_response_t *head,
                                   spill_which_t *which, spill_response_t *page, int64_t *where,
                                   spill_error_t *error);

/* A READ of the head, with the element of that id (NULL: of its state alone). (by_id.c) */
spill_code_t spill_outlier_read_head(const spill_owner_t *owner, const spill_value_t *id,
                                     spill_response_t *head, spill_error_t *error);

/* What a trim takes: what all of these give up. */
typedef struct spill_trim {
    int64_t below; /* numbers below it; INT64_MAX: any */
    int64_t keep;  /* all but the newest `keep` elements; 0: any */
    bool
        by_time; /* from the oldest on, those whose time is before time_ms, up to one that is not */
    int64_t time_ms;
} spill_trim_t;

/*
 * The number that the trim ends at, by what `head` and `count`, of the same rev, show; head->low
 * where nothing is to go; -1 where documents changed meanwhile, so that it cannot be told. Cost:
 * one read for each page that goes, and one. (trim_bound.c)
 */
spill_code_t spill_outlier_trim_bound(const spill_owner_t *owner, const spill_trim_t *trim,
                                      const spill_state_t *head, const spill_count_t *count,
                                      int64_t *bound, spill_error_t *error);

/*
 * spill_layout_ops.edit, remove and trim of layouts whose documents hold several elements.
 * (change.c, trim.c)
 */
spill_code_t spill_documents_edit(spill_owner_t *owner, spill_which_t *which,
                                  const spill_value_t *element, spill_error_t *error);
spill_code_t spill_documents_remove(spill_owner_t *owner, spill_which_t *which,
                                    spill_error_t *error);
spill_code_t spill_documents_trim(spill_owner_t *owner, const spill_trim_t *trim,
                                  int64_t *watermark, spill_error_t *error);

/* spill_layout_ops.drop of each layout. (drop.c) */
spill_code_t spill_newest_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                               spill_error_t *error);
spill_code_t spill_oldest_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                               spill_error_t *error);
spill_code_t spill_capped_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                               spill_error_t *error);
spill_code_t spill_referenced_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                                   spill_error_t *error);

/*
 * Keep oldest: was a drop broken off after it closed the tail and before it took the head? All are
 * there still, and whoever meets that page may finish the drop. Two reads; false for others.
 * (drop.c)
 */
spill_code_t spill_outlier_drop_has_begun(const spill_owner_t *owner, bool *begun,
                                          spill_error_t *error);

/*
 * Trim what the definition does not keep, after a spill or a seal. The append is acknowledged
 * already: what fails is put off to the next one, with a warning to the store's log. (retain.c)
 */
void spill_outlier_retain(spill_owner_t *owner);

/*
 * Layouts whose documents do not tell when to look: does an append of `count` elements, the first
 * one numbered `first`, take the numbers past a multiple of `step`? (retain.c)
 */
bool spill_retain_is_due(int64_t first, int64_t count, int64_t step);

/*
 * Pages [*from, *end) of keep newest or oldest lie wholly below the head's low, and hold elements
 * still: a trim has to empty them, the oldest first. One small read each, and two. (trim.c)
 */
spill_code_t spill_outlier_trimmed_pages(const spill_owner_t *owner, const spill_state_t *head,
                                         int64_t *from, int64_t *end, spill_error_t *error);
spill_code_t spill_outlier_empty_pages(const spill_owner_t *owner, int64_t incarnation,
                                       int64_t from, int64_t end, spill_error_t *error);

/*
 * Of the incarnations up to `incarnation`, which are over, a page that a drop would free, absent
 * where there is none; and free all of them. *any becomes true where there was one. (drop.c)
 */
spill_code_t spill_outlier_find_left_over(const spill_owner_t *owner, int64_t incarnation,
                                          spill_response_t *page, spill_error_t *error);
spill_code_t spill_outlier_drop_left_over(const spill_owner_t *owner, int64_t incarnation,
                                          bool *any, spill_error_t *error);

/* A page's state, and the store's time (want_now); and of a page read so: does its lease run? */
spill_code_t spill_outlier_read_leased(const spill_owner_t *owner, int64_t number,
                                       spill_response_t *page, spill_error_t *error);
bool spill_page_is_leased(const spill_response_t *page);

/*
 * SPILL_CONFLICT where page 0 is there and its lease runs: an incarnation is not to end meanwhile,
 * for the update that made it, or that makes another, may be on its way. One small read where there
 * are pages, or other programs write to the store.
 */
spill_code_t spill_outlier_may_end(const spill_owner_t *owner, const spill_state_t *head,
                                   spill_error_t *error);

/* The same where no head was found: which incarnations are over is found out. (drop.c) */
spill_code_t spill_outlier_finish_drop(const spill_owner_t *owner, bool *any, spill_error_t *error);

/*
 * Finish what clients left half done of this owner: changes, seals, trims, a drop that has closed
 * the tail. Each is told to `report` first: the document, and a text; nothing else is done with
 * `look_only`. What a client is at that moment doing may be among them: it is then helped. Pages
 * without a head are found by the store (spill_store_ops.orphans). (repair.c)
 */
typedef void (*spill_half_done_fn)(void *context, int64_t page, const char *text);
spill_code_t spill_outlier_repair(spill_owner_t *owner, bool look_only, spill_half_done_fn report,
                                  void *context, spill_error_t *error);

/* What is known of pages without a head; and free them, where a drop has left them. (repair.c) */
void spill_orphan_tell(const spill_orphan_t *orphan, char *text, size_t text_bytes);
spill_code_t spill_outlier_repair_orphan(const spill_owner_t *owner, const spill_orphan_t *orphan,
                                         spill_error_t *error);

/* Finish dropping the incarnation `incarnation`, whose tail is closed. (keep oldest; drop.c) */
spill_code_t spill_outlier_drop_closed(spill_owner_t *owner, int64_t incarnation, int64_t pages,
                                       spill_error_t *error);

/*
 * Make the page after the sealed document `page`, which `response` holds by a READ (with want_ops,
 * but where the store keeps the window itself).
 * SPILL_OK also where another client did, or where the owner is gone meanwhile. (oldest.c)
 */
spill_code_t spill_oldest_grow(spill_owner_t *owner, int64_t page, spill_response_t *response,
                               spill_error_t *error);

/*
 * Keep oldest: the last two of the `pages` pages that a head of `incarnation` counted were missing.
 * A client raises that count only after it has sealed the last page but one, and a drop deletes the
 * head before its pages. So return SPILL_CORRUPT, with the page, if the head still counts them.
 * Cost: one read. (oldest.c)
 */
spill_code_t spill_oldest_check_tail(const spill_owner_t *owner, int64_t incarnation, int64_t pages,
                                     spill_error_t *error);

/* Live elements of one document with numbers in [from, end). O(log |gone|). (locate.c) */
int64_t spill_state_live_within(const spill_state_t *state, int64_t from, int64_t end);

/*
 * Locate the document that holds `seq`, the head having been read into `head`: SPILL_HEAD with
 * `page` untouched, or a page number with the page's state and, by `want`, a run from `seq` of up
 * to `limit` elements in `page`. SPILL_NO_DOCUMENT where no document does. (locate.c)
 */
spill_code_t spill_outlier_locate(const spill_owner_t *owner, const spill_state_t *head,
                                  int64_t seq, spill_want_t want, int64_t limit,
                                  spill_response_t *page, int64_t *where, spill_error_t *error);

#endif
