/*
 * The numbers of arrays and collections, under which their records lie, by name. All but
 * spill_embedded_bind is for the combiner's leader.
 */
#ifndef SPILL_STORE_EMBEDDED_NUMBERS_H
#define SPILL_STORE_EMBEDDED_NUMBERS_H

#include "store/embedded/system_records.h"

/* The numbers that a name has; those of no array (0) where it has none. */
spill_code_t spill_numbers_get(spill_system_access_t *access, const char *name,
                               spill_binding_t *binding, spill_error_t *error);

/*
 * A definition that is saved has numbers from then on, so that read-only clients find them. A name
 * that comes back after its array has ended gets new ones.
 */
spill_code_t spill_numbers_give(spill_system_access_t *access, const char *name,
                                const spill_definition_t *definition, spill_error_t *error);

/* store->bindings gets one more, or one less. */
void spill_numbers_add(spill_embedded_t *store, const spill_binding_t *binding);
void spill_numbers_remove(spill_embedded_t *store, uint32_t array_id);

#endif
