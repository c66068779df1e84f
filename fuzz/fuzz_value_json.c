/*
 * JSON text to a value. An accepted value must be well-formed, and its Extended JSON must read back
 * as an equal value.
 */
#include "bson/value.h"
#include "fuzz.h"

#include <string.h>

static void check_value(const spill_value_t *value)
{
    REQUIRE(spill_value_valid(value));
    char *json = spill_value_to_json(value, true);
    REQUIRE(json != NULL);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t again;
    spill_error_t error;
    if (spill_value_from_json(json, strlen(json), &storage, &again, &error) == SPILL_OK) {
        REQUIRE(spill_value_compare(value, &again) == 0);
    } else {
        /* The notation can be deeper than the value: a pointer's "$ref" and "$id", for example. */
        REQUIRE(strstr(error.message, "nested too deeply") != NULL ||
                strstr(error.message, " inside a") != NULL);
    }
    bson_destroy(&storage);
    bson_free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value;
    spill_error_t error;
    spill_code_t code = spill_value_from_json((const char *)data, size, &storage, &value, &error);
    if (code == SPILL_OK) {
        check_value(&value);
    } else {
        REQUIRE(code == SPILL_PARSE && error.code == code);
        REQUIRE(strstr(error.message, "offset") != NULL);
    }
    bson_destroy(&storage);
    return 0;
}
