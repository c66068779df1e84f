/* A check for tests of definitions. */
#ifndef TESTS_SUPPORT_DEFINITION_H
#define TESTS_SUPPORT_DEFINITION_H

#include <spillway/definition.h>

/* Fail the test unless the check refuses the definition with this message. */
void definition_assert_invalid(const spill_definition_t *definition, const char *message);

#endif
