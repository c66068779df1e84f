/* Checks that several of the array's functions make on their arguments. */
#include "core/array.h"

#include "bson/element_fields.h"
#include "bson/update.h"
#include "bson/value.h"
#include "definition/schema.h"
#include "definition/window.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

spill_code_t spill_array_check_layout(const spill_array_t *array, bool bucket, const char *what,
                                      spill_error_t *error)
{
    const spill_definition_t *definition = &array->definition;
    if (spill_schema_of(definition)->has_windows == bucket)
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID, "%s: the layout of '%s' is %s'bucket'", what,
                      definition->name, bucket ? "not " : "");
}

spill_code_t spill_array_check_update(const spill_array_t *array, const bson_t *update,
                                      spill_error_t *error)
{
    const spill_definition_t *definition = &array->definition;
    SPILL_TRY(spill_array_check_layout(array, false, "there are no other fields", error));
    const char *reserved[] = {definition->array,       "spill",
                              definition->count_field, definition->overflow_field,
                              definition->pages_field, NULL};
    size_t kept = 0;
    for (size_t i = 0; reserved[i] != NULL; i++)
        if (reserved[i][0] != '\0')
            reserved[kept++] = reserved[i];
    reserved[kept] = NULL;
    return spill_update_check(update, reserved, error);
}

spill_code_t spill_array_check_element(const spill_value_t *element, size_t index,
                                       spill_error_t *error)
{
    if (!spill_value_valid(element))
        return spill_fail(error, SPILL_INVALID, "element %zu is not a well-formed BSON value",
                          index);
    if (element->size_bytes > SPILL_DOCUMENT_BYTES_MAX)
        return spill_fail(error, SPILL_TOO_BIG,
                          "element %zu has %u bytes: no document holds more than %d", index,
                          element->size_bytes, SPILL_DOCUMENT_BYTES_MAX);
    return SPILL_OK;
}

spill_code_t spill_array_check_rank(const spill_definition_t *definition,
                                    const spill_value_t *element, spill_error_t *error)
{
    spill_value_t value;
    if (!spill_schema_of(definition)->keeps_top_n ||
        !spill_value_at(element, definition->sort_field, &value) ||
        value.type != BSON_TYPE_DECIMAL128)
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID,
                      "'%s' is a decimal128, which would rank below all numbers and be dropped "
                      "first: what elements rank by has to be a double or an integer (of cents, "
                      "say), or a date; the decimal may stand in another field",
                      definition->sort_field);
}

spill_code_t spill_array_check_top_n(const spill_owner_t *owner, const spill_value_t *element,
                                     spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    if (!spill_schema_of(definition)->keeps_top_n)
        return SPILL_OK;
    int64_t most = definition->bounds.head_bytes_max;
    int64_t bytes = spill_part_bytes_alone(owner, true, 1, element->size_bytes);
    SPILL_TRY(spill_array_check_rank(definition, element, error));
    if (bytes <= most)
        return SPILL_OK;
    return spill_fail(error, SPILL_TOO_BIG,
                      "with a head around it that is %" PRId64 " bytes, and one that keeps the "
                      "best has at most %" PRId64 " (headBytesMax, --max-bytes)",
                      bytes, most);
}

spill_code_t spill_array_check_id(const spill_array_t *array, const spill_value_t *id,
                                  spill_error_t *error)
{
    if (array->definition.id_field[0] == '\0')
        return spill_fail(error, SPILL_INVALID,
                          "definition '%s' does not say what an element's id is (idField, "
                          "--id-field)",
                          array->definition.name);
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t key = SPILL_BUFFER_INIT;
    return spill_element_id_key(id, &key, error);
}

spill_code_t spill_array_check_window(const spill_owner_t *owner, const spill_value_t *element,
                                      spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    char window[SPILL_WINDOW_SIZE];
    spill_value_t of;
    const char *own;
    if (!spill_schema_of(definition)->has_windows)
        return SPILL_OK;
    SPILL_TRY(spill_window_of_element(definition, element, window, error));
    if (spill_window_split(owner->value, &of, &own) && strcmp(window, own) != 0)
        return spill_fail(error, SPILL_INVALID, "an element of window '%s' cannot be in '%s'",
                          window, own);
    return SPILL_OK;
}
