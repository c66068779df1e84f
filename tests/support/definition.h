/* Definitions for tests, and a check for tests of definitions. */
#ifndef TESTS_SUPPORT_DEFINITION_H
#define TESTS_SUPPORT_DEFINITION_H

#include <spillway/array.h>
#include <spillway/definition.h>
#include <spillway/store.h>

/* Fail the test unless the check refuses the definition with this message. */
void definition_assert_invalid(const spill_definition_t *definition, const char *message);

/* Give its array the name "other", and its fields and pages names that no preset has. */
void definition_name_other(spill_definition_t *definition);

/* Give the array, and the head's other fields of the array, paths into that sub-document. */
void definition_put_in_document(spill_definition_t *definition, const char *parent);

/*
 * Save and open an array of a preset with these bounds. An array named "other" is a second one in
 * the heads of the preset's collection. Close it with spill_array_close.
 */
spill_array_t *definition_open_array(spill_store_t *store, const char *preset, const char *name,
                                     int64_t threshold, int64_t page_capacity);

#endif
