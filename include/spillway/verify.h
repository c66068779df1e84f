/*
 * The verifier: reads every document of an array and checks the invariants I1 to I7 of
 * docs/internals/protocol.md from the elements themselves, without trusting the counts it checks.
 * And repair, which finishes what clients left half done.
 */
#ifndef SPILLWAY_VERIFY_H
#define SPILLWAY_VERIFY_H

#include <spillway/array.h>

SPILL_BEGIN_DECLS

#define SPILL_FINDING_TEXT_SIZE 256

typedef struct spill_finding {
    const char *definition;
    const spill_value_t *owner; /* NULL: not of one owner */
    int64_t page;               /* -1: the head */
    int invariant;              /* 1..7 */
    char text[SPILL_FINDING_TEXT_SIZE];
} spill_finding_t;

typedef struct spill_verify_summary {
    int64_t owners;
    int64_t pages;
    int64_t elements;
    int64_t findings;
} spill_verify_summary_t;

typedef void (*spill_finding_fn)(void *context, const spill_finding_t *finding);

/*
 * Verify one owner of an array, or every owner (owner NULL). Findings go to `report` (may be NULL)
 * and are counted in *summary (may be NULL); they are not errors: SPILL_OK with summary->findings >
 * 0 means that the check ran and found something. Damaged records are findings too, and the check
 * goes on with the next owner. While others write, an owner that changes under the check is read
 * again. Pages without a head are findings, of whichever owner. Of all owners they are looked for
 * with two or three seeks for each owner (embedded store), or one aggregation in which the server
 * goes through all pages (of whose fields it needs few) and looks up their heads, which it reads
 * whole. Cost: that, and every document once; memory O(one page).
 */
SPILL_API spill_code_t spill_array_verify(spill_array_t *array, const spill_value_t *owner,
                                          spill_finding_fn report, void *context,
                                          spill_verify_summary_t *summary, spill_error_t *error);

typedef struct spill_repair_summary {
    int64_t owners;
    int64_t findings; /* what was finished, or with look_only would be */
    int64_t left;     /* what is told and stays: what it was to be is not known */
} spill_repair_summary_t;

/*
 * Finish what clients left half done of one owner, or of every owner (owner NULL): removals and
 * edits whose intent is still there, seals with no page after them, pages that a trim did not
 * empty, drops that did not come to their end, also (but on a server) of owners that have no head
 * any more. The next writer would finish most of it too; this is for arrays that have none, and for
 * readers of the documents. Each is a finding of invariant 7, told to `report` (may be NULL) before
 * it is finished, and counted in *summary (may be NULL); with `look_only` nothing is written.
 * Layouts reference and subset: a head's sum and top that are not those of the elements are made
 * anew. And where nothing else is wrong with an owner, so are bytes, counts and statistics, a seal
 * that is missing, and what a document says of its sequence numbers, where its elements and its
 * neighbours tell them; the indexes of an embedded store are in any case. Each is the finding that
 * verify tells.
 *
 * Whatever else verify finds of these owners is told too, as it is, and stays (summary->left):
 * elements and documents that are missing, out of place or cannot be read; and pages without a head
 * on a server. For another program may have deleted or replaced the document, and what is in the
 * pages is nowhere else.
 *
 * Other clients may work on: each step is one that they may make as well, at any moment; what one
 * of them is just doing may be found, and is helped. SPILL_CORRUPT on a damaged owner: a walk over
 * all passes over it, with a warning to the store's log, and says so at its end.
 * Cost: as spill_array_verify, every document once, and once more where there is something to
 * finish; three to five small reads an owner besides, and the steps that it finishes (layouts
 * reference and subset: one more read for each document that a trim left, and where there is a
 * value field every element once more).
 */
SPILL_API spill_code_t spill_array_repair(spill_array_t *array, const spill_value_t *owner,
                                          bool look_only, spill_finding_fn report, void *context,
                                          spill_repair_summary_t *summary, spill_error_t *error);

SPILL_END_DECLS

#endif
