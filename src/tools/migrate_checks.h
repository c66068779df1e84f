/*
 * Checks around a migration: names that clash, entries of a plan that match nothing, and names that
 * an undo leaves behind. A misspelt collection or field must not end in a migration that reports
 * success and has done nothing. Collections are checked only on a server.
 */
#ifndef SPILL_TOOLS_MIGRATE_CHECKS_H
#define SPILL_TOOLS_MIGRATE_CHECKS_H

#include "tools/planned.h"

#include <spillway/store.h>

/*
 * Before anything is saved, check that the definition clashes with no other one. SPILL_REFUSED: the
 * message names the other definition. *remark (NULL: none; free it with bson_free) says that
 * documents have a field of the definition's already, so that they would be skipped, or that the
 * page collection has documents. SPILL_OK at once if the definition is saved already. `uri` is the
 * server's; NULL on an embedded store, where only definitions are compared. Cost: one command per
 * saved definition, and three small reads.
 */
spill_code_t spill_migrate_check_names(spill_store_t *store, const char *uri,
                                       const spill_definition_t *definition, char **remark,
                                       spill_error_t *error);

/*
 * After an undo that left no owner: drop the page collection, if it is empty and no other
 * definition uses it, and delete the definition. SPILL_OK if there is no such definition, so an
 * interrupted call can be repeated. Cost: a few commands.
 */
spill_code_t spill_migrate_remove_names(spill_store_t *store, const char *uri, const char *name,
                                        spill_error_t *error);

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
