/*
 * Check that an entry of a plan matches something. A misspelt collection or field must not end in a
 * migration that reports success and has done nothing.
 */
#ifndef SPILL_TOOLS_MIGRATE_SOURCE_H
#define SPILL_TOOLS_MIGRATE_SOURCE_H

#include "tools/planned.h"

#include <spillway/store.h>

/*
 * Check that the database of a server has a collection of that name. SPILL_NOT_FOUND: it has none,
 * or it is a view. One command.
 */
spill_code_t spill_migrate_check_collection(const char *uri, const char *collection,
                                            spill_error_t *error);

/*
 * Check that the entry's collection has an array. `uri` is the server's, or NULL on an embedded
 * store. SPILL_NOT_FOUND: the collection is missing. SPILL_REFUSED: none of its documents has the
 * array. The message says how to correct the entry. An entry with "mayBeEmpty": true always passes.
 *
 * An embedded store knows the arrays of a definition once the definition is saved; before, all
 * entries pass. Cost: two searches; each ends at its first array.
 */
spill_code_t spill_migrate_check_source(spill_store_t *store, const char *uri,
                                        const spill_planned_t *planned, spill_error_t *error);

/* Count the arrays that Spillway manages under a definition. One search per 256 owners. */
spill_code_t spill_migrate_count_managed(spill_store_t *store, const char *name, int64_t *count,
                                         spill_error_t *error);

#endif
