/* One function for each command that is translated. Each returns false after a failure. */
#ifndef SPILL_GATEWAY_TRANSLATE_TRANSLATIONS_H
#define SPILL_GATEWAY_TRANSLATE_TRANSLATIONS_H

#include "gateway/translate/translation.h"

/* Makes *reply, initialized if the result is true. */
typedef bool (*spill_translate_fn)(spill_translation_t *translation, bson_t *reply);

bool spill_translate_find(spill_translation_t *translation, bson_t *reply);
bool spill_translate_aggregate(spill_translation_t *translation, bson_t *reply);
bool spill_translate_count(spill_translation_t *translation, bson_t *reply); /* and distinct */

bool spill_translate_insert(spill_translation_t *translation, bson_t *reply);
bool spill_translate_update(spill_translation_t *translation, bson_t *reply);
bool spill_translate_delete(spill_translation_t *translation, bson_t *reply);
bool spill_translate_modify(spill_translation_t *translation, bson_t *reply); /* findAndModify */

bool spill_translate_bulk(spill_translation_t *translation, bson_t *reply); /* bulkWrite */

/* translate_catalog.c */
bool spill_translate_list_collections(spill_translation_t *translation, bson_t *reply);
bool spill_translate_create_indexes(spill_translation_t *translation, bson_t *reply);
bool spill_translate_create(spill_translation_t *translation, bson_t *reply);
bool spill_translate_drop(spill_translation_t *translation, bson_t *reply);
bool spill_translate_drop_database(spill_translation_t *translation, bson_t *reply);

/* Does a pipeline, `out` or `viewOn` name a served or hidden collection? (pipeline.c) */
bool spill_pipeline_concerns(const spill_served_t *served, const spill_client_command_t *command);

/* Does a $changeStream show changes of a served collection? (pipeline.c) */
bool spill_pipeline_watches(const spill_served_t *served, const spill_client_command_t *command);

#endif
