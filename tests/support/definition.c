#include "support/definition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void definition_assert_invalid(const spill_definition_t *definition, const char *message)
{
    spill_error_t error;
    assert_int_equal(spill_definition_check(definition, &error), SPILL_INVALID);
    if (strstr(error.message, message) == NULL)
        fail_msg("expected '%s' in '%s'", message, error.message);
}

void definition_name_other(spill_definition_t *definition)
{
    strcpy(definition->array, "other");
    strcpy(definition->count_field, "otherCount");
    strcpy(definition->overflow_field, "otherOverflow");
    strcpy(definition->pages_field, "otherPages");
    strcpy(definition->page_collection, "otherPages");
}

void definition_put_in_document(spill_definition_t *definition, const char *parent)
{
    char *const fields[] = {definition->array, definition->count_field, definition->overflow_field,
                            definition->pages_field};
    bool bucket = definition->layout == SPILL_LAYOUT_BUCKET;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char name[SPILL_NAME_SIZE];
        snprintf(name, sizeof name, "%s", fields[i]);
        if (name[0] != '\0')
            snprintf(fields[i], SPILL_NAME_SIZE, "%.60s.%.60s", parent, name);
    }
    if (bucket)
        memcpy(definition->page_array, definition->array, SPILL_NAME_SIZE);
}

spill_array_t *definition_open_array(spill_store_t *store, const char *preset, const char *name,
                                     int64_t threshold, int64_t page_capacity)
{
    spill_definition_t definition;
    spill_array_t *array;
    spill_error_t error;
    assert_int_equal(spill_definition_preset(&definition, preset, name, &error), SPILL_OK);
    definition.bounds.threshold = threshold;
    definition.bounds.page_capacity = page_capacity;
    if (strcmp(name, "other") == 0)
        definition_name_other(&definition);
    assert_int_equal(spill_store_define(store, &definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(store, name, &array, &error), SPILL_OK);
    return array;
}
