/* What tests of definitions share. */
#ifndef TESTS_SUPPORT_DEFINITION_H
#define TESTS_SUPPORT_DEFINITION_H

#include <spillway/definition.h>

/* Fails the cmocka test where the check does not refuse it, or says something else. */
void definition_assert_invalid(const spill_definition_t *definition, const char *message);

#endif
