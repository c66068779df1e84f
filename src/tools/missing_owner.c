#include "tools/missing_owner.h"

#include "util/error.h"

#include <stdio.h>
#include <string.h>

spill_code_t spill_fail_no_owner(const char *name, const spill_value_t *owner, spill_error_t *error)
{
    char hint[96] = "";
    const char *text = owner->type == BSON_TYPE_UTF8 ? (const char *)owner->data + 4 : "";
    char *json = spill_value_to_json(owner, false);
    if (strlen(text) == 24 && bson_oid_is_valid(text, 24))
        snprintf(hint, sizeof hint, " (a string); an ObjectId is written {\"$oid\": \"%.24s\"}",
                 text);
    spill_fail(error, SPILL_NOT_FOUND, "'%s' has no owner %s%s", name, json ? json : "(not UTF-8)",
               hint);
    bson_free(json);
    return SPILL_NOT_FOUND;
}
