/*
 * A definition that is forming: `spillway migrate' brings arrays of another definition, the
 * original, into it. Until that is finished nobody else may change them, so that an owner whose
 * original was edited can be brought anew, and all of it can be taken back. A mark in the catalog
 * says so; spill_array_open looks at it.
 */
#ifndef SPILL_CORE_BUILDING_H
#define SPILL_CORE_BUILDING_H

#include "core/array.h"

typedef struct spill_building {
    char original[SPILL_NAME_SIZE]; /* the definition that has the arrays; "": it is not forming */
    bool undoing;                   /* what is there of it is being dropped */
    bson_t *stored;                 /* the mark as the catalog has it, or NULL */
} spill_building_t;

/* Load the mark of a definition; release it in every case. SPILL_CORRUPT. One read. */
spill_code_t spill_building_load(spill_store_t *store, const char *name, spill_building_t *building,
                                 spill_error_t *error);
void spill_building_release(spill_building_t *building);

/* The definition that is being made of `original`, in `name` (SPILL_NAME_SIZE); "": none. One read,
 * and one for each migration. */
spill_code_t spill_building_of_original(spill_store_t *store, const char *original, char *name,
                                        spill_error_t *error);

/*
 * Save it in the place of what was loaded. SPILL_CONFLICT where something else stands there by now.
 * One write, in the order of the store's other writes.
 */
spill_code_t spill_building_save(spill_store_t *store, const char *name, const char *original,
                                 bool undoing, spill_building_t *building, spill_error_t *error);

/* The definition is everybody's from now on, or is gone. Arrays that are open have to be opened
 * again. One write. */
spill_code_t spill_building_end(spill_store_t *store, const char *name, spill_error_t *error);

/* May the array be changed? SPILL_REFUSED: it is forming. Looks at what was read when it was
 * opened. */
spill_code_t spill_array_check_built(const spill_array_t *array, spill_error_t *error);

#endif
