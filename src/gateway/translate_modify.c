#include "gateway/translations.h"
bool spill_translate_modify(spill_translation_t *translation, bson_t *reply)
{
    (void)reply;
    return spill_translation_fail(translation, SPILL_SERVER_NOT_SUPPORTED, "todo");
}
bool spill_translate_delete(spill_translation_t *translation, bson_t *reply)
{
    (void)reply;
    return spill_translation_fail(translation, SPILL_SERVER_NOT_SUPPORTED, "todo");
}
