#include "support/definition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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
