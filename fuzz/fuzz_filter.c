/*
 * The input is a document of two values: a filter, and an element to match. The element is also
 * used as an owner with a window, and as the value that determines a window.
 */
#include "bson/element_fields.h"
#include "bson/value.h"
#include "fuzz.h"

#include <spillway/spillway.h>

static void match(const bson_t *filter, const spill_value_t *element)
{
    spill_error_t error;
    spill_code_t code = spill_match_check(filter, &error);
    REQUIRE(code == SPILL_OK || error.code == code);
    if (code == SPILL_OK)
        spill_match(filter, element);
}

static void find_window(const spill_value_t *element)
{
    spill_definition_t definition;
    spill_error_t error;
    spill_value_t owner;
    char window[SPILL_WINDOW_SIZE];
    spill_bucket_split(element, &owner, window);
    REQUIRE(spill_definition_preset(&definition, "sales", "sales", &error) == SPILL_OK);
    spill_bucket_window_of(&definition, element, window, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bson_t document, filter;
    bson_iter_t iter;
    const uint8_t *bytes;
    uint32_t length;
    if (!bson_init_static(&document, data, size) || !spill_document_valid(&document) ||
        !bson_iter_init(&iter, &document) || !bson_iter_next(&iter) ||
        !BSON_ITER_HOLDS_DOCUMENT(&iter))
        return 0;
    bson_iter_document(&iter, &length, &bytes);
    if (!bson_init_static(&filter, bytes, length) || !bson_iter_next(&iter))
        return 0;
    spill_value_t element = spill_value_from_iter(&iter);
    match(&filter, &element);
    find_window(&element);
    bson_free(spill_value_to_json(&element, false));
    return 0;
}
