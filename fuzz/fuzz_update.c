/*
 * The input is a document of two documents: fields and an update of them. The result must be
 * well-formed. An update that the check refuses must not be applied.
 */
#include "bson/update.h"
#include "bson/value.h"
#include "fuzz.h"

static bool next_document(spill_fields_t *fields, bson_t *document)
{
    const char *name;
    spill_value_t value;
    return spill_fields_next(fields, &name, &value) && value.type == BSON_TYPE_DOCUMENT &&
           bson_init_static(document, value.data, value.size_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bson_t document, before, update, after;
    uint32_t measured;
    /* Only the outermost size is checked here: the content may be malformed. */
    if (!spill_value_measure(BSON_TYPE_DOCUMENT, data, size, &measured) ||
        !bson_init_static(&document, data, measured))
        return 0;
    spill_fields_t fields = spill_fields_of(data);
    if (!next_document(&fields, &before) || !next_document(&fields, &update))
        return 0;
    static const char *const reserved[] = {"activities", "spill", NULL};
    spill_error_t error;
    spill_code_t checked = spill_update_check(&update, reserved, &error);
    REQUIRE(checked == SPILL_OK || checked == SPILL_INVALID);
    spill_code_t applied = spill_update_apply(&before, &update, &after, &error);
    if (applied == SPILL_OK) {
        REQUIRE(spill_document_valid(&after));
    } else {
        REQUIRE(applied == SPILL_INVALID || applied == SPILL_CORRUPT);
        REQUIRE(error.code == applied);
    }
    bson_destroy(&after);
    return 0;
}
