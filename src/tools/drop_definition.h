/* Dropping a definition with all that the catalog remembers of it. */
#ifndef SPILL_TOOLS_DROP_DEFINITION_H
#define SPILL_TOOLS_DROP_DEFINITION_H

#include <spillway/store.h>

/*
 * Drop a definition, and the checkpoints of its imports and of its conversion. SPILL_REFUSED in a
 * migration in two stages (tools/staged.h), because it may be the only copy: if it is the original,
 * unless that is being dropped already, and then its checkpoint stays; or if it is the planned
 * definition and the original is being dropped or no longer exists. After a crash the same call
 * continues.
 */
spill_code_t spill_drop_definition(spill_store_t *store, const char *name, spill_error_t *error);

#endif
