/* Dropping a definition, its owners, and its collections. */
#ifndef SPILL_TOOLS_DROP_DEFINITION_H
#define SPILL_TOOLS_DROP_DEFINITION_H

#include <spillway/definition.h>
#include <spillway/store.h>

/*
 * Drop a definition, and the checkpoints of its imports and of its conversion. SPILL_REFUSED in a
 * migration in two stages (tools/staged.h), because it may be the only copy: if it is the original,
 * unless that is being dropped already, and then its checkpoint stays; or if it is the planned
 * definition and the original is being dropped or no longer exists. After a crash the same call
 * continues.
 */
spill_code_t spill_drop_definition(spill_store_t *store, const char *name, spill_error_t *error);

/*
 * Drop every owner of a definition. `documents_stay`: the heads are the application's documents,
 * which keep their other fields. `building`: the caller's migration builds the definition, so its
 * owners may be dropped. One drop per owner.
 */
spill_code_t spill_drop_owners(spill_store_t *store, const char *name, bool documents_stay,
                               bool building, spill_error_t *error);

/*
 * Delete what is left of the pages of `definition`, which is still saved but has no owner left.
 * Then drop its collections if they are empty and no other definition names them. Documents of
 * other programs stay, and so does their collection. `uri` is the store's. Cost: one read of all
 * documents left, and one delete per page. Only for a server: other stores have no visible
 * collections.
 */
spill_code_t spill_drop_emptied(spill_store_t *store, const char *uri,
                                const spill_definition_t *definition, spill_error_t *error);

#endif
