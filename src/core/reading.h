/*
 * A read under way: a run of elements in sequence order, gathered document by document. The head is
 * read first, pages after it; a page that the head speaks of is there, so where one is not, the
 * owner was trimmed or dropped meanwhile, and the read begins again.
 *
 *   reading.c    takes one document after the other
 *   read_skip.c  turns `skip` into a bound, before the first of them
 *   read.c       which documents, in which direction; and the calls of array.h
 */
#ifndef SPILL_CORE_READING_H
#define SPILL_CORE_READING_H

#include "layout/outlier.h"

/* One read under way. Numbers in [lower, upper] are wanted, `limit` of them at most. */
typedef struct spill_reading {
    const spill_owner_t *owner;
    const spill_schema_t *schema;
    int64_t lower;
    int64_t upper;
    size_t limit;
    spill_run_t run;       /* what was gathered */
    spill_response_t head; /* as it was read first */
    spill_response_t page;
    int64_t end;   /* every number that this read knows of is below */
    int64_t edge;  /* oldest first: where the next page should begin, at the latest */
    bool unread;   /* there are pages beyond those that were read (oldest first) */
    bool vanished; /* a page was not where the head said: begin again */
    /*
     * The store may read copies of different age, of which one may lack what another's document
     * goes on from. Documents that do not meet are read again, from where writes go.
     */
    bool may_be_old;
} spill_reading_t;

/* Is nothing more to be read: for now, or before the read begins again? */
bool spill_reading_finished(const spill_reading_t *reading);

/* Take over what a document brought, within the bounds; `run` is left in any state. */
void spill_reading_take(spill_reading_t *reading, spill_run_t *run);

/* Read the head, with elements from `seq` on; the lower bound rises to its low. `spare`: request.h.
 */
spill_code_t spill_reading_read_head(spill_reading_t *reading, spill_want_t want, int64_t seq,
                                     bool spare, spill_error_t *error);

/* Take what the head had, which comes after what pages have. */
spill_code_t spill_reading_take_head(spill_reading_t *reading, spill_want_t want, int64_t seq,
                                     spill_error_t *error);

/* Read a page, by number or SPILL_PAGE_HOLDING `seq`, and take its elements from `seq` on. */
spill_code_t spill_reading_read_page(spill_reading_t *reading, int64_t page, spill_want_t want,
                                     int64_t seq, spill_error_t *error);

/* Take a run of the elements that are in documents of their own. */
spill_code_t spill_reading_take_elements(spill_reading_t *reading, spill_want_t want,
                                         spill_error_t *error);

/*
 * Turn `skip` into a bound; the limit becomes 0 where everything is passed over. Free of further
 * reads where no number in the array is dead. (read_skip.c)
 */
spill_code_t spill_reading_pass_over(spill_reading_t *reading, int64_t skip, bool newest_first,
                                     spill_error_t *error);

#endif
