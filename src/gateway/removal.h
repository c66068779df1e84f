/* Delete an owner: its head by the client's own connection, then its pages. (removal.c) */
#ifndef SPILL_GATEWAY_REMOVAL_H
#define SPILL_GATEWAY_REMOVAL_H

#include "gateway/change.h"

/*
 * Delete the document that the look found, if it still matches q and its array is the same.
 * The delete takes effect when the head is gone. *removed: it was deleted.
 */
bool spill_removal_run(spill_translation_t *translation, const spill_look_t *look, const bson_t *q,
                       bool *removed);

#endif
