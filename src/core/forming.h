/*
 * A definition that is forming: `spillway migrate' brings arrays of another definition, the
 * original, into it. Until that is finished nobody else may change them, so that an owner whose
 * original was edited can be brought anew, and all of it can be taken back. A mark in the catalog
 * says so; spill_array_open looks at it.
 */
#ifndef SPILL_CORE_FORMING_H
#define SPILL_CORE_FORMING_H

#include "core/array.h"

typedef struct spill_forming {
    char original[SPILL_NAME_SIZE]; /* the definition that has the arrays; "": it is not forming */
    bool undoing;                   /* what is there of it is being dropped */
    bson_t *stored;                 /* the mark as the catalog has it, or NULL */
} spill_forming_t;

/* Load the mark of a definition; release it in every case. SPILL_CORRUPT. One read. */
spill_code_t spill_forming_load(spill_store_t *store, const char *name, spill_forming_t *forming,
                                spill_error_t *error);
void spill_forming_release(spill_forming_t *forming);

/* The definition that is being made of `original`, in `name` (SPILL_NAME_SIZE); "": none. One read,
 * and one for each migration. */
spill_code_t spill_forming_of_original(spill_store_t *store, const char *original, char *name,
                                       spill_error_t *error);

/*
 * Save it in the place of what was loaded. SPILL_CONFLICT where something else stands there by now.
 * One write, in the order of the store's other writes.
 */
spill_code_t spill_forming_save(spill_store_t *store, const char *name, const char *original,
                                bool undoing, spill_forming_t *forming, spill_error_t *error);

/* The definition is everybody's from now on, or is gone. Arrays that are open have to be opened
 * again. One write. */
spill_code_t spill_forming_end(spill_store_t *store, const char *name, spill_error_t *error);

/* May the array be changed? SPILL_REFUSED: it is forming. Looks at what was read when it was
 * opened. */
spill_code_t spill_array_check_formed(const spill_array_t *array, spill_error_t *error);

#endif
