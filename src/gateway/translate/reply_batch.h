/* Replies with cursors: of find, aggregate and getMore on served collections. */
#ifndef SPILL_GATEWAY_TRANSLATE_REPLY_BATCH_H
#define SPILL_GATEWAY_TRANSLATE_REPLY_BATCH_H

#include "gateway/translate/cursors.h"

/* A batch ends before the document with which it would exceed this. */
#define SPILL_BATCH_BYTES (16 * 1024 * 1024)

/*
 * Make the client's reply of upstream's reply to a find or aggregate, for the asked, which the call
 * takes over. `single`: there is no second batch. *reply is initialized if the result is true.
 */
bool spill_batch_begin(spill_translation_t *translation, const bson_t *from, spill_asked_t *asked,
                       bool single, bson_t *reply);

/* getMore and killCursors on a served collection. */
bool spill_batch_get_more(spill_translation_t *translation, bson_t *reply);
bool spill_batch_kill(spill_translation_t *translation, bson_t *reply);

#endif
