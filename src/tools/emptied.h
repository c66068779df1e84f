/*
 * The collections of a dropped definition: with keep oldest they keep its tombstones. Only on a
 * server; other stores have no visible collections.
 */
#ifndef SPILL_TOOLS_EMPTIED_H
#define SPILL_TOOLS_EMPTIED_H

#include <spillway/definition.h>
#include <spillway/store.h>

/*
 * Delete what is left of the pages of `definition`, which is still saved but has no owner left.
 * Then drop its collections if they are empty and no other definition names them. Documents of
 * other programs stay, and so does their collection. `uri` is the store's. Cost: one read of all
 * documents left, and one delete per page.
 */
spill_code_t spill_drop_emptied(spill_store_t *store, const char *uri,
                                const spill_definition_t *definition, spill_error_t *error);

#endif
