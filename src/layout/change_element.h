/* Edit and remove an element, in layouts with several elements in a document. */
#ifndef SPILL_LAYOUT_CHANGE_ELEMENT_H
#define SPILL_LAYOUT_CHANGE_ELEMENT_H

#include "layout/locate.h"

/*
 * Read the head, with the element of an id (NULL: only its state). If it has an intent, finish that
 * and read again. Afterwards `head` has no intent, or is absent.
 */
spill_code_t spill_read_head_without_intent(const spill_owner_t *owner, const spill_value_t *id,
                                            spill_response_t *head, spill_error_t *error);

/*
 * The removal of element `seq` in a page was prepared: DELETE it there, then COMPLETE. `rev` is the
 * rev of the head with the intent.
 */
spill_code_t spill_intent_finish_removal(const spill_owner_t *owner, int64_t incarnation,
                                         int64_t seq, int64_t page, int64_t rev,
                                         spill_error_t *error);

/* spill_layout_ops.edit and remove of layouts with several elements in a document. */
spill_code_t spill_documents_edit(spill_owner_t *owner, spill_which_t *which,
                                  const spill_value_t *element, spill_error_t *error);
spill_code_t spill_documents_remove(spill_owner_t *owner, spill_which_t *which,
                                    spill_error_t *error);

#endif
