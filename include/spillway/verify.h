/*
 * The verifier: reads every document of an array and checks the invariants I1 to I7 of
 * docs/protocol.md from the elements themselves, without trusting the counts it checks.
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
 * and are counted in *summary; they are not errors: SPILL_OK with summary->findings > 0 means that
 * the check ran and found something. Damaged records are findings too, and the check goes on with
 * the next owner. While others write, an owner that changes under the check is read again.
 * Cost: every document once; memory O(one page).
 */
SPILL_API spill_code_t spill_array_verify(spill_array_t *array, const spill_value_t *owner,
                                          spill_finding_fn report, void *context,
                                          spill_verify_summary_t *summary, spill_error_t *error);

SPILL_END_DECLS

#endif
