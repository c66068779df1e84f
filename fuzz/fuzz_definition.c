/* A document read as a definition. An accepted one must pass the check and encode to the same. */
#include "fuzz.h"

#include <spillway/definition.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bson_t document, written, again;
    spill_definition_t definition, copy;
    spill_error_t error;
    if (!bson_init_static(&document, data, size))
        return 0;
    spill_code_t code = spill_definition_from_bson(&definition, &document, &error);
    if (code != SPILL_OK) {
        REQUIRE(code == SPILL_CORRUPT || code == SPILL_FORMAT);
        REQUIRE(error.code == code && definition.name[0] == '\0');
        return 0;
    }
    REQUIRE(spill_definition_check(&definition, NULL) == SPILL_OK);
    spill_definition_to_bson(&definition, &written);
    REQUIRE(spill_definition_from_bson(&copy, &written, NULL) == SPILL_OK);
    spill_definition_to_bson(&copy, &again);
    REQUIRE(bson_equal(&written, &again));
    REQUIRE(spill_definition_compatible(&definition, &copy, NULL) == SPILL_OK);
    bson_destroy(&again);
    bson_destroy(&written);
    return 0;
}
