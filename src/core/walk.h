/* One owner's elements, a bounded run at a time, from any number on. */
#ifndef SPILL_CORE_WALK_H
#define SPILL_CORE_WALK_H

#include "layout/referenced.h"

/* The part of an owner's array that starts at `next`, as far as one document goes. */
typedef struct spill_stretch {
    spill_response_t head;
    spill_response_t now; /* the head, after the page was read */
    spill_response_t page;
    bool head_is_new;       /* the last call has read the head after its page */
    const spill_run_t *run; /* ascending; of this stretch */
    int64_t next;           /* the number from which the next call reads */
    int64_t incarnation;    /* the incarnation that the walk reads; 0 before the first call */
    bool last;
    spill_referenced_walk_t referenced; /* position among referenced elements */
} spill_stretch_t;

/*
 * Read on from stretch->next, which is 0 in a zeroed stretch: up to 1000 elements of one document,
 * or of many documents of referenced elements. The run may be empty while `last` is not set yet.
 * For a missing owner the run is empty, and the last one. A walk stays in one incarnation of its
 * owner: if the owner is dropped meanwhile, the walk ends, also if an append has created the owner
 * again. Cost: two or three store operations, or one more for the first page.
 */
spill_code_t spill_stretch_read(const spill_owner_t *owner, spill_stretch_t *stretch,
                                spill_error_t *error);
void spill_stretch_release(spill_stretch_t *stretch);

#endif
