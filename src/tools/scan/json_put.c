#include "tools/scan/json_put.h"

void spill_json_put_value(FILE *to, const spill_value_t *value)
{
    char *json = value->data ? spill_value_to_json(value, false) : NULL;
    fputs(json ? json : "null", to);
    bson_free(json);
}

void spill_json_put_text(FILE *to, const char *text)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value = {0};
    if (text)
        value = spill_value_from_utf8(&storage, text);
    spill_json_put_value(to, &value);
    bson_destroy(&storage);
}
