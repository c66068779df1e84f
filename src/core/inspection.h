/* The checks on one owner's documents. */
#ifndef SPILL_CORE_INSPECTION_H
#define SPILL_CORE_INSPECTION_H

#include "layout/owner.h"

#include <spillway/verify.h>

/* A step by which repair corrects a finding: RECOUNT with `counts`, or SEAL. */
typedef struct spill_fix {
    spill_request_kind_t kind;
    int64_t page;
    int64_t incarnation, rev;
    int64_t pages, total, removed; /* the correct values of a head */
    bool range;                    /* set the document's numbers to [first, end) */
    int64_t first, end, seen_end; /* seen_end: the end that the state gave (spill_number_range_t) */
    bool indexes;                 /* rebuild the store's indexes instead of counting */
} spill_fix_t;

/*
 * Documents whose states give wrong numbers. The next inspection uses the correct numbers, so that
 * it does not report what only follows from the wrong ones.
 */
typedef struct spill_number_ranges {
    spill_number_range_t *at;
    size_t count;
    bool changed; /* during this inspection */
} spill_number_ranges_t;

/* The ids of a set's elements that were passed (verify_ids.c): 32 bytes for each. */
typedef struct spill_passed_id spill_passed_id_t;

typedef struct spill_passed_ids {
    spill_passed_id_t *at;
    size_t count;
    size_t capacity;
} spill_passed_ids_t;

/* The result of one inspection of an owner. Zero it first, release it last. */
typedef struct spill_inspection {
    const spill_owner_t *owner;
    bool rest; /* leave out closed tails and summaries, which repair checks itself */
    int64_t pages;
    int64_t elements;
    spill_finding_t *findings; /* at most SPILL_INSPECTION_FINDINGS are kept */
    size_t kept;
    spill_fix_t *fixes; /* one for each finding; kind READ: the correct value is not known */
    int64_t fixable;    /* number of findings that repair can correct */
    int64_t indexes;    /* ... of these, findings in the store's own indexes */
    spill_number_ranges_t ranges;
    spill_seqs_t unreadable; /* pages (or SPILL_HEAD) that cannot be read */
    int64_t found;
    spill_passed_ids_t ids;
    bool noted_text;   /* a string that is not UTF-8 was logged: one for each owner */
    int64_t watermark; /* of the head: elements below it do not count */
    /* The head's state at the start. If it differs at the end, the owner changed meanwhile. */
    int64_t rev;
    int64_t end;
    int64_t head_pages;
    bool half_done;  /* by the head, layout/repair.c may find a step that a client has begun */
    bool miscounted; /* with `rest`: the head's summary is wrong */
} spill_inspection_t;

#define SPILL_INSPECTION_FINDINGS 100

/*
 * Inspect every document of the owner. Records that are SPILL_CORRUPT become findings, not errors.
 * If inspection->ranges.changed is true afterwards, inspect the owner again.
 */
spill_code_t spill_inspect_owner(spill_inspection_t *inspection, spill_error_t *error);

/*
 * Referenced elements: inspect each element's document, and compare the head's sum with them.
 * `head` was read with all its elements. *live becomes the number of elements in documents.
 * (verify_referenced.c)
 */
spill_code_t spill_inspect_referenced(spill_inspection_t *inspection, const spill_response_t *head,
                                      int64_t *live, spill_error_t *error);

/*
 * An array that keeps each id once: pass an element, and, after the last one, report elements with
 * the id of an earlier one. Other arrays: do nothing. (verify_ids.c)
 */
void spill_inspect_id(spill_inspection_t *inspection, int64_t page, const spill_element_t *element);
void spill_inspect_ids(spill_inspection_t *inspection);
void spill_passed_ids_release(spill_passed_ids_t *ids);

void spill_inspection_release(spill_inspection_t *inspection);

/*
 * Begin another inspection: keep `owner`, `rest` and the number ranges, clear everything else.
 * *before gets the results of the inspection that ended; the caller releases it.
 */
void spill_inspection_restart(spill_inspection_t *inspection, spill_inspection_t *before);

/*
 * Keep only the findings that `before`, an earlier inspection of the same owner, has for the same
 * document and invariant. (The numbers in their texts may differ, as when other programs push to a
 * head that is too long.) If the owner changes during every inspection, the others may be effects
 * of these changes.
 */
void spill_inspection_keep_repeated(spill_inspection_t *inspection,
                                    const spill_inspection_t *before);

/* Set the step that corrects the finding that was added last. */
void spill_inspection_fix(spill_inspection_t *inspection, const spill_fix_t *fix);

/* Make the step that counts a document's elements again and leaves the head's counts. */
spill_fix_t spill_fix_counts(int64_t page, const spill_state_t *state);

/* Make the step that rebuilds the store's indexes of the owner if its head is as inspected. */
spill_fix_t spill_fix_indexes(const spill_inspection_t *inspection);

/* Add a finding. */
void spill_inspection_add(spill_inspection_t *inspection, int64_t page, int invariant,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

/*
 * For repair: inspect one owner, but leave out what layout/repair.c finds and corrects. The caller
 * releases *inspection. Its findings borrow `owner`. (verify.c)
 */
spill_code_t spill_inspect_rest(const spill_owner_t *owner, spill_inspection_t *inspection,
                                spill_error_t *error);

/* ---- numbers --------------------------------------------------------------------------------- */

/*
 * The check of the sequence numbers of an owner's documents. The verifier passes the documents in
 * sequence order. These functions compare where each begins and ends, and count elements and gaps.
 */

/* A document that was passed. The next document can show that its numbers are wrong. */
typedef struct spill_passed {
    bool any;
    int64_t page;
    int64_t after; /* the end of the document before it; -1: not known */
    spill_state_t state;
} spill_passed_t;

/* What is known after the documents passed so far. */
typedef struct spill_progress {
    int64_t watermark;
    int64_t end;     /* of the document before */
    int64_t live;    /* elements with numbers >= watermark */
    int64_t in_head; /* ... of these, elements in the head */
    int64_t between; /* numbers >= watermark between documents */
    bool any;        /* a document was passed */
    spill_passed_t before;
    char gaps[100]; /* the gaps between documents, as text */
} spill_progress_t;

/* The correct numbers of a document, if its state is wrong; else NULL. */
const spill_number_range_t *spill_range_of(const spill_inspection_t *inspection, int64_t page);

void spill_range_add(spill_inspection_t *inspection, const spill_number_range_t *range);

/* Pass a document. Its numbers may show that the numbers of the document before it are wrong. */
void spill_progress_pass(spill_inspection_t *inspection, int64_t page, const spill_state_t *state,
                         spill_progress_t *progress);

/*
 * Pass a document with wrong numbers in its state: report them, and use the correct ones. If
 * another client has corrected the state since, the next inspection reads the corrected one.
 */
void spill_progress_range(spill_inspection_t *inspection, const spill_number_range_t *range,
                          const spill_state_t *state, spill_progress_t *progress);

/*
 * After the last document: compare the head's count of removed elements with the numbers that have
 * no element. `pages_end` is the end of the last page.
 */
spill_code_t spill_progress_removed(spill_inspection_t *inspection, const spill_state_t *head,
                                    const spill_progress_t *progress, int64_t pages_end,
                                    spill_error_t *error);

#endif
