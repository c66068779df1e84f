/*
 * The numbers of arrays and collections by name; the keys of their records begin with them. All
 * functions except spill_embedded_bind are for the combiner's leader.
 */
#ifndef SPILL_STORE_EMBEDDED_NUMBERS_H
#define SPILL_STORE_EMBEDDED_NUMBERS_H

#include "store/embedded/records.h"

/* Get the numbers of a name; 0 if it has none. */
spill_code_t spill_numbers_get(spill_system_access_t *access, const char *name,
                               spill_binding_t *binding, spill_error_t *error);

/*
 * Give numbers to a definition when it is saved, so that read-only clients find them. If the name
 * was used by an array that has ended, it gets new numbers.
 */
spill_code_t spill_numbers_give(spill_system_access_t *access, const char *name,
                                const spill_definition_t *definition, spill_error_t *error);

/* Add a binding to store->bindings, or remove one. */
void spill_numbers_add(spill_embedded_t *store, const spill_binding_t *binding);
void spill_numbers_remove(spill_embedded_t *store, uint32_t array_id);

#endif
