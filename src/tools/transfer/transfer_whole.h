/*
 * A whole array as a few READs return it: the head, and the documents of referenced elements. Only
 * small arrays are read so. A walk reads the heads and documents of the next owners with it.
 */
#ifndef SPILL_TOOLS_TRANSFER_TRANSFER_WHOLE_H
#define SPILL_TOOLS_TRANSFER_TRANSFER_WHOLE_H

#include "layout/owner.h"

/* Zero it, release it. */
typedef struct spill_whole {
    spill_owner_t owner;
    spill_response_t head;      /* with all its elements */
    spill_response_t documents; /* referenced elements */
    spill_run_t joined;         /* documents, then the head; if there are documents */
    bool complete;              /* the elements are all of the array */
} spill_whole_t;

/*
 * Read the array of whole->owner, which is initialized. An absent head is no error. `fields`: with
 * the head's other fields. `append_follows`: spill_read_t. Memory: the head, and 4 MiB and an
 * element.
 */
spill_code_t spill_whole_read(spill_whole_t *whole, bool fields, bool append_follows,
                              spill_error_t *error);

/* Its elements, ascending; and their bytes. */
const spill_run_t *spill_whole_run(const spill_whole_t *whole);

/* Forget what was read. */
void spill_whole_clear(spill_whole_t *whole);
void spill_whole_release(spill_whole_t *whole);

#endif
