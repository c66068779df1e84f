/* Delete the pages of documents that another program deleted. */
#ifndef SPILL_CORE_ORPHANS_H
#define SPILL_CORE_ORPHANS_H

#include <spillway/verify.h>

typedef struct spill_orphans_summary {
    int64_t owners; /* that have pages, and no document; each incarnation counts */
    int64_t pages;  /* their pages */
    int64_t left;   /* owners with pages and no head, and with a document: the pages stay */
} spill_orphans_summary_t;

/*
 * Search for pages without a head. If the owner has no document, delete its pages; with `look_only`
 * only count them. `report` (may be NULL) gets each finding before it is deleted, and those that
 * stay. Pages of an owner that a drop left (a note of it exists) count as pages to delete.
 *
 * Other clients may work at the same time: if a document with the _id appears before the pages are
 * deleted, they stay. SPILL_CONFLICT: an adoption may still count the pages of an owner; the
 * message says until when. SPILL_REFUSED: a migration constructs the definition. A pass that failed
 * can be repeated. A store to which no other program writes has no such pages. Cost: one
 * aggregation over all pages, as in spill_array_verify; one update, one aggregation and a few reads
 * for each owner, and one delete for each page.
 */
spill_code_t spill_drop_orphans(spill_array_t *array, bool look_only, spill_finding_fn report,
                                void *context, spill_orphans_summary_t *summary,
                                spill_error_t *error);

#endif
