/**
 * \file
 * The independent check, and repair.
 */
#ifndef SPILLWAY_VERIFY_H
#define SPILLWAY_VERIFY_H

#include <spillway/array.h>

/**
 * \defgroup spillway_verify Verify and repair
 * The verifier reads every document of an array and checks the invariants I1 to I7 and I9 of
 * docs/internals/protocol.md. It counts the elements itself and trusts no stored count. Repair
 * finishes the operations that dead clients left unfinished.
 * \{
 */

SPILL_BEGIN_DECLS

/** Most bytes of a finding's text, with its NUL. */
#define SPILL_FINDING_TEXT_SIZE 256

/** Something that is wrong with an array. */
typedef struct spill_finding {
    const char *definition;             /**< the name of the array's definition */
    const spill_value_t *owner;         /**< NULL: not of one owner */
    int64_t page;                       /**< -1: the head */
    int invariant;                      /**< 1 to 7, or 9 */
    char text[SPILL_FINDING_TEXT_SIZE]; /**< a sentence for a person */
} spill_finding_t;

/** The version of spill_verify_summary_t. */
#define SPILL_VERIFY_SUMMARY_VERSION 1

/** What was verified. */
typedef struct spill_verify_summary {
    int64_t owners;      /**< owners that were read, and those that have pages but no head */
    int64_t pages;       /**< page documents that were read, and those without a head */
    int64_t elements;    /**< elements that were counted; not those in pages without a head */
    int64_t findings;    /**< things that are wrong */
    int version;         /**< SPILL_VERIFY_SUMMARY_VERSION of the library */
    int64_t reserved[4]; /**< 0: for fields of later versions */
} spill_verify_summary_t;

/** Receives findings. `finding` is borrowed until it returns. */
typedef void (*spill_finding_fn)(void *context, const spill_finding_t *finding);

/**
 * Verify one owner of an array, or every owner. Damaged records and pages without a head are
 * findings too. If another client changes an owner during its check, the owner is read again.
 *
 * A finding is not an error: SPILL_OK with spill_verify_summary_t::findings above 0 means that the
 * check ran to its end.
 *
 * \param array    an open array
 * \param owner    the owner; NULL: every owner
 * \param report   called for each finding
 * \param context  passed to `report`
 * \param summary  becomes what was verified
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null all but `array` may be NULL; else SPILL_INVALID
 * \errors SPILL_IO, SPILL_TIMED_OUT; SPILL_INVALID (the owner's type is not allowed)
 * \cost reads every document once. To find pages without a head, the embedded store makes two or
 *       three seeks for each owner. A server runs one aggregation over all pages, which reads few
 *       of their fields and each head once. Memory: one page; of an array that keeps each id once
 *       also 32 bytes for each element of one owner.
 * \threads any number at once; `report` is called on this thread
 */
SPILL_API spill_code_t spill_array_verify(spill_array_t *array, const spill_value_t *owner,
                                          spill_finding_fn report, void *context,
                                          spill_verify_summary_t *summary, spill_error_t *error);

/** The version of spill_repair_summary_t. */
#define SPILL_REPAIR_SUMMARY_VERSION 1

/** What was repaired. */
typedef struct spill_repair_summary {
    int64_t owners;      /**< owners that were read */
    int64_t findings;    /**< corrected findings; with look_only those that would be */
    int64_t left;        /**< findings that repair cannot correct */
    int version;         /**< SPILL_REPAIR_SUMMARY_VERSION of the library */
    int64_t reserved[4]; /**< 0: for fields of later versions */
} spill_repair_summary_t;

/**
 * Repair one owner of an array, or every owner. Repair corrects:
 *
 * - operations that a dead client left unfinished (invariant 7): removals and edits with an
 *   intent, seals without a next page, pages that a trim did not empty, and drops. The next writer
 *   would finish most of them, too. Also drops of owners without a head; on a server by a note.
 * - the indexes of an embedded store
 * - layouts reference and subset: the sum and the top of a head
 * - if an owner has no other finding: sizes, counts, statistics, a missing seal, and the sequence
 *   numbers of a document, if its elements and its neighbours show them
 *
 * Repair reports every other finding of spill_array_verify() and leaves it
 * (spill_repair_summary_t::left): elements and documents that are missing, misplaced or
 * unreadable, and on a server pages without head and note. Another program may have deleted or
 * replaced the document, and the pages may hold the only copy of their elements.
 *
 * Other clients may work at the same time, because they make the same steps. Repair may also
 * finish an operation of a living client. A repair of every owner writes a warning to the store's
 * log for a damaged owner, continues, and returns the code at its end.
 *
 * \param array      an open array
 * \param owner      the owner; NULL: every owner
 * \param look_only  write nothing
 * \param report     called with each finding before it is corrected
 * \param context    passed to `report`
 * \param summary    becomes what was found and corrected
 * \param error      filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null all but `array` may be NULL; else SPILL_INVALID
 * \errors SPILL_CORRUPT (an owner is damaged), SPILL_READ_ONLY, SPILL_IO, SPILL_UNKNOWN and
 *         SPILL_TIMED_OUT (call it again); SPILL_INVALID (the owner's type is not allowed)
 * \cost as spill_array_verify(), and three to five small reads for each owner. An owner with
 *       unfinished operations is verified twice. Layouts reference and subset: one more read for
 *       each document that a trim left, and with a value field another read of every element.
 * \threads any number at once; `report` is called on this thread
 */
SPILL_API spill_code_t spill_array_repair(spill_array_t *array, const spill_value_t *owner,
                                          bool look_only, spill_finding_fn report, void *context,
                                          spill_repair_summary_t *summary, spill_error_t *error);

SPILL_END_DECLS

/** \} */

#endif
