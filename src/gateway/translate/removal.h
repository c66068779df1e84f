/* Delete one owner with a managed array: its head, then its pages. */
#ifndef SPILL_GATEWAY_TRANSLATE_REMOVAL_H
#define SPILL_GATEWAY_TRANSLATE_REMOVAL_H

#include "gateway/translate/change.h"

/*
 * Send the client's own delete of one document, with `query` as its filter, the write concern
 * "majority", and the client's numbers: so a replica set recognizes a repetition.
 */
typedef bool (*spill_delete_head_fn)(void *context, const bson_t *query, bool *removed);

/*
 * *removed is false if the head has changed since the look, or matches the client's filter `q` no
 * longer. The head is deleted on the client's connection. A failure to delete the pages is not
 * reported: a note that the gateway leaves lets the next adoption of the _id, and `repair`, finish.
 */
bool spill_removal_run(spill_translation_t *translation, const spill_look_t *look, const bson_t *q,
                       spill_delete_head_fn delete_head, void *context, bool *removed);

#endif
