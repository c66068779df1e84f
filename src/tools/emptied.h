/*
 * The collections of a definition that was dropped: with keep oldest they keep its tombstones. On a
 * server alone; other stores have none that are seen.
 */
#ifndef SPILL_TOOLS_EMPTIED_H
#define SPILL_TOOLS_EMPTIED_H

#include <spillway/definition.h>
#include <spillway/store.h>

/*
 * No owner of `definition`, which is saved still, is left: delete what is left of its pages, and
 * drop its collections where they are empty then and no other definition names them. Documents of
 * others stay, and their collection with them. `uri` is that of the store. Cost: one read of what
 * is there, and a delete for each page.
 */
spill_code_t spill_drop_emptied(spill_store_t *store, const char *uri,
                                const spill_definition_t *definition, spill_error_t *error);

#endif
