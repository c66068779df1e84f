/*
 * One read: collect a run of elements in sequence order, document by document. Read the head first,
 * then the pages that the head counts. If one of them is missing, another client has trimmed or
 * dropped the owner meanwhile, and the read starts again. Exception: with keep oldest the last page
 * may be missing, because the head counts it before it is made.
 *
 *   reading.c  turns `skip` into a bound, and reads one document after another
 *   read.c     chooses the documents and the direction; has the functions of array.h
 */
#ifndef SPILL_CORE_READING_H
#define SPILL_CORE_READING_H

#include "definition/schema.h"
#include "layout/owner.h"

/* One read of the elements with numbers in [lower, upper], at most `limit`. */
typedef struct spill_reading {
    const spill_owner_t *owner;
    const spill_schema_t *schema;
    int64_t lower;
    int64_t upper;
    size_t limit;
    spill_run_t run;       /* the elements so far */
    spill_response_t head; /* the first document */
    spill_response_t page;
    int64_t end;    /* higher than every number that this read has seen */
    int64_t edge;   /* oldest first: the next page begins at this number or before it */
    bool unread;    /* oldest first: there are more pages than this read has read */
    bool vanished;  /* a page that the head counts is missing, or a replica is old: start again */
    int64_t lowest; /* the lowest number of the pages that were read; INT64_MAX: none was read */
    bool overtaken; /* the head changed, or a trim or drop deleted pages: start again */
    /*
     * The store may read from replicas of different age, so two documents may not fit together.
     * Then read both again from the primary.
     */
    bool may_be_old;
} spill_reading_t;

/* Is the read complete, or must it start again? */
bool spill_reading_finished(const spill_reading_t *reading);

/* Move the elements of `run` that are within the bounds to the read. `run` is then unspecified. */
void spill_reading_take(spill_reading_t *reading, spill_run_t *run);

/*
 * Read the head, with elements from `seq` on, and raise the lower bound to its trim watermark.
 * `spare`: the head comes after the pages in this order. The store may then omit elements of the
 * head that the pages are expected to replace within the limit (head.spared);
 * spill_reading_take_head reads them if the pages have fewer. See spill_read_t.
 */
spill_code_t spill_reading_read_head(spill_reading_t *reading, spill_want_t want, int64_t seq,
                                     bool spare, spill_error_t *error);

/* Add the elements of the head, which come after the pages. */
spill_code_t spill_reading_take_head(spill_reading_t *reading, spill_want_t want, int64_t seq,
                                     spill_error_t *error);

/* Read a page, by number or SPILL_PAGE_HOLDING `seq`, and add its elements from `seq` on. */
spill_code_t spill_reading_read_page(spill_reading_t *reading, int64_t page, spill_want_t want,
                                     int64_t seq, spill_error_t *error);

/*
 * Set `overtaken` if the array no longer has the elements of the pages that were read. Reads from
 * replicas are not checked: the head may be older there than a page. Afterwards reading->page is
 * not valid.
 */
spill_code_t spill_reading_check(spill_reading_t *reading, spill_error_t *error);

/* Add a run of referenced elements. */
spill_code_t spill_reading_take_elements(spill_reading_t *reading, spill_want_t want,
                                         spill_error_t *error);

/*
 * Turn `skip` into a bound. If no element is left, the limit becomes 0. This needs no further reads
 * if the array has no deleted numbers.
 */
spill_code_t spill_reading_pass_over(spill_reading_t *reading, int64_t skip, bool newest_first,
                                     spill_error_t *error);

#endif
