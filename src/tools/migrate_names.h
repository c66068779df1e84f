/*
 * The names that a migration uses: clashes that a dry run can find, and names that an undo leaves
 * behind. Only on a server are collections checked.
 */
#ifndef SPILL_TOOLS_MIGRATE_NAMES_H
#define SPILL_TOOLS_MIGRATE_NAMES_H

#include <spillway/definition.h>
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

#endif
