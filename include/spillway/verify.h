/*
 * The verifier: reads every document of an array and checks the invariants I1 to I7 and I9 of
 * docs/internals/protocol.md. It counts the elements itself and trusts no stored count. Repair
 * finishes the operations that dead clients left unfinished.
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
    int invariant;              /* 1 to 7, or 9 */
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
 * Verify one owner of an array, or every owner (owner NULL). Calls `report` (may be NULL) for each
 * finding, and counts findings in *summary (may be NULL). A finding is not an error: SPILL_OK with
 * summary->findings > 0 means that the check ran to its end. Damaged records and pages without a
 * head are findings too. If another client changes an owner during its check, the owner is read
 * again.
 *
 * Cost: reads every document once. To find pages without a head, the embedded store makes two or
 * three seeks for each owner. A server runs one aggregation over all pages, which reads few of
 * their fields and each head once. Memory: one page; of an array that keeps each id once also 32
 * bytes for each element of one owner.
 */
SPILL_API spill_code_t spill_array_verify(spill_array_t *array, const spill_value_t *owner,
                                          spill_finding_fn report, void *context,
                                          spill_verify_summary_t *summary, spill_error_t *error);

typedef struct spill_repair_summary {
    int64_t owners;
    int64_t findings; /* corrected findings; with look_only those that would be */
    int64_t left;     /* findings that repair cannot correct */
} spill_repair_summary_t;

/*
 * Repair one owner of an array, or every owner (owner NULL). Calls `report` (may be NULL) with each
 * finding before it corrects it, and counts them in *summary (may be NULL). With `look_only` it
 * writes nothing. Repair corrects:
 *
 *   - operations that a dead client left unfinished (invariant 7): removals and edits with an
 * intent, seals without a next page, pages that a trim did not empty, and drops. The next writer
 * would finish most of them, too. On an embedded store also drops of owners without a head.
 *   - the indexes of an embedded store
 *   - layouts reference and subset: the sum and the top of a head
 *   - if an owner has no other finding: sizes, counts, statistics, a missing seal, and the sequence
 *     numbers of a document, if its elements and its neighbours show them
 *
 * Repair reports every other finding of verify and leaves it (summary->left): elements and
 * documents that are missing, misplaced or unreadable, and on a server pages without a head.
 * Another program may have deleted or replaced the document, and the pages may hold the only copy
 * of their elements.
 *
 * Other clients may work at the same time, because they make the same steps. Repair may also finish
 * an operation of a living client. SPILL_CORRUPT: an owner is damaged. A repair of every owner
 * writes a warning to the store's log, continues, and returns the code at its end.
 *
 * Cost: as spill_array_verify, and three to five small reads for each owner. An owner with
 * unfinished operations is verified twice. Layouts reference and subset: one more read for each
 * document that a trim left, and with a value field another read of every element.
 */
SPILL_API spill_code_t spill_array_repair(spill_array_t *array, const spill_value_t *owner,
                                          bool look_only, spill_finding_fn report, void *context,
                                          spill_repair_summary_t *summary, spill_error_t *error);

SPILL_END_DECLS

#endif
