/*
 * The names that a migration uses: what a dry run can know about clashes, and what an undo leaves
 * behind. Collections are seen on a server alone.
 */
#ifndef SPILL_TOOLS_MIGRATE_NAMES_H
#define SPILL_TOOLS_MIGRATE_NAMES_H

#include <spillway/definition.h>
#include <spillway/store.h>

/*
 * Before anything is saved: would the definition clash with what is there? SPILL_REFUSED names the
 * other definition. *remark (NULL: nothing to say; free it with bson_free) says that documents have
 * a field of the definition's already, so that they would be passed over, or that the page
 * collection has documents. SPILL_OK at once if the definition is saved. `uri` is the server's;
 * NULL on an embedded store, where definitions alone are compared. Cost: one command for each saved
 * definition, and three small reads.
 */
spill_code_t spill_migrate_check_names(spill_store_t *store, const char *uri,
                                       const spill_definition_t *definition, char **remark,
                                       spill_error_t *error);

/*
 * After an undo that left no owner: drop the page collection, if it is empty and no other
 * definition uses it, and delete the definition. SPILL_OK if there is no such definition, so that
 * a call that died can be repeated. Cost: a few commands.
 */
spill_code_t spill_migrate_remove_names(spill_store_t *store, const char *uri, const char *name,
                                        spill_error_t *error);

#endif
