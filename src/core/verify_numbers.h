/*
 * Checks the sequence numbers of an owner's documents. The verifier passes the documents in
 * sequence order, and this module compares where each begins and ends, and counts elements and
 * gaps.
 */
#ifndef SPILL_CORE_VERIFY_NUMBERS_H
#define SPILL_CORE_VERIFY_NUMBERS_H

#include "core/verify_owner.h"

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
const spill_place_t *spill_place_of(const spill_inspection_t *inspection, int64_t page);

void spill_place_add(spill_inspection_t *inspection, const spill_place_t *place);

/* Pass a document. Its numbers may show that the numbers of the document before it are wrong. */
void spill_progress_pass(spill_inspection_t *inspection, int64_t page, const spill_state_t *state,
                         spill_progress_t *progress);

/*
 * Pass a document with wrong numbers in its state: report them, and use the correct ones. If
 * another client has corrected the state since, the next inspection reads the corrected one.
 */
void spill_progress_place(spill_inspection_t *inspection, const spill_place_t *place,
                          const spill_state_t *state, spill_progress_t *progress);

/*
 * After the last document: compare the head's count of removed elements with the numbers that have
 * no element. `pages_end` is the end of the last page.
 */
spill_code_t spill_progress_removed(spill_inspection_t *inspection, const spill_state_t *head,
                                    const spill_progress_t *progress, int64_t pages_end,
                                    spill_error_t *error);

#endif
