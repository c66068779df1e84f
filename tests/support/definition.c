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
