/*
 * The end of a definition whose arrays are unmanaged again. Sweeps and gateways that were not
 * stopped may adopt arrays meanwhile: layout/adoption.h has the steps by which no array stays
 * managed without a definition. Only stores with other writers have these steps.
 */
#ifndef SPILL_TOOLS_MIGRATE_UNDOING_H
#define SPILL_TOOLS_MIGRATE_UNDOING_H

#include "core/array.h"

/* Is the migration of this definition being undone? SPILL_OK, and false, without a definition. */
spill_code_t spill_undoing_is(spill_store_t *store, const char *name, bool *undoing,
                              spill_error_t *error);

/* SPILL_REFUSED, with the commands that end it, if the migration is being undone. */
spill_code_t spill_undoing_check(spill_store_t *store, const char *name, spill_error_t *error);

/*
 * Mark the definition: from now on no client begins to adopt an array. SPILL_OK also if an earlier
 * undo has marked it. A read and a write.
 */
spill_code_t spill_undoing_begin(spill_array_t *array, spill_error_t *error);

/* Remove the mark: arrays may be adopted again. *was (may be NULL): the definition had the mark. */
spill_code_t spill_undoing_cancel(spill_store_t *store, const char *name, bool *was,
                                  spill_error_t *error);

/*
 * Wait until no client adopts arrays any longer: mostly not at all, about a second for one that
 * runs, and half a minute for one that was killed. Logs what it waits for. SPILL_CANCELLED: the
 * store's `stop`.
 */
spill_code_t spill_undoing_wait(spill_array_t *array, spill_error_t *error);

/*
 * Delete the marked definition, and look for managed arrays once more: an append by the library may
 * have made one. Then the definition is saved again, and the result is SPILL_REFUSED. It is also
 * SPILL_REFUSED if a migration has removed the mark. SPILL_OK if there is no definition.
 */
spill_code_t spill_undoing_end(spill_store_t *store, const char *name, spill_error_t *error);

#endif
