/* Delete the oldest elements: a trim, and the retention of a definition. */
#ifndef SPILL_LAYOUT_TRIM_H
#define SPILL_LAYOUT_TRIM_H

#include "layout/locate.h"

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
 * one read for each page that is deleted, and one more.
 */
spill_code_t spill_outlier_trim_bound(const spill_owner_t *owner, const spill_trim_t *trim,
                                      const spill_state_t *head, const spill_count_t *count,
                                      int64_t *bound, spill_error_t *error);

/* spill_layout_ops.trim of layouts with several elements in a document. */
spill_code_t spill_documents_trim(spill_owner_t *owner, const spill_trim_t *trim,
                                  int64_t *watermark, spill_error_t *error);

/*
 * Let the elements of an owner that has none begin at a number above its next one. Make its head if
 * there is none. *done: the next number is `number`. Not done if it has elements, or pages that
 * were trimmed, or if another client came first. Cost: two reads and two steps.
 */
spill_code_t spill_documents_begin(const spill_owner_t *owner, int64_t number, bool *done,
                                   spill_error_t *error);

/*
 * Find the trim that deletes what the definition does not keep. *excess: there may be such
 * elements. Cost: at most one small read.
 */
spill_code_t spill_retain_find_excess(const spill_owner_t *owner, spill_trim_t *trim, bool *excess,
                                      spill_error_t *error);

/*
 * For layouts without spills and seals: does an append of `count` elements from number `first` pass
 * a multiple of `step`?
 */
bool spill_retain_is_due(int64_t first, int64_t count, int64_t step);

/*
 * Find the pages [*from, *end) that have only elements below the head's watermark. A trim must
 * empty them, the oldest first. Cost: one small read for each page, and two more.
 */
spill_code_t spill_outlier_trimmed_pages(const spill_owner_t *owner, const spill_state_t *head,
                                         int64_t *from, int64_t *end, spill_error_t *error);
spill_code_t spill_outlier_empty_pages(const spill_owner_t *owner, int64_t incarnation,
                                       int64_t from, int64_t end, spill_error_t *error);

#endif
