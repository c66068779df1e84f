/*
 * A definition under construction: `spillway migrate' copies the arrays of another definition, the
 * original, to it. Until the migration is finished no other client may change the copies. The
 * migration can then copy an edited owner again, or delete all copies. A record in the catalog
 * names the original; spill_array_open reads it.
 */
#ifndef SPILL_CORE_BUILDING_H
#define SPILL_CORE_BUILDING_H

#include "definition/schema.h"
#include "store/store.h"

typedef struct spill_building {
    char original[SPILL_NAME_SIZE]; /* the definition that has the arrays; "": none */
    bool undoing;                   /* the copies are being deleted */
    bson_t *stored;                 /* the record in the catalog, or NULL */
} spill_building_t;

/* Load the record of a definition. Release it also after an error. Cost: one read. */
spill_code_t spill_building_load(spill_store_t *store, const char *name, spill_building_t *building,
                                 spill_error_t *error);

/* The same from an entry that was read with the definition's, or NULL. It destroys the entry. */
spill_code_t spill_building_load_entry(spill_store_t *store, const char *name, bson_t *entry,
                                       spill_building_t *building, spill_error_t *error);

/* The name of that entry. `entry` has SPILL_BUILDING_NAME_SIZE bytes. */
#define SPILL_BUILDING_NAME_SIZE (SPILL_NAME_SIZE + 8)
void spill_building_entry_name(const char *name, char *entry);

void spill_building_release(spill_building_t *building);

/*
 * Find the definition that is constructed from `original`. `name` has SPILL_NAME_SIZE bytes; "":
 * none. Cost: one read, and one for each migration.
 */
spill_code_t spill_building_of_original(spill_store_t *store, const char *original, char *name,
                                        spill_error_t *error);

/*
 * Replace the record that was loaded. SPILL_CONFLICT: another client has changed it. Cost: one
 * write, in the order of the store's other writes.
 */
spill_code_t spill_building_save(spill_store_t *store, const char *name, const char *original,
                                 bool undoing, spill_building_t *building, spill_error_t *error);

/*
 * Delete the record: all clients may change the arrays, or the definition was deleted. Arrays that
 * are open must be opened again. Cost: one write.
 */
spill_code_t spill_building_end(spill_store_t *store, const char *name, spill_error_t *error);

/* SPILL_REFUSED if the definition was under construction when the array was opened. */
spill_code_t spill_array_check_built(const spill_array_t *array, spill_error_t *error);

#endif
