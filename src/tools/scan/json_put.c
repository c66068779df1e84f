#include "tools/scan/json_put.h"

#include "util/redact.h"
#include "util/text.h"

#include <string.h>

void spill_json_put_value(FILE *to, const spill_value_t *value)
{
    char *json = value->data ? spill_value_to_json(value, false) : NULL;
    char *visible = spill_visible_text(json ? json : "null");
    fputs(visible, to);
    bson_free(visible);
    bson_free(json);
}

/* If the text is not UTF-8, replace what is not ASCII with '?'. */
static char *repaired(const char *text)
{
    char *copy = bson_strdup(text);
    bool sound = bson_utf8_validate(text, strlen(text), false);
    for (char *at = copy; *at && !sound; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    return copy;
}

void spill_json_put_text(FILE *to, const char *text)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value = {0};
    char *sound = text ? repaired(text) : NULL;
    if (sound)
        value = spill_value_from_utf8(&storage, sound);
    spill_json_put_value(to, &value);
    bson_free(sound);
    bson_destroy(&storage);
}

void spill_json_put_source(FILE *to, const char *source)
{
    char *shown = source ? spill_redact(source) : NULL;
    spill_json_put_text(to, shown);
    bson_free(shown);
}
