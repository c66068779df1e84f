/*
 * What the documents of an owner say of numbers, as they are passed in sequence order: where each
 * begins and ends, how many elements there are, and how many numbers are between two.
 */
#ifndef SPILL_CORE_VERIFY_NUMBERS_H
#define SPILL_CORE_VERIFY_NUMBERS_H

#include "core/verify_owner.h"

/* A document whose numbers the next one, and the one before it, may show to be others. */
typedef struct spill_passed {
    bool any;
    int64_t page;
    int64_t after; /* the end of the document before it; -1: not known */
    spill_state_t state;
} spill_passed_t;

/* What is known while the documents are gone through in sequence order. */
typedef struct spill_progress {
    int64_t watermark;
    int64_t end;     /* of the document before */
    int64_t live;    /* elements met with numbers >= low */
    int64_t in_head; /* of which the head holds */
    int64_t between; /* numbers >= low that lie between documents */
    bool any;        /* was there a document before? */
    spill_passed_t before;
    char gaps[100]; /* where numbers lie between documents, as text */
} spill_progress_t;

/* What the document's numbers are, where its state is wrong; or NULL. */
const spill_place_t *spill_place_of(const spill_inspection_t *inspection, int64_t page);

void spill_place_add(spill_inspection_t *inspection, const spill_place_t *place);

/* Go on behind this document. The one before it may turn out to have other numbers. */
void spill_progress_pass(spill_inspection_t *inspection, int64_t page, const spill_state_t *state,
                         spill_progress_t *progress);

/*
 * The same for one whose numbers are others than its state says: that is told, and it is seen as it
 * will be. (Where somebody has mended it since, the next look reads it.)
 */
void spill_progress_place(spill_inspection_t *inspection, const spill_place_t *place,
                          const spill_state_t *state, spill_progress_t *progress);

/*
 * All were passed: the array's removed numbers, counted, against what the elements that are left
 * say. `pages_end`: of the last page.
 */
spill_code_t spill_progress_removed(spill_inspection_t *inspection, const spill_state_t *head,
                                    const spill_progress_t *progress, int64_t pages_end,
                                    spill_error_t *error);

#endif
